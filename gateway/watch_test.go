package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/gateway/internal/kernel"
	"troupe/persistence/clocktest"
)

// feed is for fakeWorkflows: every watcher is told what a test puts in.
type feed struct {
	events chan watch.Event
	stop   func() // for fakeWorkflows.stop
	// ended gets what each call of watch returns; heard what tell answered it.
	ended, heard chan error
	stopped      chan struct{}
}

func newFeed() *feed {
	f := &feed{
		events: make(chan watch.Event, 10), stopped: make(chan struct{}),
		ended: make(chan error, 100), heard: make(chan error, 100),
	}
	f.stop = sync.OnceFunc(func() { close(f.stopped) })
	return f
}

func (f *feed) watch(ctx context.Context, r *watch.Request, yield func(watch.Event) error) (err error) {
	defer func() { f.ended <- err }()
	tell := func(e watch.Event) error {
		if _, err := r.Reauthorize(); err != nil {
			return err
		}
		return yield(e)
	}
	if err := tell(watch.Event{Kind: watch.Opened, ID: "p0"}); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for {
		select {
		case e := <-f.events:
			if err := tell(e); err != nil {
				f.heard <- err
				return fmt.Errorf("watch: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-f.stopped:
			return nil
		}
	}
}

func (f *feed) workflows() *fakeWorkflows { return &fakeWorkflows{watch: f.watch, stop: f.stop} }

func entryEvent(id, data string) watch.Event {
	return watch.Event{Kind: watch.Entry, ID: id, Data: []byte(data)}
}

type watcher struct {
	conn net.Conn
	body *bufio.Reader
}

const watchPath = "/workflow/api/v1/watch/leave"

// watch opens a stream and returns when its header is there.
func (s *testServer) watch(t testing.TB, headers ...string) *watcher {
	t.Helper()
	c := s.open(t, "GET "+watchPath+" HTTP/1.1\r\nHost: x\r\n"+strings.Join(append(headers, ""), "\r\n")+"\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err, "read the header")
	t.Cleanup(func() {
		_ = c.Close() // first: closing the body reads to its end
		_ = res.Body.Close()
	})
	require.Equal(t, 200, res.StatusCode, "watch")
	return &watcher{conn: c, body: bufio.NewReader(res.Body)}
}

// expect reads one block and compares.
func (w *watcher) expect(t testing.TB, want string) {
	t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), "\n\n") {
		line, err := w.body.ReadString('\n')
		require.NoError(t, err, "read an event, %q", got.String()+line)
		got.WriteString(line)
	}
	assert.Equal(t, want, got.String(), "got the event")
}

// expectEnd demands the end of the stream and nothing before.
func (w *watcher) expectEnd(t testing.TB) {
	t.Helper()
	rest, err := io.ReadAll(w.body)
	assert.True(t, err == nil && len(rest) <= 0, "got %q and %v, want the end of the stream", rest, err)
}

const opening = "retry: 2000\nid: p0\n\n"

// TestWatcherWhoLeaves holds that a caller who leaves ends the call.
func TestWatcherWhoLeaves(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{}, f.workflows())
	w := s.watch(t, withToken)
	w.expect(t, opening) // before anything happens
	f.events <- watch.Event{Kind: watch.Heartbeat}
	w.expect(t, ": beat\n\n")
	m := s.Metrics()
	assert.True(t, m.Watchers == 1 && m.InFlight == 0, "metrics: got %d watchers and %d in flight, want 1 and 0", m.Watchers, m.InFlight)
	_ = w.conn.Close()
	assert.ErrorIs(t, <-f.ended, context.Canceled, "the call ended")
	waitFor(t, "the watcher to be gone", func() bool { return s.Metrics().Watchers == 0 })
	assert.Zero(t, s.Metrics().Cut, "metrics")
}

