package statemachine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	faultkind "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/schemacost"
)

// Schema is a compiled JSON Schema 2020-12. It is built once and never changed,
// so it may be shared. A nil Schema takes everything.
type Schema struct {
	compiled *jsonschema.Schema
	text     data.Value // as it was written
	cost     schemacost.Estimate
	weight   schemaWeight
}

// schemaWeight is what compiling a schema takes.
type schemaWeight struct {
	objects  int // mappings and lists that it is written with
	patterns int // weight of its regular expressions, in instructions
}

// printer words the schema library's complaints.
var printer = message.NewPrinter(language.English)

// schemaBase stands before a schema's name while it is compiled, so that a
// relative $ref resolves to a sibling file and to nothing else.
const (
	schemaBase = "file:///"
	schemaName = "-"
)

// schemaLoader resolves references between schema files through the reader
// that the caller gave. Nothing is ever fetched.
type schemaLoader struct {
	read func(name string) ([]byte, error)
	docs *schemacost.Documents
}

func (l schemaLoader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, schemaBase)
	if !ok || l.read == nil {
		return nil, errOutside
	}
	src, err := l.read(name)
	if err != nil {
		return nil, err
	}
	v, err := data.Clean(src)
	if err != nil {
		return nil, err
	}
	doc := v.Any()
	return doc, l.docs.Add(doc)
}

// CompileSchema compiles doc. A relative reference to another file is resolved
// through load, which gets the name relative to doc; with a nil load there are
// no other files. Nothing else can be reached. The error says what is wrong with
// the schema and is meant for its author: also that checking against it costs too much.
func CompileSchema(doc data.Value, load func(name string) ([]byte, error)) (*Schema, error) {
	s, err := compileUnbounded(doc, load)
	if err == nil {
		err = s.affordable()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// compileUnbounded is CompileSchema without a bound on the cost of a check: only its own cost is bounded.
func compileUnbounded(doc data.Value, load func(name string) ([]byte, error)) (*Schema, error) {
	var docs schemacost.Documents
	var patterns schemacost.Patterns
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(schemaLoader{load, &docs})
	c.UseRegexpEngine(patterns.Compile)
	const name = schemaBase + schemaName
	written := doc.Any()
	if err := docs.Add(written); err != nil {
		return nil, err
	}
	if err := c.AddResource(name, written); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	patterns.End()
	if err != nil && patterns.Fault != nil {
		return nil, &patternError{patterns.Text, patterns.Fault}
	}
	if err != nil {
		return nil, faultOfSchema(err)
	}
	return &Schema{compiled, doc, schemacost.Of(compiled, maxSchemaCost), schemaWeight{docs.Objects, patterns.Weight}}, nil
}

// patternError says that a regular expression of a schema is wrong.
type patternError struct {
	text   string
	reason error
}

func (e *patternError) Error() string {
	return fmt.Sprintf("the pattern %s: %v", data.Quote(shorten(e.text)), e.reason)
}

// affordable is why a schema costs too much.
func (s *Schema) affordable() error {
	if s.cost.Foreign {
		return errors.New("it refers to the schema of JSON Schema itself, which has no bound")
	}
	if once := s.cost.Once(); once > maxSchemaCost {
		return fmt.Errorf("too expensive: a check costs more than %d, however small the data; each reference counts as all that it refers to", maxSchemaCost)
	}
	return nil
}

// Text returns the schema as it was written; absent for nil.
func (s *Schema) Text() data.Value {
	if s == nil {
		return nil
	}
	return s.text
}

// maxSchemaCost is what one visit to everything in a schema may cost, in the units of expressions. A check costs maxCost at
// most, like all expressions of an event together (statemachine/DEFINITION.md, "Schemas").
const maxSchemaCost = 1_000_000

// Check returns an ErrInvalidData that names the first place that does not fit.
func (s *Schema) Check(v data.Value) error {
	if s == nil {
		return nil
	}
	given := v.Any()
	if at, far := farNumber(given); far {
		return fmt.Errorf("%w: at %s: a number with more than %d digits or an exponent beyond %d",
			ErrInvalidData, shorten("/"+strings.Join(at, "/")), maxDigits, maxExponent)
	}
	if s.cost.Bound(len(v)) > maxCost { // NB: small data need not be counted
		if _, within := schemacost.Within(s.compiled, given, maxCost); !within {
			return fmt.Errorf("%w: checking it against the schema costs more than %d", ErrInvalidData, maxCost)
		}
	}
	err := s.compiled.Validate(given)
	if err == nil {
		return nil
	}
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	for len(bad.Causes) > 0 {
		if all := namedBy(bad); all != nil {
			bad.ErrorKind = all
			break
		}
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

// namedBy is the choice between the values of which each alternative of oneOf or anyOf names one by const, when none of them fits; nil for
// others.
func namedBy(bad *jsonschema.ValidationError) *faultkind.Enum {
	switch bad.ErrorKind.(type) {
	case *faultkind.OneOf, *faultkind.AnyOf:
	default:
		return nil
	}
	all := &faultkind.Enum{}
	for _, of := range bad.Causes {
		one, ok := of.ErrorKind.(*faultkind.Const)
		if !ok || len(of.InstanceLocation) != len(bad.InstanceLocation) {
			return nil
		}
		all.Want = append(all.Want, one.Want)
	}
	return all
}

// Bounds of a number that a schema checks (statemachine/DEFINITION.md, "Schemas").
// Every float64 is within.
//
// NB: the schema library makes a fraction of whole numbers of every number that
// it compares. That is slow for 1e1000000 and quadratic for long ones, and for
// 1e10000000 the library panics. All written digits count, zeros as well.
const (
	maxDigits   = 1000
	maxExponent = 400
)

// farNumber returns the first place in x, what data.Value.Any gives, of a number
// beyond the bounds.
func farNumber(x any) (at []string, far bool) {
	switch x := x.(type) {
	case json.Number:
		return nil, isFar(string(x))
	case []any:
		for i, item := range x {
			if at, far = farNumber(item); far {
				return slices.Insert(at, 0, strconv.Itoa(i)), true
			}
		}
	case map[string]any:
		first := ""
		for key, item := range x {
			if far && key > first {
				continue
			}
			if below, bad := farNumber(item); bad {
				first, at, far = key, slices.Insert(below, 0, key), true
			}
		}
	}
	return at, far
}

// isFar reports whether a number's literal is beyond the bounds.
func isFar(literal string) bool {
	if e := strings.IndexAny(literal, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(literal[e+1:])
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			return true
		}
		literal = literal[:e]
	}
	return len(literal) > maxDigits && len(literal)-strings.Count(literal, "-")-strings.Count(literal, ".") > maxDigits
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
