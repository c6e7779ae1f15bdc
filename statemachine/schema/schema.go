package schema

import (
	"bytes"
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

// ErrInvalidData: the data does not fit a JSON Schema. The text names the place; tell anyone who has sent it.
var ErrInvalidData = errors.New("data does not fit the schema")

const maxCheckCost = 10_000_000

// Schema is a compiled JSON Schema 2020-12. It is built once and never changed,
// so it may be shared. A nil Schema takes everything.
type Schema struct {
	compiled *jsonschema.Schema
	text     data.Value // as it was written
	Cost     schemacost.Estimate
	Weight   Weight
}

// Weight is what compiling a schema takes.
type Weight struct {
	Objects  int // mappings and lists that it is written with
	Patterns int // weight of its regular expressions, in instructions
}

var printer = message.NewPrinter(language.English)

// baseURL stands before a schema's name while it is compiled, so that a
// relative $ref resolves to a sibling file and to nothing else.
const (
	baseURL = "file:///"
	ownName = "-"
)

// loader resolves references between schema files through the reader that the caller gave. Nothing is ever fetched.
type loader struct {
	read func(name string) ([]byte, error)
	docs *schemacost.Documents
}

func (l loader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, baseURL)
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

// Compile compiles doc. A relative reference to another file is resolved through load, which gets the name relative to doc; with
// a nil load there are no other files. Nothing else can be reached. The error says what is wrong with the schema and is meant for
// its author: also that checking against it costs too much.
func Compile(doc data.Value, load func(name string) ([]byte, error)) (*Schema, error) {
	s, err := CompileUnbounded(doc, load)
	if err == nil {
		err = s.Affordable()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CompileUnbounded is Compile without a bound on the cost of a check: only its own cost is bounded.
func CompileUnbounded(doc data.Value, load func(name string) ([]byte, error)) (*Schema, error) {
	var docs schemacost.Documents
	var patterns schemacost.Patterns
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(loader{load, &docs})
	c.UseRegexpEngine(patterns.Compile)
	const name = baseURL + ownName
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
		return nil, faultOf(err)
	}
	return &Schema{compiled, doc, schemacost.Of(compiled, MaxVisitCost), Weight{docs.Objects, patterns.Weight}}, nil
}

type patternError struct {
	text   string
	reason error
}

func (e *patternError) Error() string {
	return fmt.Sprintf("the pattern %s: %v", data.Quote(data.Shorten(e.text)), e.reason)
}

// Affordable is why a schema costs too much.
func (s *Schema) Affordable() error {
	if s.Cost.Foreign {
		return errors.New("it refers to the schema of JSON Schema itself, which has no bound")
	}
	if once := s.Cost.Once(); once > MaxVisitCost {
		return fmt.Errorf("too expensive: a check costs more than %d, however small the data; each reference counts as all that it refers to", MaxVisitCost)
	}
	return nil
}

// nothing is the schema of what must be empty.
var nothing = data.Value(`{"type":"object","additionalProperties":false}`)

// Nothing returns the schema of an object that must be empty.
func Nothing() (*Schema, error) { return Compile(nothing, nil) }

// IsNothing reports whether s is what Nothing returns.
func (s *Schema) IsNothing() bool { return s != nil && bytes.Equal(s.text, nothing) }

// Text returns the schema as it was written; absent for nil.
func (s *Schema) Text() data.Value {
	if s == nil {
		return nil
	}
	return s.text
}

// MaxVisitCost is what one visit to everything in a schema may cost, in the units of expressions. A check costs maxCheckCost at
// most, like all expressions of an event together (statemachine/DEFINITION.md, "Schemas").
const MaxVisitCost = 1_000_000

// Check returns an ErrInvalidData that names the first place that does not fit.
func (s *Schema) Check(v data.Value) error {
	if s == nil {
		return nil
	}
	given := v.Any()
	if at, far := farNumber(given); far {
		return fmt.Errorf("%w: at %s: a number with more than %d digits or an exponent beyond %d",
			ErrInvalidData, data.Shorten("/"+strings.Join(at, "/")), maxDigits, maxExponent)
	}
	if s.Cost.Bound(len(v)) > maxCheckCost { // NB: small data need not be counted
		if _, within := schemacost.Within(s.compiled, given, maxCheckCost); !within {
			return fmt.Errorf("%w: checking it against the schema costs more than %d", ErrInvalidData, maxCheckCost)
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
	return fmt.Errorf("%w: at %s: %s", ErrInvalidData, data.Shorten(at), data.Shorten(bad.ErrorKind.LocalizedString(printer)))
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

// Bounds of a number that a schema checks (statemachine/DEFINITION.md, "Schemas"). Every float64 is within.
//
// NB: the schema library makes a fraction of whole numbers of every number that it compares. That is slow for 1e1000000 and
// quadratic for long ones, and for 1e10000000 the library panics. All written digits count, zeros as well.
const (
	maxDigits   = 1000
	maxExponent = 400
)

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

// TextFormat returns the format of a member that is written down as a text, and not as one of several.
func (s *Schema) TextFormat(names []string) (format string, isText bool) {
	v := s.text
	for _, name := range names {
		v, _ = v.Lookup("properties")
		v, _ = v.Lookup(name)
	}
	kind, _ := v.Lookup("type")
	if kind.Text() != "string" {
		return "", false
	}
	for _, key := range []string{"enum", "const", "pattern", "$ref"} {
		if _, ok := v.Lookup(key); ok {
			return "", false
		}
	}
	of, _ := v.Lookup("format")
	return of.Text(), true
}
