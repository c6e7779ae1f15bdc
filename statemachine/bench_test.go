package statemachine

import (
	"testing"
	"time"

	"troupe/statemachine/data"
)

const benchDefinition = `
id: bench
context: {svcPublic: {n: 0, limit: 1000000, note: "some text that stays"}}
stateMachines:
  main:
    initial: a
    states:
      a: {on: {tick: {guard: 'event.data.n <= svcPublic.limit', target: b}, note: {}}}
      b: {on: {tick: {target: a, actions: [{assign: {svcPublic.by: '${user.id}'}}]}}}
`

func benchInstance(b *testing.B) (*Definition, Instance) {
	d := parseChart(b, benchDefinition)
	return d, started(b, d).Instance
}

// BenchmarkStep is one event with a guard, a merge and, every other time, an
// assign. Its budget is in statemachine/DESIGN.md, "Budget".
func BenchmarkStep(b *testing.B) {
	d, in := benchInstance(b)
	caller := &Caller{ID: "john.doe", Roles: []string{"employee"}}
	e := Event{Name: "tick", Data: data.Value(`{"n":7,"text":"hello"}`), Caller: caller, Now: time.Unix(1, 0)}
	b.ReportAllocs()
	for b.Loop() {
		r, err := d.Step(&in, e)
		if err != nil {
			b.Fatal(err)
		}
		in = r.Instance
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	d, in := benchInstance(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = d.AppendRecord(buf[:0], &in, Chain{}, nil)
	}
}
