package cluster

import (
	"os"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/persistence"
	"troupe/statemachine"
)

// publishFirst makes the text files of a home what its cluster begins with. The error is document.Faults when the files
// have some, and then nothing is changed.
func publishFirst(store *persistence.Store, dir string, log zerolog.Logger) error {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return err
	}
	definitions, err := catalog.Open(catalog.Options{Store: store, Parser: parser, Log: log})
	if err != nil {
		return err
	}
	templates, err := formportal.OpenTemplates(store, log)
	if err != nil {
		return err
	}
	set, err := home.Load(os.DirFS(dir), parser)
	if err != nil {
		return err
	}
	return home.PublishFirst(home.PublishedOptions{Store: store, Catalog: definitions, Templates: templates}, set, "cluster init")
}
