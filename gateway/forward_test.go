package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/listener"
)

// What a try of another node comes to, for script.
var (
	answers200 = answering(200, "Content-Type: application/json")
	answers409 = answering(409, "Content-Type: application/json")
	answers503 = answering(503, "Content-Type: application/json", "Retry-After: 2")
	answers421 = answering(421)
	// unreachable is a port where nobody listens, and broken a connection that ends before the
	// answer. silent is a node that says nothing.
	unreachable = failing(false, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	broken      = failing(true, io.ErrUnexpectedEOF)
	silent      = roundTrip(func(r *http.Request) (*http.Response, error) {
		connect(r, true)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	// mute does not tell how far it got.
	mute = roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("it did not work") })
)

func connect(r *http.Request, connected bool) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.GetConn(r.URL.Host)
	if connected {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

func failing(connected bool, err error) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		connect(r, connected)
		return nil, err
	}
}

func answering(status int, headers ...string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		connect(r, true)
		h := http.Header{}
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			h.Set(name, value)
		}
		const text = `{"from":"another node"}`
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}, nil
	}
}

// script is what the tries of a node come to, one after the other, and the last one for ever.
func script(tries *[]string, name string, outcomes ...roundTrip) Peer {
	return Peer{Node: name, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		*tries = append(*tries, name)
		now := outcomes[0]
		if len(outcomes) > 1 {
			outcomes = outcomes[1:]
		}
		return now(r)
	})}
}

// TestForwarding holds what a caller is told when a leader is away, moves or breaks off, and how
// long that takes.
func TestForwarding(t *testing.T) {
	const byID = `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"approve","id":"k"}}`
	var (
		event   = post("event", eventBody)
		keyed   = post("event", eventBody, "Idempotency-Key: k")
		withID  = post("event", byID)
		read    = get("/workflow/api/v1/instance/leave/" + instanceOne)
		signOut = request{Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn, "Idempotency-Key: k"}}
		signIn  = request{Method: "GET", Path: "/login/oidc/callback?user=ann&code=c&state=s", Headers: []string{"Cookie: session-oidc=" + flowCookie}}
		form    = request{Method: "POST", Path: "/form-portal/forms/create", Body: formBody, Headers: []string{withPortal, jsonLine, "Idempotency-Key: k"}}
	)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		name  string
		ask   request
		leads func(tries *[]string) []leader
		want  int
		tries string // the nodes that were tried
		took  time.Duration
	}{
		{"one that leads", event, says(answers200), 200, "B", 0},
		{"nobody for a while", event, func(n *[]string) []leader { return []leader{{script(n, "B", answers200), 4 * time.Second}} }, 200, "B", 4 * time.Second},
		{"nobody in time", event, func(*[]string) []leader { return []leader{{after: time.Minute}} }, 503, "", 10 * time.Second},
		{"nobody at all", event, func(*[]string) []leader { return []leader{{}} }, 503, "", 0},
		{"it moves once", event, func(n *[]string) []leader {
			return []leader{leading(script(n, "B", answers421)), leading(script(n, "C", answers200))}
		}, 200, "B C", 0},
		{"it takes a moment to lead", event, says(answers421, answers421, answers421, answers200), 200, "B B B B", ms(10 + 20 + 40)},
		{"it moves in the pause", event, func(n *[]string) []leader {
			b := leading(script(n, "B", answers421))
			return []leader{b, b, leading(script(n, "C", answers200))}
		}, 200, "B C", ms(10)},
		{"it says for ever that it does not lead", event, says(answers421), 503, "", 10 * time.Second},
		{"not reached once", event, says(unreachable, answers200), 200, "B B", ms(10)},
		{"never reached", event, says(unreachable), 503, "", 10 * time.Second},
		{"broken off", event, says(broken), 504, "B", 0},
		{"broken off, reading", read, says(broken, broken, answers200), 200, "B B B", ms(30)},
		{"broken off for ever, reading", read, says(broken), 503, "", 10 * time.Second},
		{"broken off, a code of a provider", signIn, says(broken), 504, "B", 0},
		{"broken off, with a key", keyed, says(broken, answers200), 200, "B B", ms(10)},
		{"broken off, with an event's id", withID, says(broken, answers200), 200, "B B", ms(10)},
		{"broken off, a form with a key", form, says(broken, answers200), 200, "B B", ms(10)},
		{"broken off, a key that means nothing", signOut, says(broken), 504, "B", 0},
		{"broken off for ever, with a key", keyed, says(broken), 504, "", 10 * time.Second},
		{"broken off, then refused for want of room", keyed, says(broken, answers503), 504, "B B", ms(10)},
		{"broken off, then refused by the instance", keyed, says(broken, answers409), 409, "B B", ms(10)},
		{"refused for want of room", keyed, says(answers503), 503, "B", 0},
		{"broken off, then not reached", keyed, says(broken, unreachable), 504, "", 10 * time.Second},
		{"a transport that does not say whether it sent", event, says(mute), 504, "B", 0},
		{"silent", keyed, says(silent), 504, "B", time.Minute},
		{"silent, reading", read, says(silent), 503, "B", time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tries []string
				s, peers, workflows := newForwarding(t, Options{})
				for _, fail := range []func(error){workflows.setFail, s.services.Portal.(*fakePortal).setFail, s.services.Sessions.(*fakeSessions).setFail} {
					fail(failure.Elsewhere(7))
				}
				s.services.Sessions.(*fakeSessions).elsewhere = failure.Elsewhere(7)
				peers.say(c.leads(&tries)...)
				begun := time.Now()
				w := askHandler(t.Context(), s, c.ask)
				took := time.Since(begun)
				assert.True(t, w.status == c.want && took == c.took, "got %d after %v, want %d after %v: %s", w.status, took, c.want, c.took, w.body.String())
				got := strings.Join(tries, " ")
				assert.False(t, c.tries != "" && got != c.tries, "tried %s, want %s", got, c.tries)
				assert.LessOrEqual(t, len(tries), 30, "tries")
				retry := w.header.Get("Retry-After")
				assert.Equal(t, c.want == 503, retry != "", "Retry-After of a %d: %q", c.want, retry)
				assert.Equal(t, uint16(7), peers.shards[0], "asked for the leader")
				checkForwardMetrics(t, s, w, c.took)
			})
		})
	}
}

