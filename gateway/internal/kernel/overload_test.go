package kernel

import (
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	gometrics "runtime/metrics"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/gateway/internal/listener"
)

// TestWhoComesAgainEarlyWaits until the time that Retry-After said, without a place, or until
// Stop; who comes later is refused at once, and whose connection is closed meanwhile is not
// answered.
func TestWhoComesAgainEarlyWaits(t *testing.T) {
	const told = RetryAfterMin * time.Second
	var ann, bob UserUsage
	for name, c := range map[string]struct {
		first, second *UserUsage    // of the two requests
		again         bool          // the second one comes on the same connection
		after         time.Duration // between them
		during        func(s *Kernel, l net.Listener)
		waited        time.Duration
		status        int
	}{
		"at once":                    {again: true, waited: told, status: http.StatusServiceUnavailable},
		"a little early":             {again: true, after: told - time.Second, waited: time.Second, status: http.StatusServiceUnavailable},
		"in time":                    {again: true, after: told, status: http.StatusServiceUnavailable},
		"on another connection":      {first: &ann, second: &ann, waited: told, status: http.StatusServiceUnavailable},
		"in time on another":         {first: &ann, second: &ann, after: told, status: http.StatusServiceUnavailable},
		"another user":               {first: &ann, second: &bob, status: http.StatusServiceUnavailable},
		"without a credential, anew": {status: http.StatusServiceUnavailable},
		"and the server stops":       {again: true, during: func(s *Kernel, _ net.Listener) { close(s.Stopping) }, waited: time.Second, status: http.StatusServiceUnavailable},
		"and is closed":              {again: true, during: func(_ *Kernel, l net.Listener) { _, _ = l.Accept() }, waited: told, status: statusAborted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Options{}, nil, Hooks{ErrorPage: func(*Exchange, int, string) bool { return false }})
				require.NoError(t, err)
				ann.RetryAt.Store(0)
				bob.RetryAt.Store(0)
				var l net.Listener
				connect := func() *listener.Conn {
					l = listener.New(idlePipes{}, 1, new(listener.Counts), func(netip.Addr) bool { return false })
					accepted, _ := l.Accept()
					return accepted.(*listener.Conn)
				}
				conn := connect()
				refuse := func(usage *UserUsage) int {
					x := &Exchange{Slot: Slot{Usage: usage, BeyondShare: usage != nil}, Kernel: s, Route: &s.Unmatched[GroupWorkflow], Writer: httptest.NewRecorder(), Request: httptest.NewRequest("GET", "/", nil), Connection: conn}
					conn.Begin(x.Request)
					defer conn.End()
					s.InFlight.Add(1)
					x.Counted = true
					x.writeErrorInTime(&failure.Error{Kind: failure.ErrBusy, Wait: told})
					x.EndAdmission()
					return x.Status
				}
				begun := time.Now()
				status := refuse(c.first)
				require.True(t, status == http.StatusServiceUnavailable && time.Since(begun) == 0, "%v %v", status, time.Since(begun))
				<-time.After(c.after)
				begun = time.Now()
				if !c.again {
					conn = connect()
				}
				ended := make(chan int)
				go func() { ended <- refuse(c.second) }()
				<-time.After(c.waited / 2)
				synctest.Wait()
				assert.Zero(t, s.InFlight.Load(), "requests have a place while it waits, want none")
				if c.during != nil {
					<-time.After(time.Second - c.waited/2)
					c.during(s, l)
				}
				status = <-ended
				assert.True(t, status == c.status && time.Since(begun) == c.waited, "got %d after %v, want %d after %v", status, time.Since(begun), c.status, c.waited)
			})
		})
	}
}

func TestTheLimitFollowsThePressure(t *testing.T) {
	p := &pressure{least: 100, most: 1000}
	p.Limit.Store(1000)
	for i, step := range []struct {
		waited         float64
		inFlight, want int64
	}{
		{0, 1000, 1000},           // never above
		{2 * waitGoal, 500, 400},  // from what there is, not from what there may be
		{2 * waitGoal, 600, 320},  // requests from before the limit
		{waitGoal, 320, 353},      // the goal is met
		{0, 0, 389},               // without load
		{2 * waitGoal, 50, 100},   // never below
		{2 * waitGoal, 5000, 100}, // nor later
	} {
		if p.follow(step.waited, step.inFlight); p.Limit.Load() != step.want {
			t.Errorf("step %d: got %d, want %d", i, p.Limit.Load(), step.want)
			p.Limit.Store(step.want)
		}
	}
}

// TestRefusedCallersAreSpread over as many seconds as bring few of them back in each.
func TestRefusedCallersAreSpread(t *testing.T) {
	p := newPressure(1000)
	goal := uint64(refusalsGoal * runtime.GOMAXPROCS(0))
	for i, step := range []struct {
		refused uint64
		want    int64
	}{
		{0, RetryAfterMin},
		{goal, RetryAfterMin},
		{4 * goal, 4 * RetryAfterMin},
		{goal, 4 * RetryAfterMin}, // what it should come to
		{2 * goal, 8 * RetryAfterMin},
		{20 * goal, retryAfterMax},
		{goal / 2, retryAfterMax / 2},
		{0, RetryAfterMin},
	} {
		p.spread(step.refused)
		assert.Equal(t, step.want, p.retryAfter.Load(), "second %d: got %d s, want %d", i, p.retryAfter.Load(), step.want)
	}
	for range 1000 {
		s, err := strconv.Atoi(RetryAfter(retryAfterMax)[0])
		require.True(t, err == nil && s >= 1 && s <= retryAfterMax, "got %d, %v", s, err)
	}
}

// TestTheLimitIsWithinTheOption also where the processors are many.
func TestTheLimitIsWithinTheOption(t *testing.T) {
	p := newPressure(3)
	assert.False(t, p.least != 3 || p.Limit.Load() != 3, "got from %d, now %d, want 3", p.least, p.Limit.Load())
}

// TestHowLongATenthWaits counts what a histogram of the runtime has more than before.
func TestHowLongATenthWaits(t *testing.T) {
	buckets := []float64{math.Inf(-1), 0.001, 0.01, 0.1, math.Inf(1)}
	before := []uint64{5, 5, 5, 5}
	for _, c := range []struct {
		since []uint64
		want  float64
	}{
		{[]uint64{0, 0, 0, 0}, 0},
		{[]uint64{100, 0, 0, 0}, 0},
		{[]uint64{90, 0, 10, 0}, 0}, // a tenth, not more
		{[]uint64{89, 0, 11, 0}, 0.01},
		{[]uint64{89, 11, 0, 0}, 0.001},
		{[]uint64{88, 0, 6, 6}, 0.01},
		{[]uint64{0, 0, 0, 1}, 0.1},
	} {
		h := &gometrics.Float64Histogram{Buckets: buckets, Counts: slices.Clone(before)}
		for i, n := range c.since {
			h.Counts[i] += n
		}
		assert.Equal(t, c.want, leastOfTop(h, before), c.since)
	}
}

// TestTheRuntimeSaysHowLongGoroutinesWait: the histogram is there under its name, and a
// look keeps its counts.
func TestTheRuntimeSaysHowLongGoroutinesWait(t *testing.T) {
	p := newPressure(10)
	_ = p.waited()
	seen := uint64(0)
	for _, n := range p.before {
		seen += n
	}
	assert.NotZero(t, seen)
}

// idlePipes is a listener whose every connection is a pipe that nobody uses.
type idlePipes struct{ net.Listener }

func (idlePipes) Accept() (net.Conn, error) {
	one, _ := net.Pipe()
	return one, nil
}
