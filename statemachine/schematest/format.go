package schematest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Format is a text format: its schema, and the reader of its files.
type Format struct {
	// Schema is the text of the schema.
	Schema string
	// Check holds a file against the compiled schema.
	Check func(file data.Value) error
	// Read is the reader: it returns the faults of a file, which is JSON.
	Read func(file []byte) error
}

// Takes fails for each file that the schema refuses. The files are right, and YAML or JSON.
func (f *Format) Takes(t *testing.T, files ...string) {
	t.Helper()
	if len(files) == 0 {
		t.Error("no files")
	}
	for _, text := range files {
		if err := f.Check(Data(t, text)); err != nil {
			t.Errorf("the schema refuses what the reader takes: %v\n%s", err, text)
		}
	}
}

// IsNeverStricter fails when the schema refuses a file that the reader takes. It changes the
// given files, which are right, at random.
func (f *Format) IsNeverStricter(t *testing.T, files ...string) {
	t.Helper()
	from := f.changed(t, files)
	rapid.Check(t, func(t *rapid.T) {
		file := from.Draw(t, "file")
		if refused := f.stricter(file); refused != nil {
			t.Fatalf("the reader takes what the schema refuses: %v\n%s", refused, file)
		}
	})
}

// IsStricter is the control of IsNeverStricter: it fails when tries changes do not show that
// the schema is stricter than the reader.
func (f *Format) IsStricter(t *testing.T, tries int, files ...string) {
	t.Helper()
	from := f.changed(t, files)
	for seed := range tries {
		if f.stricter(from.Example(seed)) != nil {
			return
		}
	}
	t.Errorf("%d changes have not shown that the schema is stricter than the reader", tries)
}

// stricter returns why the schema refuses a file that the reader takes; nil when it does not.
func (f *Format) stricter(file data.Value) error {
	if refused := f.Check(file); refused != nil && f.Read([]byte(file)) == nil {
		return refused
	}
	return nil
}

// Data returns the JSON of a file, which is YAML or JSON.
func Data(t testing.TB, text string) data.Value {
	t.Helper()
	name := "file.yaml"
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		name = "file.json"
	}
	n, err := document.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := n.Data()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
