package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	faultkind "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"troupe/statemachine/data"
)

// Schema is a compiled JSON Schema 2020-12. It is built once and never changed,
// so it may be shared. A nil Schema takes everything.
type Schema struct {
	compiled *jsonschema.Schema
	text     data.Value // as it was written
}

// printer words the schema library's complaints.
var printer = message.NewPrinter(language.English)

// schemaBase stands before a schema's name while it is compiled, so that a
// relative $ref resolves to a sibling file and to nothing else.
const schemaBase = "file:///"

// schemaLoader resolves references between schema files through the reader
// that the caller gave. Nothing is ever fetched.
type schemaLoader func(name string) ([]byte, error)

func (l schemaLoader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, schemaBase)
	if !ok || l == nil {
		return nil, fmt.Errorf("reference %q leads outside the folder", shorten(url))
	}
	src, err := l(name)
	if err != nil {
		return nil, err
	}
	v, err := data.Clean(src)
	if err != nil {
		return nil, err
	}
	return v.Any(), nil
}

// CompileSchema compiles doc. A relative reference to another file is resolved
// through load, which gets the name relative to doc; with a nil load there are
// no other files. Nothing else can be reached. The error says what is wrong with
// the schema and is meant for its author.
func CompileSchema(doc data.Value, load func(name string) ([]byte, error)) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(schemaLoader(load))
	const name = schemaBase + "-"
	if err := c.AddResource(name, doc.Any()); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled, doc}, nil
}

// Text returns the schema as it was written; absent for nil.
func (s *Schema) Text() data.Value {
	if s == nil {
		return nil
	}
	return s.text
}

// Check returns an ErrInvalidData that names the first place that does not fit.
func (s *Schema) Check(v data.Value) error {
	if s == nil {
		return nil
	}
	err := s.compiled.Validate(v.Any())
	if err == nil {
		return nil
	}
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	for len(bad.Causes) > 0 {
		bad = slices.MinFunc(bad.Causes, func(a, b *jsonschema.ValidationError) int { // the library's order changes
			return slices.Compare(a.InstanceLocation, b.InstanceLocation)
		})
	}
	if more, ok := bad.ErrorKind.(*faultkind.AdditionalProperties); ok {
		slices.Sort(more.Properties)
	}
	at := "/" + strings.Join(bad.InstanceLocation, "/")
	return fmt.Errorf("%w: at %s: %s", ErrInvalidData, shorten(at), shorten(bad.ErrorKind.LocalizedString(printer)))
}

// shorten keeps a text that came from outside below 64 visible characters.
func shorten(s string) string {
	const most = 64
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if r := []rune(clean); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return clean
}
