package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// BenchmarkStep is one event: choosing the transition, half of the time with a guard, merging the data and moving.
func BenchmarkStep(b *testing.B) {
	d := definition(b)
	instance := created(b, d)
	events := []statemachine.Event{turn(0), turn(1)}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		result, err := d.Step(&instance, events[n%len(events)])
		if err != nil {
			b.Fatal(err)
		}
		instance = result.Instance
	}
}

// BenchmarkCreate is a new instance.
func BenchmarkCreate(b *testing.B) {
	d := definition(b)
	b.ReportAllocs()
	for b.Loop() {
		created(b, d)
	}
}

// BenchmarkRecord is the stored form of an instance: written after every event, read when an instance wakes up.
func BenchmarkRecord(b *testing.B) {
	d := definition(b)
	instance := created(b, d)
	stored := d.AppendRecord(nil, &instance, statemachine.Chain{}, nil)
	b.Run("append", func(b *testing.B) {
		var dst []byte
		b.SetBytes(int64(len(stored)))
		b.ReportAllocs()
		for b.Loop() {
			dst = d.AppendRecord(dst[:0], &instance, statemachine.Chain{}, nil)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(stored)))
		b.ReportAllocs()
		for b.Loop() {
			record, err := statemachine.ParseRecord(stored)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := d.Restore(instance.ID, record); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFilter is one record of a query that looks at all of them.
func BenchmarkFilter(b *testing.B) {
	d := definition(b)
	instance := created(b, d)
	document := filter.Document{
		ID: instance.ID, WorkflowID: string(d.ID),
		States: d.States(&instance), Public: instance.Public, Private: instance.Private,
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"node", `{"states.nodeId":"draft"}`, true},
		{"node and data", `{"states.nodeId":"draft","svcPublic.requester":"bench","svcPublic.days":3}`, true},
		{"other node", `{"states.nodeId":"review","svcPublic.requester":"bench"}`, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := filter.Parse([]byte(c.text), filter.Options{})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if f.Match(document) != c.want {
					b.Fatalf("got %t, want %t", !c.want, c.want)
				}
			}
		})
	}
}
