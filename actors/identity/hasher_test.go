package identity

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
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
		for n := range callers {
			wait.Go(func() {
				switch _, err := h.hash(t.Context(), hashHolder{user: UserID(strconv.Itoa(n))}, "x"); {
				case errors.Is(err, failure.ErrBusy):
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

// TestHashesAreShared holds gateway/DESIGN.md, "Fairness", for hashes: one address
// gets half of the places, and the other half is for others.
func TestHashesAreShared(t *testing.T) {
	const slots, queue = 1, 9
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(cheap, slots, queue)
		var running atomic.Int64
		leave := make(chan struct{})
		h.derive = func(string, []byte, PasswordCost, int) []byte {
			running.Add(1)
			<-leave
			return make([]byte, hashBytes)
		}
		var wait sync.WaitGroup
		ask := func(count int, holder hashHolder) (busy int64) {
			var refused atomic.Int64
			for range count {
				wait.Go(func() {
					if _, err := h.matches(t.Context(), holder, "x", h.unknown); errors.Is(err, failure.ErrBusy) {
						refused.Add(1)
					} else if err != nil {
						t.Errorf("matches: %v", err)
					}
				})
			}
			synctest.Wait()
			return refused.Load()
		}
		half := (slots + queue) / 2
		if busy := ask(100, hashHolder{from: network(nearby)}); busy != int64(100-half) {
			t.Errorf("a hundred from one address: %d were refused, want %d", busy, 100-half)
		}
		if busy := ask(half-1, hashHolder{from: network(afar)}); busy != 0 {
			t.Errorf("from another address: %d were refused, want none", busy)
		}
		if busy := ask(1, hashHolder{user: "john.doe"}); busy != 0 {
			t.Error("an account in its known place was refused")
		}
		close(leave)
		wait.Wait()
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