// TestWatchBeforeItBegins holds that refusals are ordinary answers.
func TestWatchBeforeItBegins(t *testing.T) {
	for line, c := range map[string]struct {
		watch  func() error
		status int
		word   string
	}{
		"it is stopped":          {func() error { return nil }, 503, "Unavailable"},
		"its caller has changed": {func() error { return fmt.Errorf("watch: %w", kernel.ErrWatchOver) }, 503, "Unavailable"},
		"it panics":              {func() error { panic("no") }, 500, "Internal"},
	} {
		t.Run(line, func(t *testing.T) {
			s := startServer(t, Options{}, &fakeWorkflows{
				watch: func(context.Context, *watch.Request, func(watch.Event) error) error { return c.watch() },
			})
			a := s.do(t, get(watchPath))
			assert.True(t, a.Status == c.status && a.Label() == c.word, "got %d %s, want %d %s", a.Status, a.Body, c.status, c.word)
			m := s.Metrics()
			assert.True(t, m.Watchers == 0 && m.InFlight == 0, "metrics: got %d watchers and %d in flight, want none", m.Watchers, m.InFlight)
		})
	}
}

// TestWatchThatFails holds that what goes wrong inside a stream cuts it and,
// when it is our fault, is in the log.
func TestWatchThatFails(t *testing.T) {
	for line, fail := range map[string]func() error{
		"an error": func() error { return fmt.Errorf("%w: disk on fire", failure.ErrInternal) },
		"a panic":  func() error { panic("disk on fire") },
	} {
		t.Run(line, func(t *testing.T) {
			goOn := make(chan struct{})
			s := startServer(t, Options{}, &fakeWorkflows{
				watch: func(_ context.Context, _ *watch.Request, tell func(watch.Event) error) error {
					if err := tell(watch.Event{Kind: watch.Opened, ID: "p0"}); err != nil {
						return err
					}
					<-goOn
					return fail()
				},
			})
			w := s.watch(t, withToken)
			w.expect(t, opening)
			close(goOn)
			_, err := io.ReadAll(w.body)
			assert.ErrorIs(t, err, syscall.ECONNRESET, "got the end")
			waitFor(t, "the watcher to be gone", func() bool { return s.Metrics().Watchers == 0 })
			assert.Contains(t, s.log.String(), "disk on fire", "the log has nothing about")
		})
	}
}

// TestWatchersMax holds gateway/INTERFACE.md, "How a stream ends", and
// gateway/INTERFACE.md, "Fair shares": streams have a limit of their own, each user's
// is half of it, and none takes the places of requests.
func TestWatchersMax(t *testing.T) {
	for line, c := range map[string]struct {
		options Options
		open    []string
		refused string
	}{
		"of all":                      {Options{WatchersMax: 2, InFlightMax: 1}, []string{withToken, asBob}, withModToken},
		"of one user":                 {Options{WatchersPerUserMax: 2}, []string{withToken, withToken, asBob}, withToken},
		"of one user, half of them":   {Options{WatchersMax: 4, WatchersPerUserMax: 4}, []string{withToken, withToken, asBob}, withToken},
		"of one user, by connections": {Options{ConnectionsMax: 8, WatchersPerUserMax: 100}, []string{withToken, withToken, withToken, withToken}, withToken},
	} {
		t.Run(line, func(t *testing.T) {
			s := startServer(t, c.options, newFeed().workflows())
			var open []*watcher
			for _, credential := range c.open {
				open = append(open, s.watch(t, credential))
				waitFor(t, "the stream to leave the requests in flight", func() bool { return s.Metrics().InFlight == 0 })
			}
			s.do(t, request{Method: "GET", Path: watchPath, Headers: []string{c.refused}}).WantFault(t, 503, "Busy")
			assert.Equal(t, 200, s.do(t, postAsBob("event", eventBody)).Status, "a request")
			m := s.Metrics()
			assert.False(t, c.options.ConnectionsMax == 0 && (m.Watchers != int64(len(open)) || m.WatchersFull != 1 || m.Shed != 0),
				"metrics: got %d watchers, %d refused, %d shed; want %d, 1 and 0", m.Watchers, m.WatchersFull, m.Shed, len(open))
			mine := s.kernel.Usage.Of(ann.ID).Watchers.Load()
			_ = open[0].conn.Close()
			// The user's place is free after the place among all.
			waitFor(t, "the first to be gone", func() bool { return s.kernel.Usage.Of(ann.ID).Watchers.Load() == mine-1 })
			s.watch(t, c.refused).expect(t, opening)
		})
	}
}

