package outbox

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

func TestAHostGetsFewRequestsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(time.Now)
		var mu sync.Mutex
		now, most, begun := 0, 0, 0
		for range 3 * perHost {
			go func() {
				release, err := h.acquire(context.Background(), "one")
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				now, begun = now+1, begun+1
				most = max(most, now)
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				release(true)
			}()
		}
		synctest.Wait()
		release, err := h.acquire(context.Background(), "another") // waits for nobody
		require.NoError(t, err)
		release(true)
		clocktest.Advance(time.Minute)
		assert.True(t, most == perHost && begun == 3*perHost && len(h.by) == 0, "%d at a time, %d in all, %d hosts are kept", most, begun, len(h.by))
	})
}

// TestAHostThatIsDownIsAskedAtGrowingIntervals, by one request at a time, however many wait.
func TestAHostThatIsDownIsAskedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var asked []time.Time
		up := false
		var all sync.WaitGroup
		for range 2 * perHost {
			all.Go(func() {
				for ctx.Err() == nil {
					release, err := h.acquire(ctx, "down")
					if err != nil {
						return
					}
					mu.Lock()
					asked = append(asked, time.Now())
					answered := up
					mu.Unlock()
					release(answered)
					if answered {
						return
					}
				}
			})
		}
		begun := time.Now()
		clocktest.Advance(10 * time.Second)
		mu.Lock()
		later := 0
		for _, at := range asked {
			if at.After(begun) {
				later++
			}
		}
		if later != 3 { // after 1, 3 and 7 s
			t.Errorf("asked %d times in the first %s, behind those that were under way together", later, time.Since(begun))
		}
		mu.Unlock()
		clocktest.Advance(10 * time.Minute)
		mu.Lock()
		n, last := len(asked), asked[len(asked)-1].Sub(asked[len(asked)-2])
		up = true
		mu.Unlock()
		assert.True(t, n <= 2*perHost+20 && last >= downMax/2 && last <= downMax+downMin, "asked %d times in %s, at last after %s", n, time.Since(begun), last)
		clocktest.Advance(2 * downMax)
		mu.Lock()
		rest := len(asked) - n
		mu.Unlock()
		assert.GreaterOrEqual(t, rest, 2*perHost, "when it is back")
		cancel()
		all.Wait()
	})
}
