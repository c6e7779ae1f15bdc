package identity

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
)

// hashHolder is whose share of the places a hash uses: that of an account in a known
// place, or that of everybody else at one address.
type hashHolder struct {
	user UserID
	from netip.Prefix
}

// hasher computes a bounded number of password hashes at a time: each takes a core for
// some milliseconds and the memory of its cost, and the caller has proved nothing yet.
type hasher struct {
	cost PasswordCost
	// slots has one entry for each hash that is being computed.
	slots chan struct{}
	// waiting counts callers without a slot; at most waitingMax may wait.
	waiting    atomic.Int64
	waitingMax int64
	refused    atomic.Uint64
	// held counts the hashes of each holder, computed and waiting ones. No holder
	// has more than half of all.
	held struct {
		sync.Mutex
		by map[hashHolder]int
	}
	// unknown stands in for the hash of a user without a password, so that a sign-in
	// costs the same. No password has it.
	unknown *passwordHash
	// derive is replaced in tests that look at the slots.
	derive func(password string, salt []byte, cost PasswordCost, bytes int) []byte
}

func newHasher(cost PasswordCost, hashesMax, waitingMax int) *hasher {
	h := &hasher{
		cost: cost, slots: make(chan struct{}, hashesMax), waitingMax: int64(waitingMax), derive: derive,
		// NB: a random sum; nobody can know a password for it.
		unknown: &passwordHash{cost: cost, salt: newSalt(), sum: append(newSalt(), newSalt()...)},
	}
	h.held.by = map[hashHolder]int{}
	return h
}

// enter waits for a slot. It answers ErrBusy when too many wait already, or when
// the holder has half of all places, and the context's error when that ends
// first.
func (h *hasher) enter(ctx context.Context, holder hashHolder) error {
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

// hold counts a hash for the holder. It is false when the holder has its share.
func (h *hasher) hold(holder hashHolder) bool {
	h.held.Lock()
	defer h.held.Unlock()
	if h.held.by[holder] >= (cap(h.slots)+int(h.waitingMax))/2 {
		return false
	}
	h.held.by[holder]++
	return true
}

// drop is the opposite of hold.
func (h *hasher) drop(holder hashHolder) {
	h.held.Lock()
	defer h.held.Unlock()
	if h.held.by[holder]--; h.held.by[holder] == 0 {
		delete(h.held.by, holder)
	}
}

func (h *hasher) await(ctx context.Context) error {
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

func (h *hasher) leave(holder hashHolder) {
	<-h.slots
	h.drop(holder)
}

// hash makes the hash of a new password in its normal form. Errors: those of
// enter.
func (h *hasher) hash(ctx context.Context, holder hashHolder, password string) (*passwordHash, error) {
	if err := h.enter(ctx, holder); err != nil {
		return nil, err
	}
	defer h.leave(holder)
	made := &passwordHash{cost: h.cost, salt: newSalt()}
	made.sum = h.derive(password, made.salt, made.cost, hashBytes)
	return made, nil
}

// matches reports whether the password, in its normal form, is that of the hash.
// Errors: those of enter.
func (h *hasher) matches(ctx context.Context, holder hashHolder, password string, want *passwordHash) (bool, error) {
	if err := h.enter(ctx, holder); err != nil {
		return false, err
	}
	defer h.leave(holder)
	return want.equals(h.derive(password, want.salt, want.cost, len(want.sum))), nil
}
