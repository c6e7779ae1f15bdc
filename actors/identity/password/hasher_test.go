package password

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
)

var cheap = Cost{MemoryKiB: 8, Passes: 1, Lanes: 1}

// TestHashesAreBounded holds the slots and the queue, and gateway/DESIGN.md, "Fairness",
// for hashes: one address gets half of the places, and the other half is for others.
func TestHashesAreBounded(t *testing.T) {
	const slots, queue = 3, 5
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher[string](cheap, slots, queue)
		var running, most, busy atomic.Int64
		leave := make(chan struct{})
		h.Derive = func(string, []byte, Cost, int) []byte {
			n := running.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			<-leave
			running.Add(-1)
			return make([]byte, HashBytes)
		}
		var wait sync.WaitGroup
		for _, c := range []struct {
			who         string
			count, busy int64
			holder      string
		}{
			{"a hundred from one address", 100, 100 - (slots+queue)/2, "192.0.2.7"},
			{"some from another address", 3, 0, "2001:db8::"},
			{"an account in its known place", 1, 0, "john.doe"},
			{"another account when all places are taken", 10, 10, "mary.major"},
		} {
			busy.Store(0)
			for range c.count {
				wait.Go(func() {
					if _, err := h.Hash(t.Context(), c.holder, "x"); errors.Is(err, failure.ErrBusy) {
						busy.Add(1)
					} else if err != nil {
						t.Errorf("hash: %v", err)
					}
				})
			}
			if synctest.Wait(); busy.Load() != c.busy {
				t.Errorf("%s: %d were refused, want %d", c.who, busy.Load(), c.busy)
			}
		}
		if running.Load() != slots || h.waiting.Load() != queue || h.refused.Load() != 106 {
			t.Errorf("got %d running, %d waiting, %d refused, want %d, %d and 106", running.Load(), h.waiting.Load(), h.refused.Load(), slots, queue)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.waitingMax++
		_, err := h.Matches(ctx, "", "x", h.Unknown)
		assert.ErrorIs(t, err, context.Canceled, "a caller who has gone")
		close(leave)
		wait.Wait()
		if most.Load() != slots || h.waiting.Load() != 0 || len(h.slots) != 0 || len(h.held.by) != 0 {
			t.Errorf("got %d at a time, want %d; %d wait, %d slots are taken and %d hold some at the end", most.Load(), slots, h.waiting.Load(), len(h.slots), len(h.held.by))
		}
	})
}