// TestWatchDrainIsBounded holds that a stream that does not end by itself does
// not keep Stop.
func TestWatchDrainIsBounded(t *testing.T) {
	t.Parallel() // it waits for a second
	f := newFeed()
	s := startServer(t, Options{DrainMax: time.Hour}, &fakeWorkflows{watch: f.watch, stop: func() {}})
	w := s.watch(t, withToken)
	w.expect(t, opening)
	stop(t, s)
	assert.ErrorIs(t, <-f.ended, context.Canceled, "the call ended")
	assert.Contains(t, s.log.String(), `"drained":true`, "the log does not say that the requests were answered: %s", s.log)
}

// TestWatchOfAnOldProxy holds that a stream works over HTTP/1.0, where its end
// is that of the connection.
func TestWatchOfAnOldProxy(t *testing.T) {
	s := startServer(t, Options{}, nil)
	text, err := io.ReadAll(s.open(t, "GET "+watchPath+" HTTP/1.0\r\nHost: x\r\n"+withToken+"\r\n\r\n"))
	want := "\r\n\r\nretry: 2000\nid: p1\n\nid: p2\nevent: entry\ndata: " + watchedOne + "\n\n"
	assert.True(t, err == nil && strings.HasSuffix(string(text), want), "got %q and %v, want %q at the end", text, err, want)
}

// short is a limit of time in these tests, in which the virtual clock passes.
const short = 300 * time.Millisecond

// onPipes runs a test of a server on pipes in a bubble.
func onPipes(t *testing.T, o Options, workflows *fakeWorkflows, test func(*testing.T, *testServer)) {
	synctest.Test(t, func(t *testing.T) { test(t, startOnPipes(t, o, workflows)) })
}

// TestSlowCallers holds gateway/INTERFACE.md, "Slow callers", with shorter times.
func TestSlowCallers(t *testing.T) {
	head := "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\nContent-Length: 106\r\n\r\n"
	for line, c := range map[string]struct {
		options    Options
		text, want string
	}{
		"headers that do not end":       {Options{HeaderReadMax: short}, "GET /livez HTTP/1.1\r\nHost: x\r\n", ""},
		"nothing":                       {Options{HeaderReadMax: short}, "", ""},
		"a body that does not end":      {Options{ReadMax: short}, head + eventBody[:10], "HTTP/1.1 400 "},
		"a second request that is late": {Options{IdleMax: short}, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
	} {
		t.Run(line, func(t *testing.T) {
			onPipes(t, c.options, nil, func(t *testing.T, s *testServer) {
				begun := time.Now()
				got, err := io.ReadAll(s.open(t, c.text))
				assert.True(t, err == nil && strings.HasPrefix(string(got), c.want) && (c.want != "" || len(got) <= 0), "%v %v %v", got, err, c.want)
				took := time.Since(begun)
				assert.True(t, took >= short && took <= 2*short, "the end came after %v, want %v", took, short)
				assert.Zero(t, s.workflows.calls(), "a request acted whose body did not end")
			})
		})
	}
}

// TestSlowReaders holds that an answer which nobody reads is given up, and that
// a stream has its time for every piece anew.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workflows, ended := endless()
		s := startOnPipes(t, Options{WriteMax: short}, workflows)
		c := s.open(t, "GET /workflow/api/v1/instances/leave HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n\r\n")
		piece := make([]byte, 1<<20)
		for range 5 { // as long as somebody reads, it goes on
			_, err := io.ReadFull(c, piece)
			require.NoError(t, err, "the answer ended")
			clocktest.Advance(short - time.Millisecond)
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended too early: %v", err)
		default:
		}
		clocktest.Advance(2 * time.Millisecond)
		assert.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	})
}

