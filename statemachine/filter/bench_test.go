package filter

import (
	"strings"
	"testing"

	"troupe/statemachine/data"
)

func measure(b *testing.B, name string, do func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			do()
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	d := instance(b)
	for _, c := range []struct{ name, filter string }{
		{"Node", `{"states.nodeId":"review"}`},
		{"NodeMiss", `{"states.nodeId":"draft"}`},
		{"Position", `{"states":{"$elemMatch":{"stateMachineId":"payment","nodeId":{"$in":["paid","unpaid"]}}}}`},
		{"Public", `{"svcPublic.amount":1830.75}`},
		{"PublicLast", `{"svcPublic.due":"2026-12-25"}`},
		{"Range", `{"svcPublic.amount":{"$gte":1000,"$lt":2000}}`},
		{"In", `{"svcPublic.customerId":{"$in":["c-1","c-2","c-3","c-4","c-81726","c-9"]}}`},
		{"Prefix", `{"svcPublic.requester":{"$regex":"^anna\\."}}`},
		{"IgnoreCase", `{"svcPublic.requester":{"$regex":"SCHMIDT","$options":"i"}}`},
		{"FanOut", `{"svcPublic.lines.sku":"A-0005"}`},
		{"Element", `{"svcPublic.lines":{"$elemMatch":{"sku":"A-0005","quantity":{"$gt":5}}}}`},
		{"Or", `{"$or":[{"svcPublic.amount":{"$gt":5000}},{"svcPublic.requester":"anna.schmidt"}]}`},
		{"Three", `{"states.nodeId":"review","svcPublic.customerId":"c-81726","svcPublic.due":"2026-12-24"}`},
	} {
		f := mustParse(b, c.filter)
		measure(b, c.name, func() { f.Match(d) })
	}
}

// BenchmarkRegularWorst is the most that a filter can ask of a text of 10 KB.
func BenchmarkRegularWorst(b *testing.B) {
	f := mustParse(b, `{"svcPublic.a":{"$regex":"[a-z]{1,540}9"}}`)
	d := Document{Public: data.Value(`{"a":"` + strings.Repeat("x", 10_000) + `"}`)}
	b.SetBytes(10_000)
	for b.Loop() {
		f.Match(d)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, filter string }{
		{"Equal", `{"states.nodeId":"review","svcPublic.customerId":"c-81726"}`},
		{"Operators", `{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":{"$in":["a","b"]}}},"svcPublic.amount":{"$gte":1000,"$lt":2000}}`},
		{"Regular", `{"svcPublic.requester":{"$regex":"^anna\\."}}`},
	} {
		measure(b, c.name, func() { mustParse(b, c.filter) })
	}
}

func BenchmarkKeys(b *testing.B) {
	d := instance(b)
	for _, path := range []string{"svcPublic.customerId", "svcPublic.lines.sku", "svcPublic.lines"} {
		field := mustField(b, path)
		measure(b, path, func() { field.Keys(d) })
	}
}

func BenchmarkBounds(b *testing.B) {
	f := mustParse(b, `{"states.nodeId":"review","svcPublic.customerId":{"$in":["c-1","c-2"]},"svcPublic.due":{"$gte":"2026-12-01"}}`)
	field := mustField(b, "svcPublic.customerId")
	measure(b, "customerId", func() { f.Bounds(field, false) })
}
