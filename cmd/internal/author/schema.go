package author

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/statemachine/document"
)

func newSchema() *cobra.Command {
	var formats []string
	for _, s := range home.Schemas() {
		formats = append(formats, s.Format)
	}
	return &cobra.Command{
		Use:   "schema [FORMAT]",
		Short: "Print the JSON Schema of a text file of a home, for editors",
		Long: "Print the JSON Schema 2020-12 of a text file of a home, for editors and other tools.\n" +
			"FORMAT is " + strings.Join(formats, ", ") + "; without it: " + formats[0] + ".\n" +
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
