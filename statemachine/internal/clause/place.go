package clause

import (
	"fmt"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// What the rules of SCXML add to the file (statemachine/DEFINITION.md, "Rules of SCXML").

// AddSignal adds the variable _event to the expressions.
func (b *Reader) AddSignal() {
	if !b.IsSCXML() {
		return
	}
	if with, err := b.Language.With(chart.SignalVariable); err == nil {
		b.Language = with
	}
}

// Place reads a path. One that is none fails when it is used.
func (b *Reader) Place(at *document.Node) chart.Place {
	text := strings.TrimSpace(b.Text(at))
	p, err := data.ParsePath(text)
	switch {
	case err != nil:
		return chart.Place{Bad: err}
	case p[0] == "svcPublic":
		return chart.Place{Root: chart.Public, Path: p[1:]}
	case p[0] == "svcPrivate":
		return chart.Place{Root: chart.Private, Path: p[1:]}
	}
	return chart.Place{Bad: fmt.Errorf("nothing can be assigned to %q", data.Shorten(text))}
}

// OptionalPlace is Place for a key that need not be there.
func (b *Reader) OptionalPlace(at *document.Node) *chart.Place {
	if at == nil {
		return nil
	}
	p := b.Place(at)
	return &p
}

// Params reads a mapping of names to values.
func (b *Reader) Params(v *document.Node) (params []chart.Parameter) {
	if v == nil {
		return nil
	}
	if v.Kind != document.Mapping {
		b.Add(v, "must be a mapping of names to values")
		return nil
	}
	for _, f := range v.Fields {
		params = append(params, chart.Parameter{Name: f.Key.Text, Value: b.Template(f.Value)})
	}
	return params
}

// Optional is Template for a key that need not be there.
func (b *Reader) Optional(v *document.Node) *chart.Template {
	if v == nil {
		return nil
	}
	return b.Template(v)
}
