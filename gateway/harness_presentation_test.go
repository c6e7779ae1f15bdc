package gateway

import (
	"context"
	"sync"
	"time"

	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// presented is a definition with texts for people.
var presented = sync.OnceValue(func() *statemachine.Definition {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		panic(err)
	}
	parsed, err := parser.Parse(statemachine.Source{File: "order.yaml", Text: []byte(`
id: order
name: Order
title: 'Order ${svcPublic.n}'
columns: [{path: svcPublic.n, label: {en: Number, de: Nummer}}, svcPublic.customer]
events: {approve: {label: {en: Approve, de: Genehmigen}, done: {en: approved it, de: hat genehmigt}, style: primary}, note: {style: danger}}
stateMachines:
  main:
    states:
      open: {label: {en: Open, de: Offen}, tone: waiting, on: {approve: closed}}
      closed: {tone: good, type: final}
`)})
	if err != nil {
		panic(err)
	}
	return parsed.Definition
})

var openNode = statemachine.Position{Machine: "main", Node: "open"}

func lineOne() presentation.Line {
	return presentation.Line{Of: presented(), Title: statemachine.Plain("Order 7"), At: []statemachine.Position{openNode}, Values: []data.Value{data.Value("7"), nil}}
}

func (f *fakeWorkflows) Lines(_ context.Context, _ *identity.Principal, of []presentation.Name) ([]*presentation.Line, error) {
	lines, one := make([]*presentation.Line, len(of)), lineOne()
	lines[0] = &one
	return lines, f.ask(func() { f.asked = of })
}

func (f *fakeWorkflows) Called(*query.Reader, *identity.Principal, presentation.Name) (statemachine.Text, error) {
	return nil, f.ask()
}

func (f *fakeWorkflows) Summary(context.Context, *message.Load) (*presentation.Summary, error) {
	return &presentation.Summary{
		Line: lineOne(), Sequence: 2,
		Created: time.Unix(1_800_000_000, 0), Updated: time.Unix(1_800_000_001, 0), Requester: "ann", Form: &form.Form{Kind: form.KindForm, TemplateID: "order-form", Name: "Order form"},
	}, f.ask()
}

func (f *fakeWorkflows) Trace(context.Context, *message.Load) (*presentation.Trace, error) {
	return &presentation.Trace{
		Of: presented(), Sequence: 2, At: []statemachine.Position{openNode}, Steps: []presentation.Step{{End: []statemachine.NodeID{"open"}}},
	}, f.ask()
}

func (f *fakeWorkflows) Presented(_ *identity.Principal, id string, version uint64) (*statemachine.Definition, error) {
	return presented(), f.ask(func() { f.asked = [2]any{id, version} })
}

func (f *fakeWorkflows) Standing(_ context.Context, _ *identity.Principal, _ string, at []statemachine.Position) ([]query.Standing, error) {
	var out []query.Standing
	for _, p := range at {
		out = append(out, query.Standing{At: p, Instances: 78_123, About: true})
	}
	return out, f.ask()
}
