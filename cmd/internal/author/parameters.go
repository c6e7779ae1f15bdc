package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"troupe/actors/template"
	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
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
		Long: "List the parameters that templates declare as ${name#type#default}, as the service would,\n" +
			"without a service and without a home. A file is read as what its extension says, in upper\n" +
			"or lower case: .rml (XML), or .docx, .dotx, .docm, .dotm. Any other file, which the service\n" +
			"takes for no template, is read as what it starts with. Every file is looked at; the exit\n" +
			"code is 1 if one of them could not be read or is no template.",
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