// says is the answers of a cluster in which B always leads.
func says(outcomes ...roundTrip) func(*[]string) []leader {
	return func(tries *[]string) []leader { return []leader{leading(script(tries, "B", outcomes...))} }
}

// checkForwardMetrics holds the counters against the answer to the only request.
func checkForwardMetrics(t *testing.T, s *Server, w *recorder, took time.Duration) {
	t.Helper()
	m := s.Metrics()
	answered := strings.Contains(w.body.String(), "another node")
	flag := func(b bool) (n uint64) {
		if b {
			n = 1
		}
		return n
	}
	assert.False(t, m.Forwarded != flag(answered) || m.ForwardUnknown != flag(w.status == 504) || m.ForwardRefused != flag(w.status == 503 && !answered) || m.LeaderWaiting != 0 || m.InFlight != 0, "got %+v after a %d", m, w.status)
	assert.Equal(t, took > 0 && took < time.Minute, m.LeaderWaits > 0, "waited %d times for a leader, in %v", m.LeaderWaits, took)
}

// newForwarding makes a server that is not started, for tests whose time is virtual.
func newForwarding(t *testing.T, o Options) (*Server, *fakePeers, *fakeWorkflows) {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	peers, workflows := new(fakePeers), new(fakeWorkflows)
	s.Open(workflows.with(Services{Credentials: fakeCredentials{}, Sessions: new(fakeSessions), Portal: new(fakePortal), Provider: new(fakeProvider), Peers: peers}))
	return s, peers, workflows
}

func askHandler(ctx context.Context, h http.Handler, r request) *recorder {
	w := newRecorder()
	h.ServeHTTP(w, newTestRequest(r.Method, r.Path, r.Body, r.Headers...).WithContext(ctx))
	return w
}

