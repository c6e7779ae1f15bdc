package author

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/client"
	"troupe/statemachine"
)

func newImport() *cobra.Command {
	c := config.New()
	var into string
	var force bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make definitions of a file of another tool",
		Long: "Make definitions of a file of another tool: " + foreignNames() + ".\n" +
			"Writes ID.yaml for each of them and prints its path. What a definition cannot express is\n" +
			"named with its line, and then nothing is written. What was left out without harm is said\n" +
			"on standard error.",
		Example: "  troupe import order.scxml --home ./troupe-home\n" +
			"  troupe import order.scxml --into workflows --force",
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().StringVar(&into, "into", "", "the folder that the definitions go to (default: workflows of the home)")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, err := foreignOf(args[0])
		if err != nil {
			return err
		}
		if into == "" {
			_ = c.Load() // only the home is needed, and its settings may have faults
			if err := homedir.Demand(c.Home); err != nil {
				return fmt.Errorf("%w; or say --into", err)
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
			return nil, fmt.Errorf("%s makes a definition with faults:\n%w", name, err)
		}
	}
	return files, nil
}

func beside(folder string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%q is not beside the file", name)
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
				err = fmt.Errorf("%s is there: --force replaces it; nothing was written", path(f))
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
