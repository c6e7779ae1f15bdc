package author

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/client"
	"troupe/statemachine"
	"troupe/statemachine/diagram"
)

var pictures = []struct {
	name string
	draw func(*diagram.Picture) []byte
}{
	{"svg", (*diagram.Picture).SVG},
	{"mermaid", (*diagram.Picture).Mermaid},
	{"dot", (*diagram.Picture).DOT},
}

func newDiagram() *cobra.Command {
	d := &diagramCommand{}
	cmd := &cobra.Command{
		Use:   "diagram ID",
		Short: "Draw a workflow, and where an instance is",
		Long: `Prints the picture. With --instance, the current state is filled and the path to it stands out.

ID is a workflow of a running service (needs mod-workflows): the current version, or the version of the instance.
With --home, it is a workflow of that home's files, without a service or a token. A file can be drawn directly:
troupe diagram FILE.yaml. If it has problems, they are reported, the rest is drawn, and the exit code is 1. Instances
are always read from the service, with a token that can read them.`,
		Example: "  troupe diagram leave-request > leave-request.svg\n" +
			"  troupe diagram leave-request --instance 01M7YZAB2GNTJFQE62690KHSQT > where.svg\n" +
			"  troupe diagram ./workflows/leave-request.yaml --to mermaid",
	}
	cmd.Flags().StringVar(&d.instance, "instance", "", "mark the instance's current state and its path")
	cmd.Flags().StringVar(&d.to, "to", pictures[0].name, "format: svg, mermaid or dot")
	cli.OneOf(cmd, "to", "svg", "mermaid", "dot")
	d.at = connect.AddFlags(cmd)
	connect.Complete(cmd, d.at)
	cmd.Flags().StringVar(&d.home, "home", "", "read the definition from this home, without a token")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		draw, err := d.form()
		if err != nil {
			return err
		}
		picture, err := d.picture(cmd.Context(), args[0])
		if sketch := (*sketched)(nil); errors.As(err, &sketch) {
			picture = &diagram.Picture{Chart: sketch.chart}
		} else if err != nil {
			return connect.Explain(err)
		}
		picture.Languages = cli.ReaderLanguages()
		_, writeErr := cmd.OutOrStdout().Write(draw(picture))
		return errors.Join(err, writeErr)
	}
	return cmd
}

type diagramCommand struct {
	at                 *connect.Connection // of the instance, and of the definition unless home or a file has it
	home, instance, to string
}

func (d *diagramCommand) form() (func(*diagram.Picture) []byte, error) {
	var names []string
	for _, p := range pictures {
		if p.name == d.to {
			return p.draw, nil
		}
		names = append(names, p.name)
	}
	return nil, cli.Usagef("--to %q: must be one of %s%s", d.to, strings.Join(names, ", "), cli.DidYouMean(d.to, names))
}

type definitionSource func(ctx context.Context, id string, version uint64) (*statemachine.Definition, error)

func (d *diagramCommand) picture(ctx context.Context, id string) (*diagram.Picture, error) {
	var service *client.Client
	isFile := isDefinitionFile(id)
	if d.instance != "" || !isFile && d.home == "" {
		var err error
		if service, err = d.at.Client(0); err != nil {
			return nil, err
		}
		defer service.Close()
	}
	var find definitionSource
	switch {
	case isFile:
		definition, err := definitionInFile(id)
		if err != nil {
			return nil, err
		}
		find, id = onlyDefinition(id, definition), string(definition.ID)
	case d.home != "" && !homedir.IsServed(ctx, d.home):
		find = definitionInHome(d.home)
	case d.home != "":
		ofHome, err := (&connect.Connection{Home: d.home, Timeout: d.at.Timeout}).Client(0)
		if err != nil {
			return nil, err
		}
		defer ofHome.Close()
		find = definitionAt(ofHome)
	default:
		find = definitionAt(service)
	}
	if d.instance == "" {
		definition, err := find(ctx, id, 0)
		if err != nil {
			return nil, err
		}
		return &diagram.Picture{Chart: definition.Chart()}, nil
	}
	return pictureOfInstance(ctx, service, find, id, d.instance)
}

func pictureOfInstance(ctx context.Context, c *client.Client, find definitionSource, id, instanceID string) (*diagram.Picture, error) {
	pending, err := c.Pending(ctx, id, instanceID)
	if err != nil {
		return nil, connect.SuggestWorkflow(ctx, c, id, err)
	}
	definition, err := find(ctx, id, pending.Version)
	if err != nil {
		return nil, err
	}
	in, err := instanceIn(ctx, c, definition, id, instanceID)
	if err != nil {
		return nil, err
	}
	return &diagram.Picture{Chart: definition.Chart(), Instance: in}, nil
}