// TestLeaderAfterAll: a node that becomes the leader while a request waits carries it out itself.
func TestLeaderAfterAll(t *testing.T) {
	unknown := errors.Join(failure.ErrBusy) // of the node itself, after another one broke off
	for _, c := range []struct {
		name   string
		before []roundTrip // what B comes to before
		local  []error     // of this node's handler, the first one included
		want   int
		took   time.Duration
	}{
		{"at once", nil, []error{failure.Elsewhere(7), nil}, 200, 0},
		{"a moment later", nil, []error{failure.Elsewhere(7), failure.Elsewhere(7), failure.Elsewhere(7), nil}, 200, 30 * time.Millisecond},
		{"after another node", []roundTrip{answers421}, []error{failure.Elsewhere(7), nil}, 200, 0},
		{"and refuses", []roundTrip{answers421}, []error{failure.Elsewhere(7), unknown}, 503, 0},
		{"and refuses, after one that broke off", []roundTrip{broken}, []error{failure.Elsewhere(7), unknown}, 504, 0},
		{"and has done it, after one that broke off", []roundTrip{broken}, []error{failure.Elsewhere(7), nil}, 200, 0},
		{"never", nil, []error{failure.Elsewhere(7)}, 503, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, peers, workflows := newForwarding(t, Options{})
				var tries []string
				said := []leader{leading(Peer{Node: "A"})}
				if c.before != nil {
					said = append(says(c.before...)(&tries), said...)
				}
				peers.say(said...)
				calls := 0
				workflows.send = func(_ context.Context, r *message.Event) (*message.Reply, error) {
					err := c.local[min(calls, len(c.local)-1)]
					calls++
					assert.Equal(t, `{"a":1}`, string(r.Data), "call %d has the data", calls)
					return smallReply(r.WorkflowID, r.InstanceID, 2, true), err
				}
				begun := time.Now()
				w := askHandler(t.Context(), s, post("event", eventBody, "Idempotency-Key: k"))
				took := time.Since(begun)
				assert.True(t, w.status == c.want && took == c.took && len(tries) == len(c.before), "got %d after %v and %d tries, want %d after %v: %s", w.status, took, len(tries), c.want, c.took, w.body.String())
				tag := w.header.Get("ETag")
				assert.Equal(t, w.status == 200, tag != "", "got the tag %q with %d", tag, w.status)
			})
		})
	}
}

// TestListAfterAll: what a handler had prepared before it found out that it is elsewhere is
// forgotten.
func TestListAfterAll(t *testing.T) {
	s, peers, workflows := newForwarding(t, Options{})
	peers.say(leading(Peer{Node: "A"}))
	workflows.query = func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		if err := item([]byte(listedOne)); err != nil || workflows.calls() == 1 {
			return nil, errors.Join(err, failure.Elsewhere(7))
		}
		return smallEnd(), nil
	}
	w := askHandler(t.Context(), s, get("/workflow/api/v1/instances/leave"))
	want := `{"instances":[` + listedOne + `]}`
	assert.True(t, w.status == 200 && w.body.String() == want, "got %d %s, want %s", w.status, w.body.String(), want)
}

// TestWaitingForALeader: requests that wait take half of the places, and leave with their
// callers.
func TestWaitingForALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers, workflows := newForwarding(t, Options{InFlightMax: 4})
		workflows.setFail(failure.Elsewhere(7))
		peers.say(leader{after: time.Minute})
		ctx, leave := context.WithCancel(t.Context())
		answers := make(chan *recorder, 2)
		for _, r := range []request{post("event", eventBody), postAsBob("event", eventBody)} {
			go func() { answers <- askHandler(ctx, s, r) }()
		}
		synctest.Wait()
		m := s.Metrics()
		assert.True(t, m.LeaderWaiting == 2 && m.InFlight == 2, "%d wait and %d are in flight, want 2 and 2", m.LeaderWaiting, m.InFlight)
		begun := time.Now()
		w := askHandler(t.Context(), s, post("event", eventBody))
		took := time.Since(begun)
		assert.True(t, w.status == 503 && strings.Contains(w.body.String(), "Busy") && took <= 0, "%v %v %v", w.status, w.body.String(), took)
		assert.Equal(t, 200, askHandler(t.Context(), s, get("/workflow/api/v1/choices")).status, "a request that needs no leader")
		leave()
		for range 2 {
			w := <-answers
			assert.Equal(t, 503, w.status, "a caller who left")
		}
		m = s.Metrics()
		assert.True(t, m.LeaderWaiting == 0 && m.InFlight == 0 && time.Since(begun) <= 0, "%v %v %v", m.LeaderWaiting, m.InFlight, time.Since(begun))
	})
}

