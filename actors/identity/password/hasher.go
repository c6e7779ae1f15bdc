package password

import (
	"context"
	"sync"
	"sync/atomic"

	"troupe/actors/failure"
)

var errBusy = failure.Errorf(failure.ErrBusy, "too many passwords are being checked")

// Hasher computes a bounded number of password hashes at a time: each takes a core for some milliseconds and the memory
// of its cost, and the caller has proved nothing yet.
type Hasher[H comparable] struct {
	cost       Cost
	slots      chan struct{} // slots has one entry for each hash that is being computed
	waiting    atomic.Int64  // waiting counts callers without a slot; at most waitingMax may wait
	waitingMax int64
	refused    atomic.Uint64
	// held counts the hashes of each holder, computed and waiting ones. No holder has more than half of all.
	held struct {
		sync.Mutex
		by map[H]int
	}
	// Unknown stands in for the hash of a user without a password, so that a sign-in costs the same. No password has
	// it.
	Unknown *Hash
	Derive  func(password string, salt []byte, cost Cost, bytes int) []byte // replaced in tests that look at what is computed
}

// NewHasher returns a Hasher of hashesMax hashes at a time, for which waitingMax callers may wait.
func NewHasher[H comparable](cost Cost, hashesMax, waitingMax int) *Hasher[H] {
	h := &Hasher[H]{
		cost: cost, slots: make(chan struct{}, hashesMax), waitingMax: int64(waitingMax), Derive: Derive,
		// NB: a random sum; nobody can know a password for it.
		Unknown: &Hash{Cost: cost, Salt: newSalt(), Sum: append(newSalt(), newSalt()...)},
	}
	h.held.by = map[H]int{}
	return h
}

// enter answers failure.ErrBusy when too many wait already, or when the holder has half of all places, and the context's
// error when that ends first.
func (h *Hasher[H]) enter(ctx context.Context, holder H) error {
	if !h.hold(holder) {
		h.refused.Add(1)
		return errBusy
	}
	err := h.await(ctx)
	if err != nil {
		h.drop(holder)
	}
	return err
}

func (h *Hasher[H]) hold(holder H) bool {
	h.held.Lock()
	defer h.held.Unlock()
	if h.held.by[holder] >= (cap(h.slots)+int(h.waitingMax))/2 {
		return false
	}
	h.held.by[holder]++
	return true
}

func (h *Hasher[H]) drop(holder H) {
	h.held.Lock()
	defer h.held.Unlock()
	if h.held.by[holder]--; h.held.by[holder] == 0 {
		delete(h.held.by, holder)
	}
}

func (h *Hasher[H]) await(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > h.waitingMax {
		h.refused.Add(1)
		return errBusy
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher[H]) leave(holder H) {
	<-h.slots
	h.drop(holder)
}

// Hash makes the hash of a new password in its normal form. Errors: those of enter.
func (h *Hasher[H]) Hash(ctx context.Context, holder H, password string) (*Hash, error) {
	if err := h.enter(ctx, holder); err != nil {
		return nil, err
	}
	defer h.leave(holder)
	made := &Hash{Cost: h.cost, Salt: newSalt()}
	made.Sum = h.Derive(password, made.Salt, made.Cost, HashBytes)
	return made, nil
}

// Matches reports whether the password, in its normal form, is that of the hash. Errors: those of enter.
func (h *Hasher[H]) Matches(ctx context.Context, holder H, password string, want *Hash) (bool, error) {
	if err := h.enter(ctx, holder); err != nil {
		return false, err
	}
	defer h.leave(holder)
	return want.equals(h.Derive(password, want.Salt, want.Cost, len(want.Sum))), nil
}

// Waiting is how many hashes wait for a core now.
func (h *Hasher[H]) Waiting() int64 { return h.waiting.Load() }

// Refused is how many were refused.
func (h *Hasher[H]) Refused() uint64 { return h.refused.Load() }
