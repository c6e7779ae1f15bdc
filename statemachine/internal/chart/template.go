package chart

import (
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Template is a JSON value in which strings that are wholly "${…}" are
// expressions. Exactly one of its forms is set. Built once, then read only.
type Template struct {
	Constant data.Value    // no expression inside
	Program  *expr.Program // the whole value is one expression
	Keys     []string      // an object: the members in order …
	Values   []*Template   // … or, without keys, an array
	Object   bool
}

// Eval returns the template's value in the scope.
func (t *Template) Eval(s *expr.Scope) (data.Value, error) {
	switch {
	case t.Program != nil:
		return t.Program.Value(s)
	case t.Constant != nil:
		return t.Constant, nil
	}
	open, shut := byte('['), byte(']')
	if t.Object {
		open, shut = '{', '}'
	}
	out := append(data.Value(nil), open)
	for i, item := range t.Values {
		if i > 0 {
			out = append(out, ',')
		}
		if t.Object {
			out = append(data.AppendString(out, t.Keys[i]), ':')
		}
		v, err := item.Eval(s)
		if err != nil {
			return nil, err
		}
		if out = append(out, v...); len(out) > MaxTemplateBytes {
			return nil, ErrTemplateTooLarge
		}
	}
	s.Budget.ChargeBytes(len(out))
	return append(out, shut), nil
}

// ReadsInstance reports whether the value depends on the instance.
func (t *Template) ReadsInstance() bool {
	for _, root := range []string{"svcPublic", "svcPrivate", "instance"} {
		if t.Program != nil && t.Program.Reads(root) {
			return true
		}
	}
	return slices.ContainsFunc(t.Values, (*Template).ReadsInstance)
}
