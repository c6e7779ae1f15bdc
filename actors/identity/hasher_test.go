package identity

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
)

// TestHashesAreBounded holds the slots and the queue, and gateway/DESIGN.md, "Fairness",
// for hashes: one address gets half of the places, and the other half is for others.
func TestHashesAreBounded(t *testing.T) {
	const slots, queue = 3, 5
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheap, slots, queue)
		var running, most, busy atomic.Int64
		leave := make(chan struct{})
		h.derive = func(string, []byte, PasswordCost, int) []byte {
			n := running.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			<-leave
			running.Add(-1)
			return make([]byte, hashBytes)
		}
		var wait sync.WaitGroup
		for _, c := range []struct {
			who         string
			count, busy int64
			holder      hashHolder
		}{
			{"a hundred from one address", 100, 100 - (slots+queue)/2, hashHolder{from: network(nearby)}},
			{"some from another address", 3, 0, hashHolder{from: network(afar)}},
			{"an account in its known place", 1, 0, hashHolder{user: "john.doe"}},
			{"another account when all places are taken", 10, 10, hashHolder{user: "mary.major"}},
		} {
			busy.Store(0)
			for range c.count {
				wait.Go(func() {
					if _, err := h.hash(t.Context(), c.holder, "x"); errors.Is(err, failure.ErrBusy) {
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
		if _, err := h.matches(ctx, hashHolder{}, "x", h.unknown); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: got %v", err)
		}
		close(leave)
		wait.Wait()
		if most.Load() != slots || h.waiting.Load() != 0 || len(h.slots) != 0 || len(h.held.by) != 0 {
			t.Errorf("got %d at a time, want %d; %d wait, %d slots are taken and %d hold some at the end", most.Load(), slots, h.waiting.Load(), len(h.slots), len(h.held.by))
		}
	})
}

func TestOptions(t *testing.T) {
	s := open(t, newMemory(), Options{})
	if got := cap(s.hasher.slots); got != max(1, runtime.GOMAXPROCS(0)/2) {
		t.Errorf("slots: got %d, want one for every second core", got)
	}
	for name, o := range map[string]Options{
		"no memory":       {PasswordCost: PasswordCost{MemoryKiB: 7, Passes: 1, Lanes: 1}},
		"no pass":         {PasswordCost: PasswordCost{MemoryKiB: 8, Lanes: 1}},
		"no lane":         {PasswordCost: PasswordCost{MemoryKiB: 8, Passes: 1}},
		"memory of lanes": {PasswordCost: PasswordCost{MemoryKiB: 8, Passes: 1, Lanes: 2}},
		"too much memory": {PasswordCost: PasswordCost{MemoryKiB: 2 << 20, Passes: 1, Lanes: 1}},
		"negative idle":   {SessionIdle: -1},
		"short sessions":  {SessionMax: time.Millisecond},
		"short flushes":   {FlushEvery: 1},
		"negative retain": {RetainEnded: -1},
		"no credentials":  {CredentialsMax: -1},
		"no slots":        {HashesMax: -1},
		"no queue":        {HashesWaitingMax: -1},
		"no attempts":     {AttemptsMax: -1},
	} {
		if _, err := start(o, newMemory()); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
