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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/watch"
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

func (f *feed) workflows() *fakeWorkflows {
	return &fakeWorkflows{watch: f.watch, stop: f.stop}
}

func entryEvent(id, data string) watch.Event {
	return watch.Event{Kind: watch.Entry, ID: id, Data: []byte(data)}
}

// watcher is an open stream.
type watcher struct {
	conn *net.TCPConn
	res  *http.Response
	body *bufio.Reader
}

const watchPath = "/workflow/api/v1/watch/leave"

// watch opens a stream and returns when its header is there.
func (s *testServer) watch(t testing.TB, headers ...string) *watcher {
	t.Helper()
	c := s.dial(t)
	text := "GET " + watchPath + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("read the header: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Close() // first: closing the body reads to its end
		_ = res.Body.Close()
	})
	if res.StatusCode != 200 {
		t.Fatalf("watch: got %d, want 200", res.StatusCode)
	}
	return &watcher{conn: c, res: res, body: bufio.NewReader(res.Body)}
}

// expect reads one block and compares.
func (w *watcher) expect(t testing.TB, want string) {
	t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), "\n\n") {
		line, err := w.body.ReadString('\n')
		if err != nil {
			t.Fatalf("read an event: %v behind %q", err, got.String()+line)
		}
		got.WriteString(line)
	}
	if got.String() != want {
		t.Errorf("got the event %q, want %q", got.String(), want)
	}
}

// expectEnd demands the end of the stream and nothing before.
func (w *watcher) expectEnd(t testing.TB) {
	t.Helper()
	if rest, err := io.ReadAll(w.body); err != nil || len(rest) > 0 {
		t.Errorf("got %q and %v, want the end of the stream", rest, err)
	}
}

const opening = "retry: 2000\nid: p0\n\n"

// TestWatchFraming holds how each event stands in the stream.
func TestWatchFraming(t *testing.T) {
	for line, c := range map[string]struct {
		event watch.Event
		want  string
	}{
		"the beginning":         {watch.Event{Kind: watch.Opened, ID: "e.7"}, "retry: 2000\nid: e.7\n\n"},
		"an entry":              {entryEvent("e.8", `{"a":1}`), "id: e.8\nevent: entry\ndata: {\"a\":1}\n\n"},
		"a loss":                {watch.Event{Kind: watch.Lost, ID: "e.9", Data: []byte(`{"message":"m"}`)}, "event: lost\ndata: {\"message\":\"m\"}\nid: e.9\n\n"},
		"a beat":                {watch.Event{Kind: watch.Heartbeat}, ": beat\n\n"},
		"line ends in the data": {entryEvent("x", "{\n\"a\":\r\n1}"), "id: x\nevent: entry\ndata: {\ndata: \"a\":\ndata: \ndata: 1}\n\n"},
	} {
		if got := string(appendWatchEvent(nil, c.event)); got != c.want {
			t.Errorf("%s: got %q, want %q", line, got, c.want)
		}
	}
}

// TestWatch goes through a stream as a client sees it.
func TestWatch(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{}, f.workflows())
	w := s.watch(t, withToken)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		"X-Content-Type-Options": "nosniff", "Vary": "Cookie, Authorization, Authentication",
	} {
		if got := w.res.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	w.expect(t, opening) // before anything happens
	f.events <- entryEvent("p1", watchedOne)
	w.expect(t, "id: p1\nevent: entry\ndata: "+watchedOne+"\n\n")
	f.events <- watch.Event{Kind: watch.Heartbeat}
	w.expect(t, ": beat\n\n")
	f.events <- watch.Event{Kind: watch.Lost, ID: "p9", Data: []byte(`{"message":"m"}`)}
	w.expect(t, "event: lost\ndata: {\"message\":\"m\"}\nid: p9\n\n")
	if m := s.Metrics(); m.Watchers != 1 || m.InFlight != 0 {
		t.Errorf("metrics: got %d watchers and %d in flight, want 1 and 0", m.Watchers, m.InFlight)
	}
	// A caller who leaves ends the call.
	_ = w.conn.Close()
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want the context's error", err)
	}
	waitFor(t, "the watcher to be gone", func() bool { return s.Metrics().Watchers == 0 })
	if m := s.Metrics(); m.Cut != 0 {
		t.Errorf("metrics: got %d answers aborted: leaving is no error", m.Cut)
	}
}

