package chart

import (
	"errors"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Payload is data for others: a value, with more members when it is an object.
type Payload struct {
	Value  *Template // nil: none
	Params []Parameter
}

var errPayload = errors.New("params can be added to an object only")

// Eval returns the data in the scope. A member that fails is left out, and failed is told why.
func (p Payload) Eval(s *expr.Scope, failed func(error)) (data.Value, error) {
	var v data.Value
	if p.Value != nil {
		var err error
		if v, err = p.Value.Eval(s); err != nil {
			return nil, err
		}
	}
	if p.Params == nil {
		return v, nil
	}
	if len(v) > 0 && v.Kind() != data.Object {
		return nil, errPayload
	}
	for _, param := range p.Params {
		member, err := param.Value.Eval(s)
		if err != nil {
			failed(err)
			continue
		}
		if len(v) == 0 {
			v = EmptyObject
		}
		if v, err = data.Set(v, data.Path{param.Name}, member); err != nil {
			return nil, err
		}
	}
	if len(v) > MaxTemplateBytes {
		return nil, ErrTemplateTooLarge
	}
	return v, nil
}

// Parameter is one member of data; the member is missing when its expression fails (W3C SCXML, section 5.7).
type Parameter struct {
	Name  string
	Value *Template
}
