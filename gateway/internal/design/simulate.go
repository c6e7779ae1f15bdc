package design

import (
	"net/http"

	"troupe/actors/home"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// simulationBytesMax bounds the body: a definition as it is written in a string of JSON, and its steps.
const simulationBytesMax = 4 << 20

var simulationShape = parse.NewShape("",
	parse.Field{Name: "definition", Check: func(v data.Value) error {
		if v.Kind() != data.String && v.Kind() != data.Object {
			return parse.Malformed(`"definition" must be a string or an object, not %s`, parse.WithArticle(v.Kind()))
		}
		return nil
	}},
	parse.Field{Name: "workflowId", Kind: data.String},
	parse.Field{Name: "as", Kind: data.String},
	parse.Field{Name: "steps", Required: true, Check: func(v data.Value) error {
		if v.Kind() != data.Array {
			return parse.Malformed(`"steps" must be an array, not %s`, parse.WithArticle(v.Kind()))
		}
		return nil
	}},
)

func (g *Group) simulate(x *kernel.Exchange) error {
	value, err := parse.Body(x.Body)
	if err != nil {
		return err
	}
	var members [4]data.Value
	if err := simulationShape.Read(value, members[:]); err != nil {
		return err
	}
	definition, workflow, as, steps := members[0], members[1], members[2], members[3]
	if (definition == nil) == (workflow == nil) {
		return parse.Malformed(`the body must have "definition" or "workflowId", and not both`)
	}
	r := &home.Simulation{Caller: x.Caller, Steps: steps}
	if as != nil {
		r.As = as.Text()
	}
	switch definition.Kind() {
	case data.Object:
		r.File, r.Text = "definition.json", definition
	case data.String:
		r.File, r.Text = "definition.yaml", []byte(definition.Text()) // NB: JSON is YAML
	default:
		r.Workflow = workflow.Text()
	}
	answer, err := g.Definitions.Simulate(x.Request.Context(), r)
	if err != nil {
		return x.AnswerFaults(err)
	}
	x.Out = append(x.Out, answer...)
	x.Send(http.StatusOK)
	return nil
}
