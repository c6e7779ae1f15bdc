package formportal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// TestTemplate plays testdata/template: the files of forms and checklists, with their faults, with what authors are warned of, and what templates say.
// "form" and "checklist" read the text below with what knownSample knows, "any" with every workflow known, and "without-workflows" with nothing.
func TestTemplate(t *testing.T) {
	datadriven.Walk(t, "testdata/template", func(t *testing.T, path string) {
		known := map[string]Known{"": knownSample(t), "without-workflows": {}, "any": {Workflow: func(string) (*statemachine.Definition, bool) { return nil, true }}}
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		require.NoError(t, err)
		var got *Template
		forms := map[string]*Template{}
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			var words []string
			for _, arg := range cmd.CmdArgs {
				words = append(words, arg.Key)
			}
			var out strings.Builder
			switch cmd.Cmd {
			case "form", "checklist":
				src := TemplateText{Kind: form.KindForm, File: "t.yaml", Text: []byte(cmd.Input + "\n"), Read: readSample, Modified: time.Unix(1, 2_345_678)}
				if len(words) == 1 && strings.HasSuffix(words[0], ".yaml") { // the text is in a file
					var err error
					src.Text, err = os.ReadFile("testdata/" + words[0])
					require.NoError(t, err)
					words = nil
				}
				if cmd.Cmd == "checklist" {
					src.Kind = form.KindChecklist
				}
				var err error
				got, err = ParseTemplate(src, known[strings.Join(words, " ")])
				var faults document.Faults
				if errors.As(err, &faults) {
					assert.True(t, got == nil || got.ID == "", "a template in spite of its faults")
					return faults.Error() + "\n"
				} else if err != nil {
					return err.Error() + "\n"
				}
				for _, w := range got.Warnings {
					fmt.Fprintln(&out, "warning:", w)
				}
				forms[got.ID] = got
				return cmp.Or(out.String(), "ok\n")
			case "show":
				fmt.Fprintf(&out, "%s %s %q %q, enabled: %t, roles %v\n", got.Kind, got.ID, got.Name.For(), got.Description.For(), got.Enabled, got.Roles)
				fmt.Fprintf(&out, "workflows %v, submits %q, modified %s\nschema %s\nhints %s\n", got.Workflows, got.Submit, got.Modified.Format(time.RFC3339Nano), got.Schema, got.UI)
				fmt.Fprintf(&out, "digest %x, in several languages: %t\n", got.Digest[:4], got.texts != nil)
				assert.True(t, got.Kind != form.KindForm || got.Digest == form.DigestOf(got.Schema), "the digest")
				for _, i := range got.Items {
					fmt.Fprintf(&out, "item %s %q %q, required: %t\n", i.ID, i.Label.For(), i.Help.For(), i.Required)
				}
			case "check": // data, one on a line
				for text := range strings.Lines(cmd.Input) {
					err := got.Check(data.Value(strings.TrimSpace(text)))
					assert.True(t, err == nil || errors.Is(err, statemachine.ErrInvalidData), err)
					fmt.Fprintln(&out, cmp.Or(err, errors.New("fits")))
				}
			case "for": // languages that a reader asks for
				fmt.Fprintf(&out, "%q %q\nschema %s\nhints %s\n", got.Name.For(words...), got.Description.For(words...), got.SchemaFor(words...), got.UIFor(words...))
				for _, i := range got.Items {
					fmt.Fprintf(&out, "item %s %q %q\n", i.ID, i.Label.For(words...), i.Help.For(words...))
				}
			case "role": // roles of a caller
				role, ok := got.RoleOf(words)
				fmt.Fprintf(&out, "%q %t\n", role, ok)
			case "bound": // events that another workflow declares
				fmt.Fprintln(&out, got.BoundTo("other", func(name string) bool { return strings.Contains(" "+strings.Join(words, " ")+" ", " "+name+" ") }))
			case "tasks": // of a workflow, with the forms above; "part": there may be others
				flow, err := parser.Parse(statemachine.Source{File: "flow.yaml", Text: []byte(cmd.Input)})
				require.NoError(t, err)
				all := &TaskForms{Find: func(id string) *Template { return forms[id] }, IDs: slices.Sorted(maps.Keys(forms)), Part: len(words) != 0}
				faults, warnings := all.Check("flow.yaml", flow.Definition)
				for _, f := range faults {
					fmt.Fprintln(&out, f.Error())
				}
				for _, w := range warnings {
					fmt.Fprintln(&out, "warning:", w.Reason)
				}
				return cmp.Or(out.String(), "ok\n")
			default:
				t.Fatalf("unknown command %q", cmd.Cmd)
			}
			return strings.ReplaceAll(out.String(), " \n", "\n")
		})
	})
}
