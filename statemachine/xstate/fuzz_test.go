package xstate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"troupe/statemachine"
	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// FuzzImport holds that no bytes make Import panic or take long, that what it returns can be parsed, and that it comes
// back from an export.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil {
		f.Fatal(err)
	}
	exported, err := filepath.Glob("testdata/exported/definition/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, exported...) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		`{"initial":"a","states":{"a":{"on":{"*":".b","x.*":{}},"initial":"b","states":{"b":{}},"onDone":"a"}}}`,
		`{"on":{"a":{"guard":"g"}},"guards":{"g":{"type":"and","guards":["h","h"]},"h":"true"}}`,
		`{"type":"parallel","states":{"a":{"type":"history"},"b":{"initial":"a","states":{"a":{}}}},"meta":{"troupe":{"definition":{},"machines":true}}}`,
		`{"on":{"a":{"actions":{"type":"l","params":{"x":"\u2028\ufeff"}}}},"actions":{"l":{"log":"${params.x}"}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		watched := cputest.Watch()
		out, err := Import("machine.json", text)
		if took := watched(); took > 20*time.Second {
			t.Fatalf("Import took %v for %d bytes", took, len(text))
		}
		if err != nil {
			var faults document.Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("Import(%q): %v, want Faults", text, err)
			}
			return
		}
		for _, file := range out {
			checkComesBack(t, file)
		}
	})
}

func checkComesBack(t *testing.T, file File) {
	src := statemachine.Source{File: "w.yaml", Text: file.Text}
	parser, err := newParser()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(src)
	if err != nil || string(parsed.ID) != file.ID {
		t.Fatalf("%s cannot be parsed: %v", file.Text, err)
	}
	machine, _, err := Export(src)
	if err != nil {
		t.Fatalf("Export(%s): %v", file.Text, err)
	}
	if _, err := Import("again.json", machine); err != nil {
		t.Fatalf("%s\n%s does not come back: %v", file.Text, machine, err)
	}
}

// TestYAMLMeansWhatWasWritten writes random trees and reads them again.
func TestYAMLMeansWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := mappingAt(nil)
		put(tree, "top", randomTree(4).Draw(t, "tree"))
		w := newYAMLWriter()
		w.comment("a comment\nof two lines")
		w.top(tree)
		read, err := document.Parse("a.yaml", []byte(w.text.String()))
		if err != nil {
			t.Fatalf("%s\n%v", w.text.String(), err)
		}
		want, err := tree.Data()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read.Data(); err != nil || got.String() != want.String() {
			t.Fatalf("%s\nis %s, want %s (%v)", w.text.String(), got, want, err)
		}
		checkSources(t, w, read, tree)
	})
}

// checkSources holds that the writer finds each node by the place where the parser sees it.
func checkSources(t *rapid.T, w *yamlWriter, read, written *document.Node) {
	if from := w.sourceOf(read.Line, read.Column); from != written && read.Line > 2 {
		// A mapping or list begins where its first member does.
		if from == nil || len(read.Fields)+len(read.Items) == 0 {
			t.Fatalf("%d:%d is %v, want %v in\n%s", read.Line, read.Column, from, written, w.text.String())
		}
	}
	for i, f := range read.Fields {
		checkSources(t, w, f.Key, written.Fields[i].Key)
		checkSources(t, w, f.Value, written.Fields[i].Value)
	}
	for i, item := range read.Items {
		checkSources(t, w, item, written.Items[i])
	}
}

func randomTree(depth int) *rapid.Generator[*document.Node] {
	text := rapid.OneOf(
		rapid.StringMatching(`[a-zA-Zé0-9 :#'"\[\]{},&*!|>%@~$./?-]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{"null", "true", "on", "y", "~", "1", "01", "1.5", "-", "? a", "a: b", " a", "a ", "---", "...", "<<", "\ufeff", "\u2028", "\u0085", "\x00", "a\nb", "${x}", "# a"}),
	)
	scalar := rapid.Custom(func(t *rapid.T) *document.Node {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return wordAt(nil, document.Number, rapid.SampledFrom([]string{"0", "-1", "1.5", "1e5", "12345678901234567890"}).Draw(t, "number"))
		case 1:
			return wordAt(nil, document.Bool, "true")
		case 2:
			return placed(nil, document.Null)
		}
		return textAt(nil, text.Draw(t, "text"))
	})
	if depth == 0 {
		return scalar
	}
	return rapid.Custom(func(t *rapid.T) *document.Node {
		switch rapid.IntRange(0, 2).Draw(t, "shape") {
		case 0:
			return scalar.Draw(t, "scalar")
		case 1:
			return listAt(nil, rapid.SliceOfN(randomTree(depth-1), 0, 4).Draw(t, "items")...)
		}
		n := mappingAt(nil)
		for _, key := range rapid.SliceOfNDistinct(rapid.OneOf(text, rapid.StringMatching(`[a-z]{600}`)), 0, 4, rapid.ID[string]).Draw(t, "keys") {
			if _, err := data.Clean(data.AppendString(nil, key)); err == nil {
				putAt(n, nil, key, randomTree(depth-1).Draw(t, "value"))
			}
		}
		return n
	})
}
