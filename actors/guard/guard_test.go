package guard_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
	"troupe/actors/logtest"
	"troupe/persistence/clocktest"
)

func TestTry(t *testing.T) {
	var log logtest.Log
	before := guard.Panics()
	if err := guard.Try(zerolog.New(&log), "counting", func() { panic("broken") }); !errors.Is(err, guard.ErrPanicked) {
		t.Errorf("got %v", err)
	}
	if err := guard.Try(zerolog.New(&log), "counting", func() {}); err != nil {
		t.Errorf("what went well: %v", err)
	}
	if n := guard.Panics() - before; n != 1 {
		t.Errorf("%d panics, want 1", n)
	}
	for _, want := range []string{"counting", "broken", "guard_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
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
	if runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
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
		if len(seconds) != len(want) {
			t.Fatalf("got runs at %v s, want %v", seconds, want)
		}
		for i := range want {
			if seconds[i] != want[i] {
				t.Fatalf("got runs at %v s, want %v", seconds, want)
			}
		}
		close(done)
		<-ended
	})
}
