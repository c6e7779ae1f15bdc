package identity

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestHashesAreBounded holds the slots and the queue: of many at a time so many
// are computed, so many wait, and the others are refused at once.
func TestHashesAreBounded(t *testing.T) {
	const slots, queue, callers = 3, 5, 20
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheap, slots, queue)
		var running, most atomic.Int64
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
		var busy atomic.Int64
		for range callers {
			wait.Go(func() {
				switch _, err := h.hash(t.Context(), "x"); {
				case errors.Is(err, ErrBusy):
					busy.Add(1)
				case err != nil:
					t.Errorf("hash: %v", err)
				}
			})
		}
		synctest.Wait()
		if running.Load() != slots || h.waiting.Load() != queue || busy.Load() != callers-slots-queue || h.refused.Load() != callers-slots-queue {
			t.Errorf("got %d running, %d waiting, %d and %d refused, want %d, %d and %d", running.Load(), h.waiting.Load(), busy.Load(), h.refused.Load(), slots, queue, callers-slots-queue)
		}
		// Somebody who waits can go.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.waitingMax++
		if _, err := h.matches(ctx, "x", h.unknown); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: got %v", err)
		}
		close(leave)
		wait.Wait()
		if most.Load() != slots || h.waiting.Load() != 0 || len(h.slots) != 0 {
			t.Errorf("got %d at a time, want %d; %d wait and %d slots are taken at the end", most.Load(), slots, h.waiting.Load(), len(h.slots))
		}
	})
}

func TestHashOptions(t *testing.T) {
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
		"no slots":        {HashesMax: -1},
		"no queue":        {HashesWaitingMax: -1},
		"no attempts":     {AttemptsMax: -1},
	} {
		if _, err := start(o, newMemory()); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
