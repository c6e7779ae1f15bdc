package identity

import (
	"crypto/rand"
	"errors"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

const flowKeySetting = "flow-key"

// FlowKey returns 32 random bytes that all nodes of the cluster have, and nobody else. They stay the same for good. The
// error is failure.ErrUnavailable until the first leader has made them, or that of the store.
func (r *Replicated) FlowKey() ([]byte, error) {
	key, err := r.options.Store.Load(key.Setting(nil, flowKeySetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.Errorf(failure.ErrUnavailable, "the key of sign-ins is not made yet")
	}
	return key, failure.OfStore(err)
}

// It does not wait: what fails is tried again in the next epoch.
func (r *Replicated) makeFlowKey(epoch uint64) {
	store, row := r.options.Store, key.Setting(nil, flowKeySetting)
	if _, err := store.Load(row); !errors.Is(err, persistence.ErrNotFound) {
		return // NB: where the store cannot be read, there may be one
	}
	k := make([]byte, 32)
	_, _ = rand.Read(k) // crypto/rand never returns an error; it ends the program
	w := store.NewWritesIn(key.Meta, epoch)
	w.Set(row, k)
	store.Append(w, confirmation(func(err error) {
		if err != nil {
			r.options.Log.Warn().Err(err).Msg("the key of sign-ins through a provider was not made; the next leader tries again")
		}
	}))
}
