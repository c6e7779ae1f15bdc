package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

func TestTheLongestGap(t *testing.T) {
	begin := time.Now()
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		answers []time.Duration
		want    Gap
	}{
		{"in the middle", []time.Duration{-50 * ms, 10 * ms, 20 * ms, 60 * ms, 90 * ms}, Gap{20 * ms, 40 * ms}},
		{"at the begin", []time.Duration{70 * ms, 90 * ms}, Gap{0, 70 * ms}},
		{"at the end", []time.Duration{10 * ms, 20 * ms, 120 * ms}, Gap{20 * ms, 80 * ms}},
		{"everything", nil, Gap{0, 100 * ms}},
		{"answers out of their order", []time.Duration{60 * ms, 50 * ms, 80 * ms}, Gap{0, 60 * ms}},
	} {
		g := gap{window: window{begin: begin, end: begin.Add(100 * ms)}}
		for _, at := range c.answers {
			g.answered(begin.Add(at))
		}
		assert.Equal(t, c.want, g.end(), c.name)
	}
}

func TestIntervalsAddUpToTheWindow(t *testing.T) {
	inLongerWindows(t, 100*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			switch n % 10 {
			case 0:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 5:
				w.WriteHeader(http.StatusInternalServerError)
			default:
				right(w, n, id, node)
			}
		}
		ticks := 0
		result := f.run(Options{Connections: 2, Instances: 8, Duration: window, Every: window / 8, Tick: func(*Interval) { ticks++ }})
		var sum Interval
		for i := range result.Series {
			at := &result.Series[i]
			sum.Operations += at.Operations
			sum.Requests += at.Requests
			sum.Shed += at.Shed
			sum.Errors += at.Errors
			assert.True(t, (i <= 0 || at.BeganSeconds == result.Series[i-1].EndedSeconds) && at.EndedSeconds >= at.BeganSeconds, "interval %d: %+v", i, at)
		}
		assert.True(t, sum.Operations == result.Operations && sum.Requests == result.All.Count && sum.Shed == result.Refused.Count && sum.Errors == result.ErrorsTotal &&
			result.Errors["event: status 500"] == result.ErrorsTotal,
			"got %+v in intervals, %+v in all", sum, result)
		if n := len(result.Series); n != ticks || n == 0 || result.Series[n-1].EndedSeconds != window.Seconds() {
			t.Errorf("got %d intervals and %d ticks: %+v", n, ticks, result.Series)
		}
		d := result.Percentiles
		return len(result.Series) > 1 && result.Refused.Count > 0 && result.ErrorsTotal > 0 &&
			len(d) > 1 && d[0].Percentile == 0 && d[len(d)-1] == (Percentile{100, result.Latency.MaxMs}) && result.Kinds["event"] == result.All
	})
}

// TestWhatIsLateHasAnIntervalBehindTheWindow answers the first request only when the window is over.
func TestWhatIsLateHasAnIntervalBehindTheWindow(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			<-time.After(2 * window)
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 1, Rate: 100, Duration: window, Every: window / 2})
		if f.events.Load() == 0 {
			return false
		}
		n := len(result.Series)
		if n < 2 || result.Series[n-2].EndedSeconds != window.Seconds() || result.Series[n-1].BeganSeconds != window.Seconds() || result.Series[n-1].Operations != result.All.Count || result.Operations != 0 {
			t.Errorf("got %+v", result)
		}
		return true
	})
}