// TestRefusedByTheLeader: who comes again before the time that another node has said is held, as
// if this one had said it.
func TestRefusedByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers, workflows := newForwarding(t, Options{})
		workflows.setFail(failure.Elsewhere(7))
		var tries []string
		peers.say(leading(script(&tries, "B", answers503)))
		l := listener.New(pipes{}, 1, new(listener.Counts), func(netip.Addr) bool { return false })
		c, err := l.Accept()
		require.NoError(t, err)
		ctx := listener.ConnContext(t.Context(), c)
		for _, want := range []time.Duration{0, 2 * time.Second} {
			begun := time.Now()
			w := askHandler(ctx, s, post("event", eventBody))
			assert.True(t, w.status == 503 && time.Since(begun) == want, "got %d after %v, want 503 after %v", w.status, time.Since(begun), want)
		}
	})
}

// TestForwardedRequest holds what another node is sent.
func TestForwardedRequest(t *testing.T) {
	s, peers, workflows := newForwarding(t, Options{})
	workflows.setFail(failure.Elsewhere(7))
	var got *http.Request
	var body string
	peers.say(leading(Peer{Node: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		if r.Body != nil {
			text, _ := io.ReadAll(r.Body)
			body = string(text)
		}
		return answers200(r)
	})}))
	r := post("event", " "+eventBody, "Connection: close, X-Mine, Idempotency-Key", "X-Mine: 1", "X-Other: 2", "Expect: 100-continue", "TE: trailers", "X-Idempotency-Key: k",
		"Idempotency-Key: k", "Troupe-Sender: x", "Cookie: a=b")
	w := askHandler(t.Context(), s, r)
	require.Equal(t, 200, w.status, w.body.String())
	if got.Method != "POST" || got.Host != "x" || got.URL.String() != "https://01ARZ3NDEKTSV4RRFFQ69G5FAV/workflow/api/v1/event" || body != " "+eventBody || got.ContentLength != int64(len(body)) {
		t.Errorf("got %s %s with %d bytes %s", got.Method, got.URL, got.ContentLength, body)
	}
	for name, want := range map[string]string{
		"Connection": "", "X-Mine": "1", "Expect": "", "Te": "", "X-Idempotency-Key": "", "X-Other": "2", "Idempotency-Key": "k", "Cookie": "a=b",
		"Authorization": "svc.token " + tokenAnn, "Accept-Encoding": "identity", kernel.SenderHeader: `{"user":"ann","request":"` + s.kernel.IDPrefix + `1","client":""}`,
	} {
		assert.True(t, got.Header.Get(name) == want && len(got.Header[name]) <= 1, "header %s: got %q, want %q", name, got.Header[name], want)
	}
	s.services.Sessions.(*fakeSessions).setFail(failure.Elsewhere(7))
	askHandler(t.Context(), s, request{Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn, "Idempotency-Key: k"}})
	assert.True(t, got.Method == "DELETE" && got.Header["Idempotency-Key"] == nil, "%v %v", got.Method, got.Header["Idempotency-Key"])
	askHandler(t.Context(), s, get("/workflow/api/v1/instances/leave?filter=%7B%7D&limit=5", "Accept-Encoding: gzip"))
	assert.True(t, got.URL.RequestURI() == "/workflow/api/v1/instances/leave?filter=%7B%7D&limit=5" && got.Body == nil && got.Header.Get("Accept-Encoding") == "gzip", "got %s, %v", got.URL, got.Header)
}
