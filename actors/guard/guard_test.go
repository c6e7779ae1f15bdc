package guard_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/guard"
	"troupe/actors/logtest"
	"troupe/persistence/clocktest"
)

func TestTry(t *testing.T) {
	var log logtest.Log
	before := guard.Panics()
	assert.ErrorIs(t, guard.Try(zerolog.New(&log), "counting", func() { panic("broken") }), guard.ErrPanicked)
	assert.NoError(t, guard.Try(zerolog.New(&log), "counting", func() {}), "what went well")
	n := guard.Panics() - before
	assert.Equal(t, int64(1), n, "panics, want 1")
	for _, want := range []string{"counting", "broken", "guard_test.go"} {
		assert.Contains(t, log.String(), want, "the log does")
	}
}

// TestAGoroutineThatEndsByGoexitIsNotRunAgain: only panics are caught.
func TestAGoroutineThatEndsByGoexitIsNotRunAgain(t *testing.T) {
	runs, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		guard.Loop(nil, zerolog.Nop(), "", func() { runs++; runtime.Goexit() })
	}()
	<-ended
	assert.Equal(t, 1, runs, "runs, want 1")
}

// TestLoop: the pauses grow up to a minute, are short again after a long run, and end with done.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			guard.Loop(done, zerolog.Nop(), "", func() {
				at = append(at, time.Since(begun))
				if len(at) == 9 {
					<-time.After(time.Hour)
				}
				panic("broken")
			})
		}()
		clocktest.Advance(4*time.Minute + time.Hour)
		var seconds []int
		for _, d := range at {
			seconds = append(seconds, int(d/time.Second))
		}
		want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 3784, 3786, 3790, 3798, 3814}
		require.Len(t, seconds, len(want), "got runs, %v", want)
		for i := range want {
			require.Equal(t, want[i], seconds[i], "got runs at %v s, want %v", seconds, want)
		}
		close(done)
		<-ended
	})
}
