package load

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestARateThatIsTooHighShowsWhatTheServerDoes: what is answered in the window counts, also
// when it waited since the warm-up, and all that was due in the window was answered or missed.
func TestARateThatIsTooHighShowsWhatTheServerDoes(t *testing.T) {
	inLongerWindows(t, 100*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			<-time.After(time.Millisecond)
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 1, Rate: 20_000, WarmUp: window, Duration: window, Every: window / 4})
		got, want := result.All.Count+result.Missed, 20*window.Milliseconds()
		assert.True(t, got == want && result.ErrorsTotal <= 0 && result.Missed != 0, "%v %v %v %v %v", window, result.All.Count, result.Missed, want, result.Errors)
		sum := int64(0)
		for _, at := range result.Series {
			if at.BeganSeconds < window.Seconds() {
				sum += at.Operations
			}
		}
		if result.Operations != result.Requests || sum < result.Operations-1 || result.Requests > f.events.Load() {
			t.Errorf("%v: got %d requests, %d operations and %d in intervals, of %d events", window, result.Requests, result.Operations, sum, f.events.Load())
		}
		return result.Requests > 10 && result.LongestGapSeconds < window.Seconds()/2 && f.events.Load() > result.Requests+10
	})
}

// TestWhatARequestCountsFor: six answers come in the window of an open loop, of which four
// were due before it; two that were due in it come behind it.
func TestWhatARequestCountsFor(t *testing.T) {
	f := newFake(t)
	w := f.worker(1)
	begin := time.Now()
	win := window{begin: begin, end: begin.Add(time.Hour), open: true}
	for i := range 6 {
		due := begin
		if i < 4 {
			due = begin.Add(-time.Minute)
		}
		require.NoError(t, w.once(t.Context(), win, due))
	}
	win.end = time.Now()
	for range 2 {
		require.NoError(t, w.once(t.Context(), win, begin))
	}
	f.event = func(w http.ResponseWriter, _ int64, _, _ string) { w.WriteHeader(503) }
	win.end = begin.Add(time.Hour)
	for _, due := range []time.Time{begin, begin.Add(-time.Minute)} {
		require.NoError(t, w.once(t.Context(), win, due))
	}
	r := summarize([]*worker{w}, time.Second)
	assert.True(t, r.Requests == 6 && r.Operations == 6 && r.OperationsPerSecond == 6 && r.All.Count == 4 && r.Refused.Count == 1 && r.Shed == 2, "got %+v", r)
	used := func(d time.Duration) usages { return usages{server: &d} }
	r.cost(0, used(0), used(3*time.Millisecond), time.Second)
	assert.True(t, *r.ServerCPUMicrosPerOperation == 500 && r.GeneratorCPUCores == nil && r.ServerResidentBytes == nil, "got %+v", r)
	recent := &w.tally.mu.recent
	assert.True(t, recent.operations == 8 && recent.shed == 2, "in intervals: got %d operations, %d shed", recent.operations, recent.shed)
}

// silent reads a request and never answers it; dripping sends a byte a second, without end.
func silent(far net.Conn) { _, _ = io.Copy(io.Discard, far) }

func dripping(far net.Conn) {
	_, _ = far.Read(make([]byte, 1<<16))
	_, err := io.WriteString(far, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	for err == nil {
		<-time.After(time.Second)
		_, err = io.WriteString(far, "1\r\nx\r\n")
	}
}

// TestARequestWithoutAnAnswerIsAnError, when it came neither in time nor until the run was interrupted; an interrupt
// ends it at once. What is on its way when the window is interrupted is none.
func TestARequestWithoutAnAnswerIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		server func(far net.Conn)
		open   bool
		cut    time.Duration // 0: never
		want   map[string]int64
		ends   time.Duration
		err    error
	}{
		"silent":                       {server: silent, want: map[string]int64{"event: no answer: read: i/o timeout": 1}, ends: 25 * time.Second, err: errOver},
		"dripping":                     {server: dripping, want: map[string]int64{"event: no answer: read: i/o timeout": 1}, ends: 25 * time.Second, err: errOver},
		"silent, open loop":            {server: silent, open: true, want: map[string]int64{"event: no answer: read: i/o timeout": 1}, ends: 25 * time.Second, err: errOver},
		"dripping, then interrupted":   {server: dripping, cut: 1500 * time.Millisecond, want: map[string]int64{"event: no answer yet when the run was interrupted": 1}, ends: 1500 * time.Millisecond, err: context.Canceled},
		"interrupted in the window":    {server: silent, cut: 300 * time.Millisecond, ends: 300 * time.Millisecond, err: context.Canceled},
		"open, interrupted, behind it": {server: silent, open: true, cut: 2 * time.Second, want: map[string]int64{"event: no answer yet when the run was interrupted": 1}, ends: 2 * time.Second, err: context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			var serving sync.WaitGroup
			serving.Go(func() { c.server(far) })
			defer serving.Wait()
			defer near.Close()
			o := Options{Addr: "127.0.0.1:1"}
			o.EnsureDefaults()
			w := newWorker(&o, 0, new(atomic.Int64), new(gap))
			w.subjects = []subject{{id: "i1", at: o.Scenario.places["draft"], sure: true}}
			begin := time.Now()
			w.conn.conn, w.conn.mu.conn, w.conn.last = near, near, begin
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.cut > 0 {
				time.AfterFunc(c.cut, func() {
					cancel()
					w.conn.interrupt()
				})
			}
			err := w.once(ctx, window{begin: begin, end: begin.Add(600 * time.Millisecond), open: c.open}, begin)
			got := summarize([]*worker{w}, time.Second).Errors
			assert.True(t, errors.Is(err, c.err) && maps.Equal(got, c.want) && time.Since(begin) == c.ends,
				"%s: got %v, %v after %v; want %v, %v after %v", name, err, got, time.Since(begin), c.err, c.want, c.ends)
		})
	}
}
