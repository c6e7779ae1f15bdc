package persistence_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/clocktest"
)

func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int64
		time.AfterFunc(time.Hour, func() { fired.Add(1) })
		begun := time.Now()
		clocktest.Advance(time.Hour)
		if passed := time.Since(begun); passed != time.Hour || fired.Load() != 1 {
			t.Errorf("got %s and %d timers, want an hour and what fell due done", passed, fired.Load())
		}
	})
}

// TestAdvanceOutsideOfABubble: on a real clock it panics instead of waiting.
func TestAdvanceOutsideOfABubble(t *testing.T) {
	defer func() {
		assert.NotNil(t, recover(), "it waited on a real clock")
	}()
	clocktest.Advance(time.Hour)
}