// TestAServerThatIsGoneIsWaitedFor holds that its absence shows in the errors and does not end the run.
func TestAServerThatIsGoneIsWaitedFor(t *testing.T) {
	o := Options{Addr: servertest.Nobody(t)}
	o.EnsureDefaults()
	var g gap
	w := newWorker(&o, 1, nil, &g)
	inLongerWindows(t, 100*time.Millisecond, func(length time.Duration) bool {
		begin := time.Now()
		assert.ErrorIs(t, w.redial(t.Context(), window{begin: begin, end: begin.Add(length)}), errOver)
		n := total(w.tally.errors.of)
		assert.Equal(t, n, w.tally.errors.of["attempt to connect: connection refused"], "got the errors %v", w.tally.errors.of)
		return n > 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, w.redial(ctx, window{end: time.Now().Add(time.Hour)}), context.Canceled)
}

// TestARunGoesOnOverBrokenConnections breaks all connections for as long as a few attempts take.
func TestARunGoesOnOverBrokenConnections(t *testing.T) {
	inLongerWindows(t, 250*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			if n >= 10 && n < 14 {
				panic(http.ErrAbortHandler)
			}
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 1, Duration: window})
		sent, lost := f.events.Load(), result.Errors["event: no answer: unexpected EOF"]
		assert.True(t, lost == result.ErrorsTotal && lost <= 4 && (sent <= 14 || lost == 4), "got %v in %d events", result.Errors, sent)
		assert.False(t, sent > 15 && (result.All.Count < 10 || result.LongestGapSeconds < redialWaitMin.Seconds()/2), "got %d answers and the gap %v", result.All.Count, result.LongestGapSeconds)
		return sent > 15
	})
}

// TestAWalkThatIsOverGoesOnWithANewInstance has one event, which ends each instance.
func TestAWalkThatIsOverGoesOnWithANewInstance(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		scenario, err := ParseScenario("load.yaml", []byte("workflow: leave-request\nwalk: {draft: [{event: submit}]}\n"), nil)
		require.NoError(t, err)
		result := f.run(Options{Connections: 1, Instances: 1, Duration: window, Scenario: scenario})
		// Each event has its own instance, and the last request was of either kind.
		created, sent := f.created.Load(), f.events.Load()
		assert.True(t, (created == sent || created == sent+1) && result.ErrorsTotal <= 0, "got %d instances and %d events, errors %v", created, sent, result.Errors)
		return f.events.Load() > 2
	})
}

func TestTLS(t *testing.T) {
	f := newFake(t)
	secure := f.secure()
	result, err := Run(t.Context(), Options{
		Addr: secure.Listener.Addr().String(), TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig,
		Connections: 2, Instances: 2, Preload: 2, WarmUp: -1, Duration: 20 * time.Millisecond,
	})
	if err != nil || result.ErrorsTotal > 0 || f.events.Load() < 4 {
		t.Errorf("got %+v, %v, %d events", result, err, f.events.Load())
	}
	_, err = Run(t.Context(), Options{Addr: f.server.Listener.Addr().String(), TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	assert.True(t, err != nil && strings.Contains(err.Error(), "connect to"), "got %v", err)
}

// BenchmarkRecord is what counting costs for each request.
func BenchmarkRecord(b *testing.B) {
	var w worker
	begin := time.Now()
	g := gap{window: window{begin: begin, end: begin.Add(time.Hour)}}
	s := sent{kind: Event, operations: 1}
	at := begin
	for b.Loop() {
		at = at.Add(10 * time.Microsecond)
		g.answered(at)
		w.tally.record(&s, 1234*time.Microsecond, part{true, true})
	}
}

// TestAConnectionThatEndedWhileItRestedIsNoError: the server ends each connection after one
// answer without a word of it, and the worker sees that before it sends the next request.
func TestAConnectionThatEndedWhileItRestedIsNoError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is asked whether a connection has ended")
	}
	f := newFake(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				answer := httptest.NewRecorder()
				f.ServeHTTP(answer, r)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", answer.Body.Len(), answer.Body)
			}
			conn.Close()
		}
	}()
	o := Options{Addr: listener.Addr().String()}
	o.EnsureDefaults()
	w := newWorker(&o, 0, new(atomic.Int64), new(gap))
	defer w.conn.close()
	require.NoError(t, w.prepare(t.Context(), 1))
	win := window{begin: time.Now(), end: time.Now().Add(time.Hour)}
	for range 3 {
		for !w.conn.stale() {
			runtime.Gosched()
		}
		w.conn.last = time.Time{}
		require.NoError(t, w.once(t.Context(), win, time.Now()))
	}
	result := summarize([]*worker{w}, time.Hour)
	assert.True(t, result.All.Count == 3 && result.ErrorsTotal == 0, "got %d answers, errors %v", result.All.Count, result.Errors)
}
