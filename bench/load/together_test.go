package load

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

// TestRunsThatBeginTogether: the one with few instances waits for the one with many.
func TestRunsThatBeginTogether(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		few, many := newFake(t), newFake(t)
		for _, f := range []*fake{few, many} {
			right := f.event
			f.event = func(w http.ResponseWriter, n int64, id, node string) {
				if few.created.Load() != 1 || many.created.Load() != 500 {
					t.Errorf("an event came after %d and %d instances, want 1 and 500", few.created.Load(), many.created.Load())
				}
				right(w, n, id, node)
			}
		}
		o := Options{Addr: few.server.Listener.Addr().String(), Connections: 1, Instances: 1, WarmUp: -1, Duration: window}
		other := o
		other.Addr, other.Instances = many.server.Listener.Addr().String(), 500
		begun := 0
		results, err := RunTogether(t.Context(), []Options{o, other}, func() { begun++ })
		require.True(t, err == nil && begun == 1, "begun %d times, %v", begun, err)
		return results[0].Operations > 0 && results[1].Operations > 0
	})
}

// TestARunThatCannotBeginEndsTheOthers, which would wait for it otherwise.
func TestARunThatCannotBeginEndsTheOthers(t *testing.T) {
	f := newFake(t)
	o := Options{Addr: f.server.Listener.Addr().String(), Connections: 1, Instances: 1}
	gone := o
	gone.Addr = servertest.Nobody(t)
	_, err := RunTogether(t.Context(), []Options{o, gone}, func() {})
	assert.True(t, err != nil && strings.Contains(err.Error(), "connect to"), "got %v", err)
	assert.Zero(t, f.events.Load())
}
