package author

import (
	"path/filepath"

	"troupe/actors/home"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine"
)

type sketched struct {
	error
	chart *statemachine.Chart
}

func (s *sketched) Unwrap() error { return s.error }

func sketchOf(source statemachine.Source, err error) error {
	if err == nil {
		return nil
	}
	parser, parserErr := statemachine.NewParser(statemachine.ParserOptions{})
	if parserErr != nil {
		return err
	}
	if chart, _ := parser.Sketch(source); chart != nil {
		return &sketched{err, chart}
	}
	return err
}

func definitionIn(dir, id string) string {
	for _, suffix := range []string{".yaml", ".yml", ".json"} {
		if name := filepath.Join(dir, home.WorkflowsFolder, id+suffix); isDefinitionFile(name) && homedir.DemandFile(name) == nil {
			return name
		}
	}
	return ""
}