// TestWatchOutlivesTheTimesOfARequest holds that neither ReadMax nor WriteMax
// ends a stream in which nothing happens for longer, nor its orderly end.
func TestWatchOutlivesTheTimesOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		s := startOnPipes(t, Options{ReadMax: short, WriteMax: short, HeaderReadMax: short, IdleMax: short}, f.workflows())
		w := s.watch(t, withToken)
		w.expect(t, opening)
		clocktest.Advance(3 * short)
		f.events <- entryEvent("p1", watchedOne)
		w.expect(t, "id: p1\nevent: entry\ndata: "+watchedOne+"\n\n")
		clocktest.Advance(3 * short)
		f.stop()
		w.expectEnd(t)
		assert.NoError(t, <-f.ended, "the call ended")
	})
}

// TestSlowWatcher holds that a watcher who does not read for WriteMax is disconnected.
func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		s := startOnPipes(t, Options{WriteMax: short}, f.workflows())
		w := s.watch(t, withToken)
		f.events <- entryEvent("p1", strings.Replace(watchedOne, `"draft"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))
		err := <-f.heard
		assert.True(t, errors.Is(err, kernel.ErrAborted) && errors.Is(err, os.ErrDeadlineExceeded), "got %v, want the write deadline", err)
		assert.ErrorIs(t, <-f.ended, kernel.ErrAborted, "the call ended")
		synctest.Wait()
		m := s.Metrics()
		assert.True(t, m.Cut == 1 && m.Watchers == 0, "%d answers are counted as cut and %d watchers, want 1 and 0", m.Cut, m.Watchers)
		_, err = io.ReadAll(w.body)
		assert.Error(t, err, "the stream looks whole")
	})
}

// TestQueryMayTakeLongerThanARequest holds that a query goes on when ReadMax is
// over, and that its answer has WriteMax from its end.
func TestQueryMayTakeLongerThanARequest(t *testing.T) {
	slow := &fakeWorkflows{query: func(ctx context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		select {
		case <-time.After(2 * short):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return smallEnd(), item([]byte(listedOne))
	}}
	onPipes(t, Options{ReadMax: short, HeaderReadMax: short, WriteMax: short}, slow, func(t *testing.T, s *testServer) {
		for _, query := range []string{"", "?limit=1"} {
			a := s.do(t, get("/workflow/api/v1/instances/leave"+query))
			assert.Equal(t, http.StatusOK, a.Status, "%v %v", query, a.Body)
		}
	})
}

// TestASilentNodeIsAnswered: the caller of a node that falls silent reads why, although the time for
// the answer was over by then.
func TestASilentNodeIsAnswered(t *testing.T) {
	batch := "[" + batchEvent("one", "") + "]"
	for _, c := range []struct {
		name string
		ask  request
		want int
	}{
		{"an event", post("event", eventBody), 504},
		{"an event with a key", post("event", eventBody, "Idempotency-Key: k"), 504},
		{"reading", get("/workflow/api/v1/instance/leave/" + instanceOne), 503},
		{"a batch", post("events", batch), 200},
		{"a batch with a key, which was not kept", post("events", batch, "Idempotency-Key: k"), 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			onPipes(t, Options{WriteMax: short, LeaderWaitMax: short / 3}, nil, func(t *testing.T, s *testServer) {
				workflows, peers := new(elsewhereWorkflows), new(fakePeers)
				workflows.setFail(failure.Elsewhere(7))
				s.Open(workflows.with(Services{Credentials: fakeCredentials{}, Peers: peers}))
				peers.say(leading(Peer{Node: "B", Transport: roundTrip(silent)}))
				s.do(t, c.ask).WantStatus(t, c.want)
			})
		})
	}
}
