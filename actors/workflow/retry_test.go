package workflow_test

import (
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/internal/retry"
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
			return retry.Keep(store, 0, store.Epoch(0), retry.Digest{1}, &retry.First{Fingerprint: [32]byte{fingerprint}})
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

// FuzzFirstAnswer: any bytes are a first answer or failure.ErrExecution.
func FuzzFirstAnswer(f *testing.F) {
	whole := (&retry.First{Sequence: 3, At: 5, Head: []byte(`"a":1`), Tail: []byte(`"b":2`)}).Append(nil)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := retry.Parse(b)
		if err != nil {
			require.ErrorIs(t, err, failure.ErrExecution, "error of another kind")
			return
		}
		again, err := retry.Parse(s.Append(nil))
		require.True(t, err == nil && again.Sequence == s.Sequence && again.At == s.At && string(again.Head) == string(s.Head) && string(again.Tail) == string(s.Tail),
			"written and read again: got %+v, %v, want %+v", again, err, s)
	})
}
