package scxml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/scxml"
)

// TestImportScripts plays the scripts in testdata/import, one subject a file:
//
//	import          the document; prints the definitions and the notes, or the faults
//	export          a definition; prints the document and the notes, or the faults
//	play            a document like those of the W3C suite: whether it passes
//
// Every definition is held against the parser.
func TestImportScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/import", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			if cmd.Cmd == "export" {
				x, err := scxml.Export("w.yaml", []byte(cmd.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				return string(x.Text) + notesText(x.Notes)
			}
			read := func(name string) ([]byte, error) {
				text, ok := map[string]string{
					"sub1.scxml": `<scxml version="1.0"><final id="end"/></scxml>`,
					"data.json":  ` {"a": [1, 2]} `, "words.txt": "two\n  words", "data.xml": "<a/>", "other.scxml": `<scxml name="else"><final id="x"/></scxml>`,
					"broken.scxml": `<scxml><script/></scxml>`,
				}[name]
				if !ok {
					return nil, fmt.Errorf("%s is not there", name)
				}
				return []byte(text), nil
			}
			files, err := scxml.Import("w.scxml", []byte(cmd.Input), read)
			if err != nil {
				return err.Error() + "\n"
			}
			if cmd.Cmd == "play" {
				return verdict(t, files, read)
			}
			return definitionsText(t, files)
		})
	})
}

func verdict(t *testing.T, files []scxml.File, read func(name string) ([]byte, error)) string {
	st, err := newStage(files)
	require.NoError(t, err)
	st.load = read
	if err := st.playVerdict(files[0].ID); err != nil {
		return err.Error() + "\n"
	}
	return "passes\n"
}

func newParser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	return p
}

func notesText(notes document.Faults) string {
	var out strings.Builder
	for _, n := range notes {
		out.WriteString("note: " + n.Error() + "\n")
	}
	return out.String()
}

func definitionsText(t *testing.T, files []scxml.File) string {
	var out strings.Builder
	for _, f := range files {
		fmt.Fprintf(&out, "%s.yaml\n%s%s", f.ID, f.Text, notesText(f.Notes))
		_, err := newParser(t).Parse(statemachine.Source{File: f.ID + ".yaml", Text: f.Text})
		assert.NoError(t, err, "the definition has faults")
	}
	return out.String()
}

func TestBounds(t *testing.T) {
	for sentence, c := range map[string]struct{ text, reason string }{
		"a large file":      {"<scxml>" + strings.Repeat(" ", 1<<20), "more than 1048576"},
		"a deep document":   {strings.Repeat("<state>", 61), "nested deeper than 60"},
		"many elements":     {"<scxml>" + strings.Repeat("<state/>", 20_000) + "</scxml>", "more than 20000 elements"},
		"an entity":         {`<!DOCTYPE x [<!ENTITY a "b">]><scxml><state id="&a;"/></scxml>`, "a document type is not read"},
		"an unknown entity": {`<scxml><state id="&a;"/></scxml>`, "XML: invalid character entity &a;"},
		"not XML":           {"<scxml", "XML: unexpected EOF"},
		"another encoding":  {`<?xml version="1.0" encoding="UTF-16"?><scxml/>`, "XML: "},
		"nothing":           {"", "no element"},
		"another root":      {"<html/>", "its element is \"html\""},
	} {
		_, err := scxml.Import("w.scxml", []byte(c.text), nil)
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && strings.Contains(err.Error(), c.reason), "%s: got %.200v, want %s", sentence, err, c.reason)
	}
}

// TestSlipsAreBounded: what looks for the word that was meant takes long, and there may be many.
func TestSlipsAreBounded(t *testing.T) {
	text := `<scxml datamodel="ecmascript"><state id="a">` + strings.Repeat(`<transition cond="unknown1 + unknown2 &amp;&amp; In('b')" target="a"/>`, 1000) + `</state></scxml>`
	files, err := scxml.Import("w.scxml", []byte(text), nil)
	if err != nil || len(files[0].Notes) > 20 {
		t.Errorf("got %v and %d notes", err, len(files[0].Notes))
	}
}

// TestNames: where the id of a definition comes from.
func TestNames(t *testing.T) {
	for _, c := range []struct{ file, name, id string }{
		{"dir/order.txml.scxml", "", "order"}, {"order.scxml", "Order 7", "Order-7"}, {"ä.scxml", "", "chart"}, {"a.scxml", "..", "a"},
	} {
		files, err := scxml.Import(c.file, []byte(`<scxml name="`+c.name+`"><final id="x"/></scxml>`), nil)
		assert.True(t, err == nil && files[0].ID == c.id, "%s named %q: got %v, %v, want %s", c.file, c.name, files, err, c.id)
	}
}

// FuzzImport: whatever the bytes are, the import ends, and what it makes is a text that can be read. What Export writes of that can be
// imported again, and is the same definition then.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`<scxml name="a" initial="s"><datamodel><data id="x" expr="1"/></datamodel><state id="s"><onentry><if cond="x==1"><raise event="e"/><else/><log expr="x"/></if></onentry><transition event="e *" cond="x" target="t" type="internal"/></state><final id="t"><donedata><param name="n" expr="x"/></donedata></final></scxml>`))
	f.Add([]byte(`<scxml><parallel id="p"><state id="a"><invoke id="i" autoforward="true"><content><scxml><final/></scxml></content><finalize><assign location="x" expr="_event.data"/></finalize></invoke></state><history id="h" type="deep"><transition target="a"/></history></parallel></scxml>`))
	f.Add([]byte(`<scxml xmlns:troupe="urn:troupe:definition" datamodel="cel" troupe:semantics="native" troupe:rest='{"allow":{}}'><state id="a" troupe:machine="m"><transition event="after.1s.a" troupe:after="1s" target="b"/><state id="b"/></state></scxml>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := scxml.Import("w.scxml", text, nil)
		var faults document.Faults
		require.False(t, err != nil && !errors.As(err, &faults), "the error is none of faults: %v", err)
		for _, file := range files {
			if _, err := document.Parse("w.yaml", file.Text); err != nil {
				t.Fatalf("%v\n%s", err, file.Text)
			}
			x, err := scxml.Export("w.yaml", file.Text)
			if err != nil {
				continue // a definition that the parser would refuse
			}
			if _, err := scxml.Import("w.scxml", x.Text, nil); err != nil {
				_, wrong := newParser(t).Parse(statemachine.Source{File: "w.yaml", Text: file.Text})
				require.Error(t, wrong, "what is exported cannot be imported: %v\n%s\n%s", err, file.Text, x.Text)
			}
		}
	})
}

// FuzzExport: whatever the definition is, the export ends.
func FuzzExport(f *testing.F) {
	f.Add([]byte("id: a\nguards: {g: 'true'}\nactions: {x: [{log: 'a ${1}'}]}\nstateMachines: {m: {states: {a: {after: {1s: b}, entry: x, on: {go: {guard: g, target: b}}}, b: {type: final}}}}"))
	f.Add([]byte("id: a\nstateMachines: {m: {type: parallel, states: {a: {initial: {target: b, actions: [{raise: {event: e, data: {x: '${1}'}}}]}, states: {b: {}}}}}, n: {states: {b: {invoke: {workflow: w, data: {svcPublic: {a: 1}}, onDone: b}}}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := scxml.Export("w.yaml", text); err != nil {
			var faults document.Faults
			require.ErrorAs(t, err, &faults, "the error is none of faults")
		}
	})
}
