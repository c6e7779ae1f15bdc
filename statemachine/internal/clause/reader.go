package clause

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/check"
)

// Options says what a definition may refer to. The zero value knows no files and takes every role and privilege.
type Options struct {
	// HasRole and HasPrivilege report whether a name in an allow block exists; nil: all do.
	HasRole, HasPrivilege func(name string) bool
	// Roles and Privileges are the existing names, for suggestions.
	Roles, Privileges []string
	// HasZone reports whether there is a time zone of the name; nil: all are.
	HasZone func(name string) bool
	// Stored reads a text that was accepted before, perhaps by another release. Only what keeps the definition from running is a
	// fault then (statemachine/DEFINITION.md, "Stored definitions").
	Stored bool
}

// Source is a definition's text with what it refers to: everything that decides
// what the definition means, so that it can be kept and read again.
type Source struct {
	// File is the name that faults show, and its extension says YAML or JSON.
	File string
	Text []byte
	// Read returns a file beside the definition, named relative to it. nil: there
	// are no such files. Parsed.Refs lists the files that Parse read.
	Read func(name string) ([]byte, error)
}

// Reader reads the parts of a definition that know nothing of states and actions, collecting every fault on the way.
type Reader struct {
	document.Collector
	check.Notes
	Doubts  document.Collector // warnings that come up amid reading
	Options Options
	Env     *expr.Env
	Ended   func() error // nil: never
	Source  Source
	Refs    []string

	NamedGuards map[string]*document.Node
	ShapeOnly   bool      // named actions stand for nothing, and faults of expressions do not count
	Locals      []string  // variables of the foreach bodies around
	Language    *expr.Env // with the constants of the definition
	Cost        parseCost
	Harmless    int // faults of the chart that leave its shape as it is
}

// Mapping reports whether n is there and is a mapping, and adds a fault for each key of it
// that is not allowed.
func (b *Reader) Mapping(n *document.Node, allowed []string) bool {
	if n == nil {
		return false
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping")
		return false
	}
	b.Known(n, allowed...)
	return true
}

// Named reads a mapping of names to what stands for them.
func (b *Reader) Named(n *document.Node) map[string]*document.Node {
	if n == nil {
		return nil
	}
	out := map[string]*document.Node{}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of names")
		return nil
	}
	for _, f := range n.Fields {
		out[f.Key.Text] = f.Value
	}
	return out
}

// OneOf reads a word; the zero value when n is nil or the word is unknown.
func OneOf[T any](b *Reader, n *document.Node, words map[string]T) T {
	var none T
	if n == nil {
		return none
	}
	word := b.Text(n)
	if v, ok := words[word]; ok {
		return v
	}
	all := make([]string, 0, len(words))
	for w := range words {
		all = append(all, w)
	}
	b.Suggest(n, word, all, "%q is not one of the known words", data.Shorten(word))
	return none
}

// Context reads the defaults of the data.
func (b *Reader) Context(n *document.Node) {
	b.Definition.DefaultPublic, b.Definition.DefaultPrivate = chart.EmptyObject, chart.EmptyObject
	if !b.Mapping(n, DocumentKeys) {
		return
	}
	if v := b.object(n.Field("svcPublic")); v != nil {
		b.Definition.DefaultPublic = v
	}
	if v := b.object(n.Field("svcPrivate")); v != nil {
		b.Definition.DefaultPrivate = v
	}
}

func (b *Reader) object(n *document.Node) data.Value {
	if n == nil {
		return nil
	}
	v, err := n.Data()
	if err != nil {
		b.Add(n, "%v", err)
		return nil
	}
	if v.Kind() != data.Object {
		b.Add(n, "must be a mapping")
		return nil
	}
	return v
}

// Schemas reads what the data must fit.
func (b *Reader) Schemas(n *document.Node) {
	if !b.Mapping(n, DocumentKeys) {
		return
	}
	b.Definition.PublicSchema = b.schema(n.Field("svcPublic"))
	b.Definition.PrivateSchema = b.schema(n.Field("svcPrivate"))
}

func (b *Reader) readRef(name string) ([]byte, error) {
	if name == "" || path.Clean(name) != name || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%q is not a file beside the definition", data.Shorten(name))
	}
	if b.Source.Read == nil {
		return nil, fmt.Errorf("file %q is not there", data.Shorten(name))
	}
	text, err := b.Source.Read(name)
	if err == nil {
		b.Refs = append(b.Refs, name)
	}
	return text, err
}

// MaxIndexes bounds the indexes of a workflow: each has a row or more of every instance, which an event may change.
const MaxIndexes = 64

// Indexes reads the paths that have an index.
func (b *Reader) Indexes(n *document.Node) {
	if n == nil {
		return
	}
	texts := b.Texts(n)
	if len(texts) > MaxIndexes && !b.Stored {
		b.Add(n, "more than %d indexes", MaxIndexes)
	}
	for _, text := range texts {
		p, err := data.ParsePath(text)
		if err != nil || len(p) < 2 || p[0] != "svcPublic" && p[0] != "svcPrivate" {
			b.Add(n, "index %q: must be a path below svcPublic or svcPrivate", data.Shorten(text))
			continue
		}
		b.Definition.Indexes = append(b.Definition.Indexes, p)
	}
}

// Events reads the event declarations.
func (b *Reader) Events(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of event names")
		return
	}
	for _, f := range n.Fields {
		name, ok := chart.ParseEventName(f.Key.Text)
		if !ok || chart.IsReserved(name) {
			b.Add(f.Key, "%q cannot be an event that callers send", data.Shorten(f.Key.Text))
			continue
		}
		c := &chart.EventDeclaration{Line: f.Key.Line}
		b.Definition.Events[name] = c
		b.Definition.Declared.Add(chart.EventPattern{Name: name})
		if f.Value.Kind == document.Null {
			continue
		}
		b.Mapping(f.Value, EventKeys)
		c.Schema = b.schema(f.Value.Field("data"))
		c.Into = OneOf(b, f.Value.Field("into"), IntoWords)
		c.Apply = OneOf(b, f.Value.Field("apply"), ApplyWords)
		c.Unmatched = OneOf(b, f.Value.Field("unmatched"), UnmatchedWords)
		c.Private = b.Bool(f.Value.Field("private"))
		if at := f.Value.Field("history"); at != nil {
			c.Unkept = !b.Bool(at)
		}
		if at := f.Value.Field("private"); c.Into != chart.NoDocument && at != nil {
			b.Advise(at, "leave out one of them", "\"into\" takes all the data, so \"private\" has no effect")
		}
		c.Allow = b.Rule(f.Value.Field("allow"))
		b.presentedEvent(c, f.Value)
	}
}

// KeysOf lists the names, in order.
func KeysOf(among map[string]*document.Node) []string { return slices.Sorted(maps.Keys(among)) }
