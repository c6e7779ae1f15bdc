package schematest

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Format is a text format: its schema, and the reader of its files. New makes one.
type Format struct {
	text   string
	schema *jsonschema.Schema
	read   func(file []byte) error
}

// New compiles the schema. read is the reader: it returns the faults of a file, which is JSON.
func New(t testing.TB, schema string, read func(file []byte) error) *Format {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", Data(t, schema).Any()); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return &Format{schema, compiled, read}
}

// Check returns why the schema refuses a file.
func (f *Format) Check(file data.Value) error { return f.schema.Validate(file.Any()) }

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

// Sees fails for each file that the schema or the reader takes. Each file has a slip in it.
func (f *Format) Sees(t *testing.T, files ...string) {
	t.Helper()
	for _, text := range files {
		file := Data(t, text)
		if f.Check(file) == nil || f.read([]byte(file)) == nil {
			t.Errorf("the schema or the reader takes it:\n%s", text)
		}
	}
}

// IsNeverStricter fails when the schema refuses a file that the reader takes.
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
	if refused := f.Check(file); refused != nil && f.read([]byte(file)) == nil {
		return refused
	}
	return nil
}

// Data returns the JSON of a file, which is YAML or JSON.
func Data(t testing.TB, text string) data.Value {
	t.Helper()
	v, err := parsed(t, text).Data()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parsed(t testing.TB, text string) *document.Node {
	t.Helper()
	name := "file.yaml"
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		name = "file.json"
	}
	n, err := document.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
