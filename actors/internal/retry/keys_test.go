package retry

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/storetest"
)

// TestAKeyIsKeptWhenItIsDurable, also one that a request had stored that gave up before.
func TestAKeyIsKeptWhenItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		store, err := disk.Open(persistence.Options{Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		keep := func(fingerprint byte) error {
			return Keep(store, 0, store.Epoch(0), Digest{1}, &First{Fingerprint: [32]byte{fingerprint}})
		}
		disk.Hold()
		if err := keep(1); !errors.Is(err, failure.ErrOutcomeUnknown) {
			t.Errorf("while the fsync hangs: got %v, want ErrOutcomeUnknown", err)
		}
		again, other := make(chan error, 1), make(chan error, 1)
		go func() { again <- keep(1) }()
		go func() { other <- keep(2) }()
		synctest.Wait()
		if len(again) > 0 || len(other) > 0 {
			t.Error("again, while the fsync hangs: an answer that a crash would take back")
		}
		disk.Release()
		if err := <-again; err != nil {
			t.Error(err)
		}
		if err := <-other; !errors.Is(err, failure.ErrKeyReused) {
			t.Errorf("of another request: got %v, want ErrKeyReused", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
