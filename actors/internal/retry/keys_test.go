package retry

import (
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/storetest"
)

// TestAKeyIsKeptWhenItIsDurable, also one that a request had stored that gave up before.
func TestAKeyIsKeptWhenItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		store, err := disk.Open(persistence.Options{Log: zerolog.Nop()})
		require.NoError(t, err)
		keep := func(fingerprint byte) error {
			return Keep(store, 0, store.Epoch(0), Digest{1}, &First{Fingerprint: [32]byte{fingerprint}})
		}
		disk.Hold()
		assert.ErrorIs(t, keep(1), failure.ErrOutcomeUnknown, "while the fsync hangs")
		again, other := make(chan error, 1), make(chan error, 1)
		go func() { again <- keep(1) }()
		go func() { other <- keep(2) }()
		synctest.Wait()
		assert.True(t, len(again) <= 0 && len(other) <= 0, "again, while the fsync hangs: an answer that a crash would take back")
		disk.Release()
		err = <-again
		assert.NoError(t, err)
		err = <-other
		assert.ErrorIs(t, err, failure.ErrKeyReused, "of another request")
		assert.NoError(t, store.Close())
	})
}
