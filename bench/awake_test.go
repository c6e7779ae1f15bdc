package main

import (
	"context"
	"runtime"
	"testing"

	"troupe/actors/message"
	"troupe/bench/load"
	"troupe/statemachine/data"
)

// BenchmarkAwake says how much heap an awake instance takes that was created and got one event, its data among it. It
// is to be run with -benchtime 50000x or so, and within the time after which instances go to sleep.
func BenchmarkAwake(b *testing.B) {
	h := newFixture(b)
	public, _ := load.CreateData()
	name, content, _ := load.Turn(0)
	before := liveHeap()
	runParallel(b, func(pb *testing.PB) {
		for pb.Next() {
			reply, err := h.Create(context.Background(), &message.Create{
				Caller: h.caller, WorkflowID: load.WorkflowID, Public: data.Value(public),
			})
			if err == nil {
				reply, err = h.Send(context.Background(), &message.Event{
					Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: reply.InstanceID, Name: name, Data: data.Value(content),
				})
			}
			if err != nil {
				b.Error(err)
				return
			}
			if len(reply.Public) == 0 {
				b.Error("no data")
			}
		}
	})
	b.ReportMetric(float64(liveHeap()-before)/float64(b.N), "heap-B/instance")
}

// liveHeap is how many bytes of heap are in use.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
