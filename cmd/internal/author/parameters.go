package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/template"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/scaffold"
	"troupe/gateway/client"
	"troupe/statemachine/document"
)

type fileParameters struct {
	File       string           `json:"file"`
	Parameters []template.Param `json:"parameters,omitzero"` // nil when the file is refused: then Error says why
	Error      string           `json:"error,omitempty"`
}

func newParameters() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "parameters FILE...",
		Short: "List the parameters that report and document templates on this disk declare",
		Long: `Lists the parameters ${name#type#default} as the service does, without a service or a home. The extension decides
the format, in upper or lower case: .rml (XML), .docx, .dotx, .docm or .dotm. Other files are recognized by how they
start. The exit code is 1 if a file cannot be read or is not a template.`,
		Example: "  troupe parameters invoice.rml\n" +
			"  troupe parameters templates/*.docx -o json | jq -r '.[].parameters[]?.name'",
	}
	out := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, refused := make([]fileParameters, len(args)), 0
		for i, name := range args {
			files[i].File = name
			params, err := parametersOf(name)
			if err != nil {
				refused++
				files[i].Error = err.Error()
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", client.Printable(name), client.Printable(err.Error()))
			}
			files[i].Parameters = params
		}
		if err := showParameters(out, files); err != nil {
			return err
		}
		if refused > 0 {
			return fmt.Errorf("%d of %d files could not be read as templates", refused, len(files))
		}
		return nil
	}
	return cmd
}

func parametersOf(name string) ([]template.Param, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, withoutName(err)
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, errors.New("is a folder, a pipe or a device, not a file")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, withoutName(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	kind, known := template.KindOf(name)
	if !known {
		head := make([]byte, 8)
		n, err := file.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, withoutName(err)
		}
		kind = template.Sniff(head[:n])
	}
	return template.Parameters(kind, file, st.Size(), template.Limits{})
}

func withoutName(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// A table names the file when there are several, JSON always.
func showParameters(o *cli.Output, files []fileParameters) error {
	if o.Form == cli.FormJSON {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(files); err != nil {
			return err
		}
		return o.Document(text.Bytes())
	}
	rows := [][]string{{"NAME", "TYPE", "DEFAULT"}}
	several := len(files) > 1
	if several {
		rows[0] = append([]string{"FILE"}, rows[0]...)
	}
	for _, f := range files {
		for _, p := range f.Parameters {
			row := []string{p.Name, p.Type, p.Default}
			if several {
				row = append([]string{f.File}, row...)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return nil // nothing but the header: nobody needs that
	}
	return o.Table(rows)
}

func newSchema() *cobra.Command {
	var formats []string
	for _, s := range home.Schemas() {
		formats = append(formats, s.Format)
	}
	return &cobra.Command{
		Use:   "schema [FORMAT]",
		Short: "Print the JSON Schema of a text file of a home, for editors",
		Long: "FORMAT is " + strings.Join(formats, ", ") + "; default: " + formats[0] + ".\n" +
			"A new home has copies of all of them in its folder schemas.",
		Example: "  troupe schema\n" +
			"  troupe schema form > schemas/form.schema.json",
		ValidArgs: formats,
		RunE: func(cmd *cobra.Command, args []string) error {
			format := formats[0]
			if len(args) > 0 {
				format = args[0]
			}
			for _, s := range home.Schemas() {
				if s.Format == format {
					_, err := io.WriteString(cmd.OutOrStdout(), s.Text)
					return err
				}
			}
			advice := "known are " + strings.Join(formats, ", ")
			if near := document.Closest(format, formats); near != "" {
				advice = fmt.Sprintf("did you mean %q?", near)
			}
			return cli.Usagef("there is no schema of %q: %s", format, advice)
		},
	}
}

func newInit() *cobra.Command {
	return &cobra.Command{
		Use:     "init DIR",
		Short:   "Create a small home with two users and one workflow",
		Long:    `DIR must be missing or empty. For a larger example, start troupe serve on an empty folder.`,
		Example: "  troupe init ./office && troupe serve --home ./office",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := scaffold.Home(args[0])
			if err != nil {
				return err
			}
			for _, file := range files {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), file)
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "start it with: troupe serve --home %[1]s\n"+
				"then, so that Alice can sign in: echo 'a password' | troupe password set --home %[1]s --user alice\n", args[0])
			return nil
		},
	}
}

func newNew() *cobra.Command {
	c := config.New()
	workflow := &cobra.Command{
		Use:     "workflow NAME",
		Short:   "Add a workflow to a home: a request that needs approval",
		Example: "  troupe new workflow travel-request --home ./office",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Load(); err != nil {
				return err
			}
			if err := homedir.Demand(c.Home); err != nil {
				return err
			}
			file, err := scaffold.Workflow(c.Home, args[0])
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), file)
			return nil
		},
	}
	workflow.Flags().AddFlag(c.Flags.Lookup("home"))
	return cli.Group("new", "Add files to a home", "  troupe new workflow travel-request", workflow)
}
