package home

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// TestARefusedSetIsTriedAgain after intervals that grow to a bound, until it is
// taken, and soon after its files changed.
func TestARefusedSetIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []time.Duration
		begun, again := time.Now(), true
		f := newFollower(func() bool {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, time.Since(begun))
			begun = time.Now()
			return again
		}, 200*time.Millisecond)
		go f.loop()
		defer close(f.stop)
		wants := func(when string, pass time.Duration, want ...time.Duration) {
			t.Helper()
			mu.Lock()
			calls, begun = nil, time.Now()
			mu.Unlock()
			clocktest.Advance(pass)
			mu.Lock()
			defer mu.Unlock()
			assert.True(t, slices.Equal(calls, want), "%s: got calls after %v, want %v", when, calls, want)
		}
		const s = time.Second
		wants("without a change", time.Hour)
		poke(f.changed)
		wants("refused", 122*s, 200*time.Millisecond, s, 2*s, 4*s, 8*s, 16*s, 30*s, 30*s, 30*s)
		poke(f.changed)
		wants("changed", 2*s, 200*time.Millisecond, s)
		mu.Lock()
		again = false
		mu.Unlock()
		wants("taken at last", time.Hour, 1200*time.Millisecond)
		poke(f.retry)
		wants("asked to retry after the first reading", time.Hour, s)
	})
}

// TestASetWhoseReadingPanicsIsTriedAgain as one that is refused.
func TestASetWhoseReadingPanicsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		f := newFollower(func() bool {
			if calls++; calls < 3 {
				panic("a file that is read")
			}
			return false
		}, 200*time.Millisecond)
		go f.loop()
		defer close(f.stop)
		poke(f.changed)
		clocktest.Advance(time.Minute)
		assert.Equal(t, 3, calls, "calls, want 3")
	})
}

// TestUsersDoNotWaitForDefinitions: a store that hangs while definitions are
// published keeps no changed user waiting.
func TestUsersDoNotWaitForDefinitions(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people})
	access, publishing, release := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	w, err := NewWatcher(WatchOptions{
		Dir: dir, Settle: time.Millisecond, Log: zerolog.Nop(),
		Access: func() bool { access <- struct{}{}; return false },
		Definitions: func() bool {
			select {
			case publishing <- struct{}{}:
			case <-release:
			}
			<-release
			return false
		},
	})
	require.NoError(t, err)
	w.Start()
	defer stop(t, w)
	defer close(release)
	write(t, filepath.Join(dir, "workflows", "simple.yaml"), simple)
	<-publishing
	assert.Empty(t, access, "a changed workflow has the users read again")
	write(t, filepath.Join(dir, "identity.yaml"), people+"\n")
	<-access
}
