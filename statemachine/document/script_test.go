package document_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
	"troupe/statemachine/document"
)

// TestDocuments plays testdata/tree:
//
//	parse FILE    a document, with "quoted" a literal of Go: its JSON, or its faults
//	read KIND OF  what a reader finds there, and its faults
//	known KEY…    the faults of a mapping that may have these keys
//	places        where each node stands
//	closest       for a word a line, the nearest of the keys
func TestDocuments(t *testing.T) {
	var root *document.Node
	keys := []string{"target", "guard", "actions", "allow", "entry", "exit", "on", "id", "description", "stateMachines"}
	datadriven.Walk(t, "testdata/tree", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text, c := expand(d.Input), &document.Collector{File: "a.yaml"}
			var out strings.Builder
			switch d.Cmd {
			case "parse":
				if text += "\n"; d.HasArg("quoted") {
					var err error
					text, err = strconv.Unquote(d.Input)
					require.NoError(t, err)
				}
				var err error
				watched := cputest.Watch()
				root, err = document.Parse(d.CmdArgs[0].Key, []byte(text))
				assert.LessOrEqual(t, watched(), 20*time.Second, "%s: %d bytes took", d.Pos, len(text))
				if err != nil {
					assert.True(t, root == nil && len(err.(document.Faults)) > 0 && len(err.Error()) <= 64<<10, "%s", d.Pos) //nolint:errorlint // Parse promises the type
					return shortened(err.Error())
				}
				v, err := root.Data()
				require.NoError(t, err)
				return shortened(v.String())
			case "read":
				of := root
				for name := range strings.SplitSeq(d.CmdArgs[1].Key, ".") {
					of = of.Field(name)
				}
				read(&out, c, d.CmdArgs[0].Key, of)
			case "known":
				of, names := root, []string{}
				for _, a := range d.CmdArgs {
					if names = append(names, a.Key); a.Key == "of" {
						of, names = root.Field(a.Vals[0]), nil
					}
				}
				c.Known(of, names...)
			case "places":
				places(&out, root, "$")
			case "closest":
				for word := range strings.SplitSeq(text, "\n") {
					fmt.Fprintf(&out, "%.20q: %q\n", word, document.Closest(word, keys))
				}
			}
			if err := c.Err(); err != nil {
				fmt.Fprintln(&out, err)
			}
			return out.String()
		})
	})
}

func read(out *strings.Builder, c *document.Collector, kind string, of *document.Node) {
	switch kind {
	case "text":
		fmt.Fprintf(out, "%q\n", c.Text(of))
	case "bool":
		fmt.Fprintf(out, "%t\n", c.Bool(of))
	case "int":
		n, ok := c.Int(of)
		fmt.Fprintf(out, "%d %t\n", n, ok)
	case "texts":
		fmt.Fprintf(out, "%#v\n", c.Texts(of))
	}
}

func places(out *strings.Builder, n *document.Node, path string) {
	fmt.Fprintf(out, "%d:%d %s\n", n.Line, n.Column, path)
	for i, item := range n.Items {
		places(out, item, path+fmt.Sprintf("[%d]", i))
	}
	for _, f := range n.Fields {
		fmt.Fprintf(out, "%d:%d %s, the key %s\n", f.Key.Line, f.Key.Column, path, f.Key.Text)
		places(out, f.Value, path+"."+f.Key.Text)
	}
}

var repeated = regexp.MustCompile(`(?s)⟨(.*?)⟩\{(\d+)\}`)

// expand writes out each ⟨text⟩{n}, n times the text, with # as the number of the time.
func expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(part string) string {
		m, all := repeated.FindStringSubmatch(part), strings.Builder{}
		n, _ := strconv.Atoi(m[2])
		if !strings.Contains(m[1], "#") {
			return strings.Repeat(m[1], n)
		}
		for i := range n {
			all.WriteString(strings.ReplaceAll(m[1], "#", strconv.Itoa(i)))
		}
		return all.String()
	})
}

func shortened(text string) string {
	if len(text) > 2000 {
		return fmt.Sprintf("%.200s… %q, %d bytes", text, text[len(text)-20:], len(text))
	}
	return text
}
