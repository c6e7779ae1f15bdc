package statemachine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"troupe/statemachine/data"
)

// schema is a compiled JSON Schema 2020-12. It is built once and shared.
type schema struct {
	compiled *jsonschema.Schema
	text     data.Value // as it was written
}

// printer words the schema library's complaints.
var printer = message.NewPrinter(language.English)

// schemaBase stands before a schema's name while it is compiled, so that a
// relative $ref resolves to a sibling file and to nothing else.
const schemaBase = "file:///"

// schemaLoader resolves references between schema files through the reader
// that the parser was given. Nothing is ever fetched.
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

// compileSchema compiles doc. References are resolved through load, which may
// be nil when there is nothing beside the definition.
func compileSchema(doc data.Value, load schemaLoader) (*schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(load)
	const name = schemaBase + "-"
	if err := c.AddResource(name, doc.Any()); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	return &schema{compiled, doc}, nil
}

// check returns an ErrInvalidData that names the first place that does not fit.
func (s *schema) check(v data.Value) error {
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
		bad = bad.Causes[0]
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
