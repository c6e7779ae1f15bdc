package retry

import (
	"encoding/binary"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Keys makes requests with the same idempotency key wait for each other.
type Keys struct {
	held *xsync.Map[Digest, chan struct{}] // each is closed when the key is free
}

// NewKeys returns Keys of which none is held.
func NewKeys() Keys { return Keys{xsync.NewMap[Digest, chan struct{}]()} }

// Hold returns when no other request has the key; others wait until release is called. wait waits until done is closed,
// and its errors are Hold's.
func (k Keys) Hold(key Digest, wait func(done <-chan struct{}) error) (release func(), err error) {
	own := make(chan struct{})
	for {
		held, loaded := k.held.LoadOrStore(key, own)
		if !loaded {
			return func() {
				k.held.Delete(key)
				close(own)
			}, nil
		}
		if err := wait(held); err != nil {
			return nil, err
		}
	}
}

// PlaceOf returns the digest of a user's key that belongs to no instance, and the shard of its row.
func PlaceOf(store *persistence.Store, user, k string) (Digest, key.Shard) {
	digest := DigestOf(user, k)
	// NB: a part of the format on disk: the row of a first answer is found only where it was put.
	return digest, key.Shard(binary.BigEndian.Uint64(digest[:8]) % uint64(store.Shards()))
}

// Claim is Hold for a key outside every instance that is new. When the key has a first answer, and with an error,
// nothing is held and release is nil.
func (k Keys) Claim(store *persistence.Store, sh key.Shard, rowKey Digest, fingerprint [32]byte, wait func(done <-chan struct{}) error) (release func(), first *First, err error) {
	if release, err = k.Hold(rowKey, wait); err != nil {
		return nil, nil, err
	}
	first, err = loadDurable(store, key.Reply(nil, sh, key.ID{}, rowKey), fingerprint)
	if first != nil || err != nil {
		release()
		return nil, first, err
	}
	return release, nil, nil
}

// Keep stores what a key outside every instance stands for, unless that is stored, and returns when it is durable:
// failure.ErrKeyReused when the key stands for something else. Its caller holds the key, and asked for the epoch of the
// shard before.
func Keep(store *persistence.Store, sh key.Shard, epoch uint64, k Digest, f *First) error {
	row := key.Reply(nil, sh, key.ID{}, k)
	first, err := loadDurable(store, row, f.Fingerprint)
	if first != nil || err != nil {
		return err
	}
	w := store.NewWritesIn(sh, epoch)
	w.Set(row, f.Append(nil))
	return failure.OfStore(store.Commit(w))
}
