package statemachine

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// template is a JSON value in which strings that are wholly "${…}" are
// expressions. Exactly one of its forms is set. Built once, then read only.
type template struct {
	constant data.Value    // no expression inside
	program  *expr.Program // the whole value is one expression
	keys     []string      // an object: the members in order …
	values   []*template   // … or, without keys, an array
	object   bool
}

// expression returns the text inside "${…}", when s is wholly one.
func expression(s string) (string, bool) {
	if strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}") {
		return s[2 : len(s)-1], true
	}
	return "", false
}

// eval returns the template's value in the scope.
func (t *template) eval(s *expr.Scope) (data.Value, error) {
	switch {
	case t.program != nil:
		return t.program.Value(s)
	case t.constant != nil:
		return t.constant, nil
	}
	open, shut := byte('['), byte(']')
	if t.object {
		open, shut = '{', '}'
	}
	out := append(data.Value(nil), open)
	for i, item := range t.values {
		if i > 0 {
			out = append(out, ',')
		}
		if t.object {
			out = append(data.AppendString(out, t.keys[i]), ':')
		}
		v, err := item.eval(s)
		if err != nil {
			return nil, err
		}
		if out = append(out, v...); len(out) > maxTemplateBytes {
			return nil, errTemplateTooLarge
		}
	}
	s.Budget.ChargeBytes(len(out))
	return append(out, shut), nil
}

// readsInstance reports whether the value depends on the instance.
func (t *template) readsInstance() bool {
	for _, root := range []string{"svcPublic", "svcPrivate", "instance"} {
		if t.program != nil && t.program.Reads(root) {
			return true
		}
	}
	return slices.ContainsFunc(t.values, (*template).readsInstance)
}
