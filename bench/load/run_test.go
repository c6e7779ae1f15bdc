package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

func TestAClosedLoopCountsWhatIsAnsweredInTheWindow(t *testing.T) {
	inLongerWindows(t, 150*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		began, ended := 0, 0
		result := f.run(Options{
			Connections: 4, Instances: 10, Preload: 2, WarmUp: window / 3, Duration: window,
			Began: func() { began++ }, Ended: func() { ended++ },
		})
		assert.Equal(t, int64(10), f.created.Load(), "created")
		sent := f.events.Load() - 2*10
		t.Logf("%v: got %d measured of %d sent", window, result.All.Count, sent)
		assert.True(t, result.All.Count <= sent && result.ErrorsTotal == 0, "got the errors %v", result.Errors)
		assert.True(t, began == 1 && ended == 1, "began %d times and ended %d times", began, ended)
		got, want := result.All.PerSecond, float64(result.All.Count)/window.Seconds()
		assert.True(t, !(got < want*0.99) && !(got > want*1.01), "got %.0f/s, want %.0f", got, want)
		// Answers in the window and answers outside it.
		return result.All.Count > 0 && result.All.Count < sent
	})
}

// TestTheEdgesComeInTheirOrder lets watch begin when all is over already: each
// edge is told of once, and the begin first.
func TestTheEdgesComeInTheirOrder(t *testing.T) {
	over := make(chan struct{})
	close(over)
	now := time.Now()
	for line, c := range map[string]struct {
		win  window
		want string
	}{
		"after the window":       {window{begin: now.Add(-2 * time.Second), end: now.Add(-time.Second)}, "began ended "},
		"broken off in it":       {window{begin: now.Add(-time.Second), end: now.Add(time.Hour)}, "began ended "},
		"broken off before it":   {window{begin: now.Add(time.Hour), end: now.Add(2 * time.Hour)}, ""},
		"after one of no length": {window{begin: now.Add(-time.Second), end: now.Add(-time.Second)}, "began ended "},
	} {
		for range 50 { // what is ready at the same time is taken in any order
			told := ""
			r := run{options: Options{Began: func() { told += "began " }, Ended: func() { told += "ended " }}}
			if r.watch(over, c.win); told != c.want {
				t.Fatalf("%s: got %q, want %q", line, told, c.want)
			}
		}
	}
}

// TestWrongAnswersAreErrors plants one fault in each run and demands that it is
// found: a generator that takes any answer measures nothing.
func TestWrongAnswersAreErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		event func(w http.ResponseWriter, n int64, id, node string)
		want  string
	}{
		{"another instance", func(w http.ResponseWriter, _ int64, _, node string) { writeInstance(w, "other", node) }, "event: the answer is about something else"},
		{"another node", func(w http.ResponseWriter, _ int64, id, _ string) { writeInstance(w, id, "approved") }, "event: the answer shows the node approved, not review"},
		{"a status", func(w http.ResponseWriter, _ int64, _, _ string) { w.WriteHeader(500) }, "event: status 500"},
		{"a status with its reason", func(w http.ResponseWriter, _ int64, _, _ string) {
			w.WriteHeader(409)
			fmt.Fprint(w, `{"error":"Rejected","message":"no"}`)
		}, "event: status 409 Rejected"},
		{"an empty body", func(http.ResponseWriter, int64, string, string) {}, "event: the answer is about something else"},
		{"no answer", func(http.ResponseWriter, int64, string, string) { panic(http.ErrAbortHandler) }, "event: no answer: unexpected EOF"},
		{"a connection that closes", func(w http.ResponseWriter, _ int64, id, node string) {
			w.Header().Set("Connection", "close")
			writeInstance(w, id, node)
		}, "event: status 200 and the connection closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
				f := newFake(t)
				right := f.event
				f.event = func(w http.ResponseWriter, n int64, id, node string) {
					if n == 5 {
						c.event(w, n, id, node)
						return
					}
					right(w, n, id, node)
				}
				result := f.run(Options{Connections: 1, Instances: 1, Duration: window})
				// An event is sent only in the window, and when the one before has been answered: the sixth says that
				// the fault fell into the window, the seventh that an answer after it did.
				sent, found := f.events.Load(), result.Errors[c.want]
				assert.True(t, found == result.ErrorsTotal && found <= 1 && (found != 0 || sent < 6), "%v %v %v %v", window, result.Errors, sent, c.want)
				assert.False(t, sent >= 7 && result.All.Count < 5, "%v: got %d answers to %d events", window, result.All.Count, sent)
				return sent >= 7
			})
		})
	}
}