// TestWatchRequests holds gateway/INTERFACE.md, "Watch streams", and
// gateway/INTERFACE.md, "Resuming a stream": what a request hands on, and which are
// refused.
func TestWatchRequests(t *testing.T) {
	long := strings.Repeat("~", 255)
	for _, c := range []struct {
		line, target string
		headers      []string
		status       int
		want         watch.Request
	}{
		{"all instances", "leave", nil, 200, watch.Request{WorkflowID: "leave"}},
		{"one instance", "leave/i1", nil, 200, watch.Request{WorkflowID: "leave", InstanceID: "i1"}},
		{"a filter", "leave?filter=%7B%7D", nil, 200, watch.Request{WorkflowID: "leave", Filter: "{}"}},
		{"an empty filter", "leave?filter=", nil, 200, watch.Request{WorkflowID: "leave"}},
		{"a place", "leave", []string{"Last-Event-ID: e.7"}, 200, watch.Request{WorkflowID: "leave", LastEventID: "e.7"}},
		{"a place in lower case", "leave", []string{"last-event-id: e.7"}, 200, watch.Request{WorkflowID: "leave", LastEventID: "e.7"}},
		{"an empty place is none", "leave", []string{"Last-Event-ID: "}, 200, watch.Request{WorkflowID: "leave"}},
		{"255 characters", "leave", []string{"Last-Event-ID: " + long}, 200, watch.Request{WorkflowID: "leave", LastEventID: long}},
		{"256 characters", "leave", []string{"Last-Event-ID: ~" + long}, 400, watch.Request{}},
		{"a blank", "leave", []string{"Last-Event-ID: a b"}, 400, watch.Request{}},
		{"not ASCII", "leave", []string{"Last-Event-ID: ü"}, 400, watch.Request{}},
		{"repeated", "leave", []string{"Last-Event-ID: a", "Last-Event-ID: a"}, 400, watch.Request{}},
		{"two filters", "leave?filter=a&filter=a", nil, 400, watch.Request{}},
		{"an unknown parameter", "leave?limit=1", nil, 400, watch.Request{}},
		{"no UTF-8 escape", "leave?filter=%zz", nil, 400, watch.Request{}},
		{"a semicolon", "leave?filter=a;b", nil, 400, watch.Request{}},
		{"an empty instance is not all instances", "leave/", nil, 404, watch.Request{}},
		{"no workflow", "", nil, 404, watch.Request{}},
		{"no identifier", "-a", nil, 404, watch.Request{}},
		{"an instance that is no identifier", "leave/%2e%2e", nil, 404, watch.Request{}},
		{"something behind", "leave/i1/x", nil, 404, watch.Request{}},
	} {
		t.Run(c.line, func(t *testing.T) {
			s := startServer(t, Options{}, nil)
			text := "GET /workflow/api/v1/watch/" + c.target + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(append(c.headers, withToken), "\r\n") + "\r\n\r\n"
			replies := parseReplies(t, s.raw(t, text), "GET")
			if len(replies) != 1 || replies[0].status != c.status {
				t.Fatalf("got %+v, want one %d", replies, c.status)
			}
			if c.status != 200 {
				checkErrorBody(t, replies[0])
				checkCommonHeaders(t, replies[0].header)
				if s.workflows.calls() != 0 {
					t.Error("the workflows were asked")
				}
				return
			}
			got := *s.workflows.mu.watch
			if got.Reauthorize == nil {
				t.Error("nobody asks again who the caller is")
			}
			got.Reauthorize, c.want.Caller = nil, ann
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestWatchBeforeItBegins holds that refusals are ordinary answers.
func TestWatchBeforeItBegins(t *testing.T) {
	for line, c := range map[string]struct {
		watch  func() error
		status int
		word   string
	}{
		"it is refused":            {func() error { return fmt.Errorf("watch: %w", failure.ErrForbidden) }, 403, "AccessDenied"},
		"it is stopped":            {func() error { return nil }, 503, "Unavailable"},
		"its credential has ended": {func() error { return fmt.Errorf("watch: %w", failure.ErrUnauthorized) }, 401, "Unauthorized"},
		"its caller has changed":   {func() error { return fmt.Errorf("watch: %w", errWatchOver) }, 503, "Unavailable"},
		"it is refused as stopped": {func() error { return failure.ErrUnavailable }, 503, "Unavailable"},
		"it panics":                {func() error { panic("no") }, 500, "Internal"},
	} {
		t.Run(line, func(t *testing.T) {
			s := startServer(t, Options{}, &fakeWorkflows{
				watch: func(context.Context, *watch.Request, func(watch.Event) error) error { return c.watch() },
			})
			a := s.do(t, get(watchPath))
			if a.status != c.status || a.label() != c.word {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, c.status, c.word)
			}
			checkCommonHeaders(t, a.header)
			if (a.header.Get("Retry-After") != "") != (c.status == 503) {
				t.Errorf("Retry-After: got %q with %d", a.header.Get("Retry-After"), a.status)
			}
			if m := s.Metrics(); m.Watchers != 0 || m.InFlight != 0 {
				t.Errorf("metrics: got %d watchers and %d in flight, want none", m.Watchers, m.InFlight)
			}
		})
	}
}

// TestWatchThatFails holds that what goes wrong inside of a stream cuts it and,
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
			if _, err := io.ReadAll(w.body); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got the end %v, want a reset", err)
			}
			waitFor(t, "the watcher to be gone", func() bool { return s.Metrics().Watchers == 0 })
			if log := s.log.String(); !strings.Contains(log, "disk on fire") {
				t.Errorf("the log has nothing about it: %s", log)
			}
		})
	}
}

