package identity

import (
	"context"
	"sync/atomic"
)

// hasher computes password hashes, a bounded number at a time: each takes a core
// for some milliseconds and the memory of its cost, and whoever asks has not
// proved anything yet.
type hasher struct {
	cost PasswordCost
	// slots has one entry for each hash that is being computed.
	slots chan struct{}
	// waiting counts callers without a slot; at most waitingMax may wait.
	waiting    atomic.Int64
	waitingMax int64
	refused    atomic.Uint64
	// unknown stands in for the hash of a user without a password, so that
	// asking for one costs the same. No password has it.
	unknown *passwordHash
	// derive is replaced in tests that look at the slots.
	derive func(password string, salt []byte, cost PasswordCost, bytes int) []byte
}

func newHasher(cost PasswordCost, hashesMax, waitingMax int) *hasher {
	return &hasher{
		cost: cost, slots: make(chan struct{}, hashesMax), waitingMax: int64(waitingMax), derive: derive,
		// NB: a random sum; nobody can know a password for it.
		unknown: &passwordHash{cost: cost, salt: newSalt(), sum: append(newSalt(), newSalt()...)},
	}
}

// enter waits for a slot. It answers ErrBusy when too many wait already, and the
// context's error when that ends first.
func (h *hasher) enter(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > h.waitingMax {
		h.refused.Add(1)
		return ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hasher) leave() { <-h.slots }

// hash makes the hash of a new password in its normal form. Errors: those of
// enter.
func (h *hasher) hash(ctx context.Context, password string) (*passwordHash, error) {
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	defer h.leave()
	made := &passwordHash{cost: h.cost, salt: newSalt()}
	made.sum = h.derive(password, made.salt, made.cost, hashBytes)
	return made, nil
}

// matches reports whether the password, in its normal form, is that of the hash.
// Errors: those of enter.
func (h *hasher) matches(ctx context.Context, password string, want *passwordHash) (bool, error) {
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	return want.equals(h.derive(password, want.salt, want.cost, len(want.sum))), nil
}