func TestShedAnswersAreCountedApart(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			if n%2 == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 100, Duration: window})
		// All but the last, at most, were answered in the window.
		sent, shed, answered := f.events.Load(), result.Refused.Count, result.All.Count
		assert.True(t, shed <= sent/2 && answered <= sent-sent/2 && shed+answered >= sent-1 && result.ErrorsTotal == 0,
			"%v: got %d shed and %d answered of %d, errors %v", window, shed, answered, sent, result.Errors)
		return sent >= 3
	})
}

// TestAnOpenLoopCountsTheWaiting stops the server once for half of the window. A generator that counts from when it
// sent would show one slow request for each connection; here every request that was due meanwhile is slow.
func TestAnOpenLoopCountsTheWaiting(t *testing.T) {
	inLongerWindows(t, 200*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right := f.event
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			if n == 10 {
				<-time.After(window / 2)
			}
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 1, Rate: 200, Duration: window})
		assert.Equal(t, 200*window.Milliseconds()/1000, result.All.Count+result.Missed, "%v %v %v", window, result.All.Count, result.Missed)
		// About half of all waited, and one in ten most of the pause.
		shows := result.Latency.P90Ms >= float64(window.Milliseconds())/4
		assert.False(t, result.Missed == 0 && !shows, "%v: got p90 %v ms, want the pause to show", window, result.Latency.P90Ms)
		return shows
	})
}

func TestFewInstancesAreShared(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		result := f.run(Options{Connections: 4, Instances: 1, Duration: window})
		if f.created.Load() != 1 || result.ErrorsTotal != 0 {
			t.Errorf("%v: created %d, answered %d, errors %v", window, f.created.Load(), result.All.Count, result.Errors)
		}
		return result.All.Count > 0
	})
}

func TestARunEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.event = func(_ http.ResponseWriter, n int64, _, _ string) {
		if n == 3 {
			cancel()
		}
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	for _, rate := range []float64{0, 1000} {
		_, err := Run(ctx, Options{Addr: f.server.Listener.Addr().String(), Connections: 3, Instances: 3, Rate: rate, Duration: time.Hour})
		assert.ErrorIs(t, err, context.Canceled, "rate %v", rate)
	}
}

// TestWhatWasMeasuredBeforeTheEndOfTheContext comes with the error: two events were answered before.
func TestWhatWasMeasuredBeforeTheEndOfTheContext(t *testing.T) {
	f := newFake(t)
	right := f.event
	ctx, cancel := context.WithCancel(t.Context())
	f.event = func(w http.ResponseWriter, n int64, id, node string) {
		if n < 3 {
			right(w, n, id, node)
			return
		}
		cancel()
	}
	result, err := Run(ctx, Options{
		Addr: f.server.Listener.Addr().String(), Connections: 1, Instances: 1, WarmUp: -1, Duration: time.Hour, Every: time.Hour,
	})
	require.True(t, errors.Is(err, context.Canceled) && result != nil, "got %v, %v", result, err)
	assert.True(t, result.All.Count == 2 && result.ErrorsTotal == 0 && result.DurationSeconds < 3600 && len(result.Series) == 1 && result.Series[0].EndedSeconds <= result.DurationSeconds,
		"got %+v", result)
}

func TestNobodyThereIsAnError(t *testing.T) {
	_, err := Run(t.Context(), Options{Addr: servertest.Nobody(t), Connections: 2})
	assert.True(t, err != nil && strings.Contains(err.Error(), "connect to"), "got %v", err)
}

// TestARefusalLeavesAnInstanceWhereItIs: the next event is the one that was refused, and
// also before the window a refusal is tried again.
func TestARefusalLeavesAnInstanceWhereItIs(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		refusals := 3
		f.create = func(w http.ResponseWriter) bool {
			if refusals--; refusals >= 0 {
				w.WriteHeader(503)
			}
			return refusals >= 0
		}
		right, last := f.event, "draft"
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			assert.NotEqual(t, last, node, "the event %d leads", n)
			if n%2 == 0 {
				w.WriteHeader(429)
				return
			}
			last = node
			right(w, n, id, node)
		}
		result := f.run(Options{Connections: 1, Instances: 1, Duration: window})
		assert.True(t, result.ErrorsTotal == 0 && refusals < 0, "got the errors %v, and %d creates were not refused", result.Errors, refusals+1)
		return result.Refused.Count > 2 && result.All.Count > 2
	})
}

