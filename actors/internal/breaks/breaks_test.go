package breaks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/clocktest"
)

// TestWorkTakesBreaks behind each piece, as long as it is asked to, and none before what is free is over.
func TestWorkTakesBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(10*time.Millisecond, 3, 1)
		start := time.Now()
		for i, step := range []struct{ work, want time.Duration }{
			{9 * time.Millisecond, 0},
			{3 * time.Millisecond, 6 * time.Millisecond}, // for the two that were not free
			{piece - 1, 0},
			{1, 3 * piece},
			{5 * piece, 15 * piece},
			{time.Hour, longest},
		} {
			clocktest.Advance(step.work)
			before := time.Now()
			if b.Take(nil); time.Since(before) != step.want {
				t.Errorf("step %d: a break of %s, want %s", i, time.Since(before), step.want)
			}
		}
		want := 18*time.Millisecond + 24*time.Millisecond + time.Hour + longest
		assert.Equal(t, want, time.Since(start), "it took")
		done := make(chan struct{})
		close(done)
		clocktest.Advance(time.Second)
		before := time.Now()
		if b.Take(done); !time.Now().Equal(before) {
			t.Error("a break that has ended goes on")
		}
		clocktest.Advance(time.Second)
		before = time.Now()
		if b.Begin(); time.Since(before) != 0 {
			t.Error("it takes a break at its begin")
		}
		clocktest.Advance(10*time.Millisecond - 1)
		if b.Take(nil); time.Since(before) != 10*time.Millisecond-1 {
			t.Error("what is free is not free at the second time")
		}
		seldom := New(0, 1, 3)
		for call := 1; call <= 6; call++ {
			clocktest.Advance(time.Second)
			before := time.Now()
			if seldom.Take(nil); (time.Since(before) > 0) != (call%3 == 0) {
				t.Errorf("call %d: a break of %s", call, time.Since(before))
			}
		}
	})
}
