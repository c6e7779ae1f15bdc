package main

import (
	"sync"
	"sync/atomic"
	"testing"

	"troupe/actors/message"
	"troupe/bench/load"
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
	runParallel(b, func(caller int) func(n int) error {
		return func(n int) error {
			_, err := h.send(ids[caller*instancesEach+n%instancesEach], n/instancesEach, withHistory)
			return err
		}
	})
}

func benchRouterRead(b *testing.B) {
	h := newFixture(b)
	ids := h.create(b, callers)
	runParallel(b, func(caller int) func(int) error {
		return func(int) error {
			_, err := h.read(ids[caller])
			return err
		}
	})
}

func benchRouterCreate(b *testing.B) {
	h := newFixture(b)
	runParallel(b, func(int) func(int) error {
		return func(int) error {
			_, err := h.createOne()
			return err
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
				if _, err := h.send(id, 0, false); err != nil {
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
			reply, err := h.read(id)
			if err != nil || reply.Sequence != entries {
				b.Fatal(reply, err)
			}
		}
	})
}
