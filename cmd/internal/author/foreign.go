package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/export"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/scxml"
	"troupe/statemachine/xstate"
)

type foreign struct {
	name       string   // for --to
	extensions []string // of the files that are imported
	about      string
	// imports makes definitions of a file; read returns another one beside it. The error is document.Faults where the
	// file has some.
	imports func(name string, text []byte, read func(name string) ([]byte, error)) ([]importedFile, error)
	// exports writes a definition. The notes name what the other tool does not see.
	exports func(statemachine.Source) (out []byte, notes document.Faults, err error)
}

type importedFile struct {
	id    string
	text  []byte
	notes document.Faults
}

// Another one is another row.
var foreigns = []foreign{
	{
		name: "scxml", extensions: []string{".scxml"}, about: "W3C SCXML",
		imports: func(name string, text []byte, read func(string) ([]byte, error)) (out []importedFile, err error) {
			files, err := scxml.Import(name, text, read)
			for _, f := range files {
				out = append(out, importedFile{f.ID, f.Text, f.Notes})
			}
			return out, err
		},
		exports: func(s statemachine.Source) ([]byte, document.Faults, error) {
			x, err := scxml.Export(s.File, s.Text)
			return x.Text, x.Notes, err
		},
	},
	{
		name: "xstate", extensions: []string{".json"}, about: "the JSON of XState v5",
		imports: func(name string, text []byte, _ func(string) ([]byte, error)) (out []importedFile, err error) {
			files, err := xstate.Import(name, text)
			for _, f := range files {
				out = append(out, importedFile{f.ID, f.Text, f.Warnings})
			}
			return out, err
		},
		exports: xstate.Export,
	},
}

func foreignOf(file string) (*foreign, error) {
	extension := strings.ToLower(filepath.Ext(file))
	var known []string
	for i := range foreigns {
		if slices.Contains(foreigns[i].extensions, extension) {
			return &foreigns[i], nil
		}
		known = append(known, foreigns[i].extensions...)
	}
	return nil, cli.Usagef("%s: the file needs a known extension: %s", file, strings.Join(known, ", "))
}

func foreignNamed(name string) (*foreign, error) {
	var known []string
	for i := range foreigns {
		if foreigns[i].name == name {
			return &foreigns[i], nil
		}
		known = append(known, foreigns[i].name)
	}
	return nil, cli.Usagef("--to %q: it is %s", name, strings.Join(known, " or "))
}

func foreignNames() string {
	names := make([]string, len(foreigns))
	for i, f := range foreigns {
		names[i] = f.name + " (" + f.about + ")"
	}
	return strings.Join(names, ", ")
}

func newExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export WORKFLOW",
		Short: "Export a definition to the format of another tool, or histories",
		Long: "Writes the current version to standard output: " + foreignNames() + ".\n" +
			"Asks the service, which needs mod-workflows, or with --home the server that runs there, or reads the home's files\n" +
			"if none is running. What the other tool ignores is reported on standard error; troupe import reads it again.\n\n" +
			"The commands below export the history of instances. To export a workflow that has the name of one of them, write -- in\n" +
			"front of it.",
		Example: "  troupe export leave-request --to scxml > leave-request.scxml",
	}
	cmd.AddCommand(export.Commands()...)
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	connect.Complete(cmd, at)
	cmd.Flags().StringVar(&to, "to", "", "the format: "+foreignNames())
	cli.CompleteFlag(cmd, "to", func() (known []string) {
		for _, f := range foreigns {
			known = append(known, f.name)
		}
		return known
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if to == "" {
			return cli.Usage(errors.New("--to is required: the format, " + foreignNames()))
		}
		format, err := foreignNamed(to)
		if err != nil {
			return err
		}
		source, err := definitionText(cmd.Context(), at, args[0])
		if err != nil {
			return connect.Explain(err)
		}
		out, notes, err := format.exports(source)
		if err != nil {
			return err
		}
		for _, note := range notes {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note: "+client.Printable(note.Error()))
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return cmd
}

func definitionText(ctx context.Context, at *connect.Connection, workflow string) (statemachine.Source, error) {
	if at.Home != "" && at.Address == "" && at.Context == "" && at.TokenFile == "" && !homedir.IsServed(ctx, at.Home) {
		s, err := sourceInHome(at.Home, workflow, 0)
		if err != nil {
			return statemachine.Source{}, err
		}
		return statemachine.Source{File: s.File, Text: s.Text, Read: readFrom(s.Refs)}, nil
	}
	c, err := at.Client(0)
	if err != nil {
		return statemachine.Source{}, err
	}
	defer c.Close()
	d, err := c.Definition(ctx, workflow, 0)
	if err != nil {
		return statemachine.Source{}, adviseDefinition(connect.SuggestWorkflow(ctx, c, workflow, err), workflow)
	}
	return sourceOf(d), nil
}

func sourceOf(d *api.Definition) statemachine.Source {
	return statemachine.Source{File: d.File, Text: []byte(d.Text), Read: readFrom(d.Refs)}
}

func readFrom[T ~string | ~[]byte](refs map[string]T) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, ok := refs[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
}

func newImport() *cobra.Command {
	c := config.New()
	var into string
	var force bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Convert a file of another tool to definitions",
		Long: "Reads " + foreignNames() + ".\n" +
			"Writes ID.yaml for each definition and prints its path. What a definition cannot express is reported with its\n" +
			"line, and nothing is written. What was left out without harm is reported on standard error.",
		Example: "  troupe import order.scxml --home ./troupe-home\n" +
			"  troupe import order.scxml --into workflows --force",
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().StringVar(&into, "into", "", "folder to write the definitions to (default: workflows in the home)")
	cmd.Flags().BoolVar(&force, "force", false, "replace existing files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, err := foreignOf(args[0])
		if err != nil {
			return err
		}
		if into == "" {
			_ = c.Load() // only the home is needed, and its settings may have faults
			if err := homedir.Demand(c.Home); err != nil {
				return fmt.Errorf("%w; or use --into", err)
			}
			into = filepath.Join(c.Home, home.WorkflowsFolder)
		}
		files, err := importFile(from, args[0], into)
		if err != nil {
			return err
		}
		for _, f := range files {
			for _, note := range f.notes {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note: "+client.Printable(note.Error()))
			}
		}
		paths, err := writeImported(into, files, force)
		for _, path := range paths {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), path)
		}
		return err
	}
	return cmd
}

func importFile(from *foreign, name, into string) ([]importedFile, error) {
	text, err := cli.ReadInputFile(name)
	if err != nil {
		return nil, err
	}
	files, err := from.imports(filepath.Base(name), text, beside(filepath.Dir(name)))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if _, err := parseDefinition(statemachine.Source{File: f.id + ".yaml", Text: f.text, Read: beside(into)}, statemachine.ParserOptions{}); err != nil {
			return nil, fmt.Errorf("%s would be an invalid definition:\n%w", name, err)
		}
	}
	return files, nil
}

func beside(folder string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%q is not in the folder of the file", name)
		}
		return cli.ReadInputFile(filepath.Join(folder, filepath.FromSlash(name)))
	}
}

// writeImported writes the files, or none of them when one is there and force does not allow to replace it.
func writeImported(into string, files []importedFile, force bool) (paths []string, err error) {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, err
	}
	path := func(f importedFile) string { return filepath.Join(into, f.id+".yaml") }
	for _, f := range files {
		if _, err := os.Lstat(path(f)); !errors.Is(err, fs.ErrNotExist) && !force {
			if err == nil {
				err = fmt.Errorf("%s exists; nothing was written; use --force to replace it", path(f))
			}
			return nil, err
		}
	}
	for _, f := range files {
		if err := homedir.WriteWhole(path(f), f.text, 0o644); err != nil {
			return paths, err
		}
		paths = append(paths, path(f))
	}
	return paths, nil
}