// An id may look like one; then the file wins where it is there.
func isDefinitionFile(name string) bool {
	if strings.ContainsAny(name, `/\`) {
		return true
	}
	_, err := os.Stat(name)
	return err == nil && hasFileSuffix(name)
}

func hasFileSuffix(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func definitionInFile(name string) (*statemachine.Definition, error) {
	text, err := cli.ReadInputFile(name)
	if err != nil {
		return nil, err
	}
	beside := func(ref string) ([]byte, error) { return cli.ReadInputFile(filepath.Join(filepath.Dir(name), ref)) }
	source := statemachine.Source{File: name, Text: text, Read: beside}
	definition, err := parseDefinition(source, statemachine.ParserOptions{})
	return definition, sketchOf(source, err)
}

func parseDefinition(source statemachine.Source, options statemachine.ParserOptions) (*statemachine.Definition, error) {
	parser, err := statemachine.NewParser(options)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(source)
	if err != nil {
		return nil, err
	}
	return parsed.Definition, nil
}

func onlyDefinition(file string, definition *statemachine.Definition) definitionSource {
	return func(_ context.Context, _ string, version uint64) (*statemachine.Definition, error) {
		if version != 0 && version != definition.Version {
			return nil, fmt.Errorf("the instance has version %d of %s, but %s is version %d: name the workflow by its id", version, definition.ID, file, definition.Version)
		}
		return definition, nil
	}
}

func definitionInHome(dir string) definitionSource {
	return func(_ context.Context, id string, version uint64) (*statemachine.Definition, error) {
		s, err := sourceInHome(dir, id, version)
		if err != nil {
			return nil, err
		}
		return s.Parsed, nil
	}
}

func sourceInHome(dir, id string, version uint64) (*catalog.Source, error) {
	if err := homedir.Demand(dir); err != nil {
		return nil, err
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	set, faults := home.LoadDefinitions(os.DirFS(dir), parser, nil)
	var found *catalog.Source
	var known []string
	for i := range set.Workflows {
		s := &set.Workflows[i]
		known = append(known, string(s.Parsed.ID))
		if string(s.Parsed.ID) == id && (version == 0 || s.Parsed.Version == version) && (found == nil || s.Parsed.Version > found.Parsed.Version) {
			found = s
		}
	}
	switch {
	case found != nil:
		return found, nil
	case slices.Contains(known, id):
		return nil, fmt.Errorf("the files of %s do not have version %d of %s", dir, version, id)
	case faults != nil && definitionIn(dir, id) != "":
		_, err := definitionInFile(definitionIn(dir, id))
		return nil, err
	case faults != nil:
		return nil, fmt.Errorf("the files of %s have problems, and the valid ones do not define the workflow %s%s\n%w", dir, id, cli.DidYouMean(id, known), faults)
	}
	return nil, fmt.Errorf("there is no workflow %s in %s%s", id, dir, cli.DidYouMean(id, known))
}

func definitionAt(c *client.Client) definitionSource {
	return func(ctx context.Context, id string, version uint64) (*statemachine.Definition, error) {
		stored, err := c.Definition(ctx, id, version)
		if err != nil {
			return nil, adviseDefinition(connect.SuggestWorkflow(ctx, c, id, err), id)
		}
		return parseDefinition(sourceOf(stored), statemachine.ParserOptions{Stored: true})
	}
}

func instanceIn(ctx context.Context, c *client.Client, d *statemachine.Definition, workflowID, instanceID string) (*diagram.Instance, error) {
	now, err := c.Instance(ctx, client.InstanceRequest{WorkflowID: workflowID, InstanceID: instanceID, Minimal: true})
	if err != nil {
		return nil, err
	}
	in := &diagram.Instance{ID: now.ID}
	for _, p := range now.States {
		in.At = append(in.At, statemachine.Position{Machine: statemachine.MachineID(p.StateMachineID), Node: statemachine.NodeID(p.NodeID)})
	}
	for page, err := range c.HistoryPages(ctx, client.HistoryRequest{WorkflowID: workflowID, InstanceID: instanceID}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			in.Add(diagram.Step{
				Event: statemachine.EventName(e.TransitionEvent), Start: d.PositionsNamed(nodeIDs(e.StartState)), End: d.PositionsNamed(nodeIDs(e.EndState)),
			})
		}
	}
	return in, nil
}

func nodeIDs(names []string) (ids []statemachine.NodeID) {
	for _, name := range names {
		ids = append(ids, statemachine.NodeID(name))
	}
	return ids
}

func adviseDefinition(err error, id string) error {
	var refused *client.Error
	switch {
	case hasFileSuffix(id):
		return fmt.Errorf("%w; and there is no file %s", err, id)
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return fmt.Errorf("%w; or give a file instead of the id, or a home with --home", err)
	}
	return err
}

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