// TestWithoutAQueueABusyConnectionMisses what is due: the only connection waits for its
// first answer until the window is over, and later ones are not kept for it.
func TestWithoutAQueueABusyConnectionMisses(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		right, answer := f.event, make(chan struct{})
		f.event = func(w http.ResponseWriter, n int64, id, node string) {
			<-answer
			right(w, n, id, node)
		}
		result := f.run(Options{
			Connections: 1, Instances: 1, Rate: 1000, QueueMax: -1, Duration: window,
			Ended: func() { close(answer) },
		})
		if got := result.All.Count + result.Missed; got != window.Milliseconds() || result.ErrorsTotal > 0 {
			t.Errorf("got %d missed and %d answered of %d, errors %v", result.Missed, result.All.Count, window.Milliseconds(), result.Errors)
		}
		return result.Missed > 0 && result.All.Count > 0
	})
}

// TestARunThatHeedsRefusals: after a refusal a connection sends nothing more in this window.
func TestARunThatHeedsRefusals(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		f.event = func(w http.ResponseWriter, _ int64, _, _ string) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(503)
		}
		result := f.run(Options{Connections: 2, Instances: 5, Heed: true, Duration: window})
		if f.events.Load() > 2 || result.ErrorsTotal != 0 {
			t.Errorf("got %d events, want one of each connection; errors %v", f.events.Load(), result.Errors)
		}
		return f.events.Load() == 2
	})
}

// TestAListThatIsRefusedEndsTheRun before anything is created.
func TestAListThatIsRefusedEndsTheRun(t *testing.T) {
	f := newFake(t)
	f.event = func(w http.ResponseWriter, _ int64, _, _ string) {
		w.WriteHeader(400)
		fmt.Fprint(w, `{"error":"InvalidContent","message":"unknown operator $foo"}`)
	}
	_, err := Run(t.Context(), Options{Addr: f.server.Listener.Addr().String(), Connections: 1, Instances: 1, Mix: Mix{Query: 1}})
	var refused *PrepareError
	if want := "prepare: query as bench: status 400 InvalidContent: unknown operator $foo"; !errors.As(err, &refused) || refused.Error() != want || f.created.Load() > 0 {
		t.Errorf("got %v and %d instances, want %s", err, f.created.Load(), want)
	}
}

// TestAFaultBeforeTheWindowSaysWhatWasAsked: who sent which event where, and what the server said.
func TestAFaultBeforeTheWindowSaysWhatWasAsked(t *testing.T) {
	refuse := func(w http.ResponseWriter) {
		w.WriteHeader(400)
		fmt.Fprint(w, `{"error":"InvalidContent","message":"at /points: too many"}`)
	}
	for _, c := range []struct {
		create func(w http.ResponseWriter) bool
		event  func(w http.ResponseWriter, n int64, id, node string)
		want   string
		status int
	}{
		{func(w http.ResponseWriter) bool { refuse(w); return true }, nil, "prepare: create as bench: status 400 InvalidContent: at /points: too many", 400},
		{
			nil, func(w http.ResponseWriter, _ int64, _, _ string) { refuse(w) },
			"prepare: event submit in node draft as bench, instance i1: status 400 InvalidContent: at /points: too many", 400,
		},
		{
			nil, func(w http.ResponseWriter, _ int64, id, _ string) { writeInstance(w, id, "gone") },
			"prepare: event submit in node draft as bench, instance i1: the answer shows the node gone, not review", 0,
		},
	} {
		f := newFake(t)
		f.create, f.event = c.create, c.event
		_, err := Run(t.Context(), Options{Addr: f.server.Listener.Addr().String(), Connections: 1, Instances: 1, Preload: 1})
		var refused *PrepareError
		assert.True(t, errors.As(err, &refused) && refused.Error() == c.want && refused.Status == c.status, "got %v, want %s", err, c.want)
	}
}