// TestWatchOutlivesTheTimesOfARequest holds that neither ReadMax nor WriteMax
// ends a stream in which nothing happens for longer, nor its orderly end.
func TestWatchOutlivesTheTimesOfARequest(t *testing.T) {
	const short = 250 * time.Millisecond
	f := newFeed()
	s := startServer(t, Options{ReadMax: short, WriteMax: short, HeaderReadMax: short, IdleMax: short}, f.workflows())
	w := s.watch(t, withToken)
	w.expect(t, opening)
	<-time.After(3 * short)
	f.events <- entryEvent("p1", watchedOne)
	w.expect(t, "id: p1\nevent: entry\ndata: "+watchedOne+"\n\n")
	<-time.After(3 * short)
	f.stop()
	w.expectEnd(t)
	if err := <-f.ended; err != nil {
		t.Errorf("the call ended with %v, want nil", err)
	}
}

// TestSlowWatcher holds that a watcher who does not read for WriteMax is disconnected.
func TestSlowWatcher(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{WriteMax: 300 * time.Millisecond}, f.workflows())
	w := s.watch(t, withToken)
	big := entryEvent("p1", strings.Replace(watchedOne, `"draft"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))
	for {
		select {
		case f.events <- big:
			continue
		case err := <-f.heard:
			if !errors.Is(err, errAborted) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v, want the write deadline", err)
			}
		}
		break
	}
	if err := <-f.ended; !errors.Is(err, errAborted) {
		t.Errorf("the call ended with %v", err)
	}
	waitFor(t, "the watcher to be counted as aborted", func() bool { m := s.Metrics(); return m.Cut == 1 && m.Watchers == 0 })
	if _, err := io.ReadAll(w.body); err == nil {
		t.Error("the stream looks whole")
	}
}

// TestWatchersMax holds gateway/INTERFACE.md, "How a stream ends": streams have a
// limit of their own.
func TestWatchersMax(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{WatchersMax: 2, InFlightMax: 1}, f.workflows())
	one, two := s.watch(t, withToken), s.watch(t, asBob)
	one.expect(t, opening)
	two.expect(t, opening)
	waitFor(t, "the streams to leave the requests in flight", func() bool { return s.Metrics().InFlight == 0 })
	a := s.do(t, get(watchPath))
	if a.status != 503 || a.label() != "Busy" || a.header.Get("Retry-After") == "" {
		t.Errorf("the third: got %d %s, want 503 Busy", a.status, a.body)
	}
	if a := s.do(t, get("/workflow/api/v1/choices")); a.status != 200 {
		t.Errorf("another request: got %d, want 200: streams are not in flight", a.status)
	}
	if m := s.Metrics(); m.Watchers != 2 || m.WatchersFull != 1 || m.Shed != 0 {
		t.Errorf("metrics: got %d watchers, %d refused, %d shed; want 2, 1 and 0", m.Watchers, m.WatchersFull, m.Shed)
	}
	_ = one.conn.Close()
	waitFor(t, "the first to be gone", func() bool { return s.Metrics().Watchers == 1 })
	s.watch(t, withToken).expect(t, opening)
}

// TestWatchersPerUserMax holds that one user does not take the places of others.
func TestWatchersPerUserMax(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{WatchersPerUserMax: 2}, f.workflows())
	one, two := s.watch(t, withToken), s.watch(t, withToken)
	one.expect(t, opening)
	two.expect(t, opening)
	for range 2 {
		if a := s.do(t, get(watchPath)); a.status != 503 || a.label() != "Busy" || a.header.Get("Retry-After") == "" {
			t.Errorf("the third: got %d %s, want 503 Busy", a.status, a.body)
		}
	}
	four := s.watch(t, asBob)
	four.expect(t, opening)
	_ = four.conn.Close()
	waitFor(t, "the other user's to be gone", func() bool { return s.Metrics().Watchers == 2 })
	if m := s.Metrics(); m.Watchers != 2 || m.WatchersFull != 2 {
		t.Errorf("metrics: got %d watchers and %d refused, want 2 and 2", m.Watchers, m.WatchersFull)
	}
	_ = one.conn.Close()
	// The user's place is free after the place among all.
	waitFor(t, "the first to be gone", func() bool { return s.Metrics().Watchers == 1 && s.usage.of(ann.ID).watchers.Load() == 1 })
	three := s.watch(t, withToken)
	three.expect(t, opening)
	for _, w := range []*watcher{two, three} {
		_ = w.conn.Close()
	}
	waitFor(t, "all to be gone", func() bool { return s.usage.of(ann.ID).watchers.Load() == 0 })
}

// TestWatchersWithoutACredential holds that nobody takes a watcher's place
// without being known.
func TestWatchersWithoutACredential(t *testing.T) {
	s := startServer(t, Options{WatchersMax: 1}, newFeed().workflows())
	for range 5 {
		if a := s.do(t, request{method: "GET", path: watchPath}); a.status != 401 {
			t.Errorf("got %d, want 401", a.status)
		}
	}
	if m := s.Metrics(); m.WatchersFull != 0 {
		t.Errorf("metrics: got %d watchers refused, want 0", m.WatchersFull)
	}
	s.watch(t, withToken).expect(t, opening)
}

// TestWatchDrain holds gateway/INTERFACE.md, "Stopping": Stop ends streams in
// order and does not wait for them as it waits for requests.
func TestWatchDrain(t *testing.T) {
	g, f := newGate(), newFeed()
	workflows := f.workflows()
	workflows.send = g.send
	s := startServer(t, Options{DrainMax: time.Hour}, workflows)
	w := s.watch(t, withToken)
	w.expect(t, opening)
	accepted := s.async(t, post("event", eventBody))
	<-g.entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, s)
	}()
	w.expectEnd(t) // while an accepted request is still worked on
	if a := s.do(t, get(watchPath)); a.status != 503 || a.label() != "Unavailable" {
		t.Errorf("a new stream: got %d %s, want 503 Unavailable", a.status, a.body)
	}
	close(g.leave)
	if a := <-accepted; a.status != 200 {
		t.Errorf("the accepted request: got %d, want 200", a.status)
	}
	<-stopped
}

// TestWatchDrainIsBounded holds that a stream that does not end by itself does
// not keep Stop.
func TestWatchDrainIsBounded(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{DrainMax: time.Hour}, &fakeWorkflows{watch: f.watch, stop: func() {}})
	w := s.watch(t, withToken)
	w.expect(t, opening)
	stop(t, s)
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want the context's error", err)
	}
	if !strings.Contains(s.log.String(), `"drained":true`) {
		t.Errorf("the log does not say that the requests were answered: %s", s.log)
	}
}

// TestWatchHead holds that HEAD asks for the header only, with the rights.
func TestWatchHead(t *testing.T) {
	f := newFeed()
	s := startServer(t, Options{}, f.workflows())
	a := s.do(t, request{method: "HEAD", path: watchPath, headers: []string{withToken}})
	if a.status != 200 || a.body != "" || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %q %v, want 200 and the header of a stream", a.status, a.body, a.header)
	}
	if err := <-f.ended; !errors.Is(err, errWatchOver) {
		t.Errorf("the call ended with %v", err)
	}
	waitFor(t, "the watcher to be gone", func() bool { return s.Metrics().Watchers == 0 })
	if m := s.Metrics(); m.Cut != 0 {
		t.Errorf("metrics: got %d aborted, want 0", m.Cut)
	}
}

// TestWatchOfAnOldProxy holds that a stream works over HTTP/1.0, where its end
// is that of the connection.
func TestWatchOfAnOldProxy(t *testing.T) {
	s := startServer(t, Options{}, nil)
	c := s.dial(t)
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET "+watchPath+" HTTP/1.0\r\nHost: x\r\n"+withToken+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if want := "\r\n\r\nretry: 2000\nid: p1\n\nid: p2\nevent: entry\ndata: " + watchedOne + "\n\n"; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("got %q and %v, want %q at the end", text, err, want)
	}
}

// TestWatchOfOtherSites holds gateway/INTERFACE.md, "Cross-site requests": no page
// of another site opens a stream with the browser's cookie, though it only reads.
func TestWatchOfOtherSites(t *testing.T) {
	cookie := "Cookie: session=" + sessionAnn
	s := startServer(t, Options{}, nil)
	for _, c := range []struct {
		line    string
		headers []string
		status  int
	}{
		{"an EventSource of our own page", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200},
		{"a program", []string{cookie}, 200},
		{"typed in by hand", []string{cookie, "Sec-Fetch-Site: none"}, 200},
		{"another site", []string{cookie, "Sec-Fetch-Site: cross-site"}, 403},
		{"a sibling", []string{cookie, "Sec-Fetch-Site: same-site"}, 403},
		{"an old browser on another site", []string{cookie, "Origin: https://evil.example"}, 403},
		{"a sandboxed page", []string{cookie, "Origin: null"}, 403},
		{"another site with a session that is none", []string{"Cookie: session=" + tokenNobody, "Sec-Fetch-Site: cross-site"}, 403},
		{"another site's program with a token", []string{withToken, "Sec-Fetch-Site: cross-site"}, 200},
	} {
		for _, path := range []string{watchPath, watchPath + "/i1"} {
			for _, method := range []string{"GET", "HEAD"} {
				if a := s.do(t, request{method: method, path: path, headers: c.headers}); a.status != c.status {
					t.Errorf("%s: %s %s: got %d %s, want %d", c.line, method, path, a.status, a.body, c.status)
				}
			}
		}
	}
}

// changingCredentials are credentials that change while a stream is open.
type changingCredentials struct {
	now atomic.Pointer[identity.Principal]
}

func (c *changingCredentials) Authenticate(identity.Kind, string) (*identity.Principal, error) {
	if p := c.now.Load(); p != nil {
		return p, nil
	}
	return nil, failure.ErrUnauthorized
}

// TestWatchEndsWithItsCredential holds gateway/INTERFACE.md,
// "Rights of a watcher": a stream shows nothing any more once its credential is
// revoked, or its owner may do something else.
func TestWatchEndsWithItsCredential(t *testing.T) {
	for line, c := range map[string]struct {
		after *identity.Principal
		ends  bool
	}{
		"nothing changed":             {ann, false},
		"the same in a new directory": {&identity.Principal{ID: "ann", Name: "Anna", Roles: ann.Roles, Privileges: ann.Privileges}, false},
		"revoked":                     {nil, true},
		"a role less":                 {&identity.Principal{ID: "ann", Privileges: ann.Privileges}, true},
		"a privilege more":            {&identity.Principal{ID: "ann", Roles: ann.Roles, Privileges: []string{"mod-form", "mod-workflows"}}, true},
	} {
		for _, e := range []watch.Event{entryEvent("p1", watchedOne), {Kind: watch.Heartbeat}} {
			t.Run(fmt.Sprint(line, " ", e.Kind), func(t *testing.T) {
				f, credentials := newFeed(), new(changingCredentials)
				credentials.now.Store(ann)
				s := startClosed(t, Options{})
				s.Open(Services{Workflows: f.workflows(), Credentials: credentials})
				w := s.watch(t, withToken)
				w.expect(t, opening)
				credentials.now.Store(c.after)
				f.events <- e
				if !c.ends {
					w.expect(t, string(appendWatchEvent(nil, e)))
					return
				}
				w.expectEnd(t)
				if m := s.Metrics(); m.Cut != 0 {
					t.Errorf("metrics: got %d aborted, want 0", m.Cut)
				}
			})
		}
	}
}
