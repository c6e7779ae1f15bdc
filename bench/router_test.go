package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"troupe/actors/message"
	"troupe/bench/load"
	"troupe/statemachine/data"
)

// BenchmarkRouter is everything below HTTP, with the commit: 64 callers, each with instances of its own.
func BenchmarkRouter(b *testing.B) {
	b.Run("event, minimal reply", func(b *testing.B) { benchRouter(b, false) })
	b.Run("event, full reply", func(b *testing.B) { benchRouter(b, true) })
	b.Run("read", benchRouterRead)
	b.Run("create", benchRouterCreate)
}

// instancesEach is how many instances a caller sends to in turn. Together they
// are many enough that none is hot, and few enough to make before each run.
const instancesEach = 16

func benchRouter(b *testing.B, withHistory bool) {
	h := newFixture(b)
	ids := h.create(b, callers*instancesEach)
	var number atomic.Int64
	runParallel(b, func(pb *testing.PB) {
		first := (int(number.Add(1)-1) % callers) * instancesEach
		for n := 0; pb.Next(); n++ {
			name, content, _ := load.Turn(n / instancesEach)
			_, err := h.Send(context.Background(), &message.Event{
				Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: ids[first+n%instancesEach],
				Name: name, Data: data.Value(content), WithHistory: withHistory,
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchRouterRead(b *testing.B) {
	h := newFixture(b)
	ids := h.create(b, callers)
	var number atomic.Int64
	runParallel(b, func(pb *testing.PB) {
		id := ids[int(number.Add(1)-1)%callers]
		for pb.Next() {
			_, err := h.Load(context.Background(), &message.Load{
				Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, WithHistory: true,
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchRouterCreate(b *testing.B) {
	h := newFixture(b)
	public, _ := load.CreateData()
	runParallel(b, func(pb *testing.PB) {
		for pb.Next() {
			_, err := h.Create(context.Background(), &message.Create{
				Caller: h.caller, WorkflowID: load.WorkflowID, Public: data.Value(public),
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkHistory is a page of 100 entries of a history of 100,000, and beside it the whole.
func BenchmarkHistory(b *testing.B) {
	h := newFixture(b)
	id := h.create(b, 1)[0]
	const entries = 100_000
	var left atomic.Int64
	left.Store(entries - 1)
	var senders sync.WaitGroup
	for range callers {
		senders.Go(func() {
			for left.Add(-1) >= 0 {
				name, content, _ := load.Turn(0)
				_, err := h.Send(context.Background(), &message.Event{
					Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, Name: name, Data: data.Value(content),
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	for _, descending := range []bool{false, true} {
		b.Run(map[bool]string{false: "oldest page", true: "newest page"}[descending], func(b *testing.B) {
			for b.Loop() {
				page, err := h.History(&message.History{
					Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, Limit: 100, Descending: descending,
				})
				if err != nil || page.Next == "" {
					b.Fatal(page, err)
				}
			}
		})
	}
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			reply, err := h.Load(context.Background(), &message.Load{Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, WithHistory: true})
			if err != nil || reply.Sequence != entries {
				b.Fatal(reply, err)
			}
		}
	})
}
