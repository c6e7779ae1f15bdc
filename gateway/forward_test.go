package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/listener"
)

// outcomes are what a try of another node comes to.
var outcomes = map[string]roundTrip{
	"200": answering(200, "Content-Type: application/json"), "409": answering(409, "Content-Type: application/json"), "421": answering(421),
	"503": answering(503, "Content-Type: application/json", "Retry-After: 2"),
	// A port where nobody listens, and a connection that ends before the answer.
	"unreachable": failing(fmt.Errorf("call: %w", peer.ErrNotSent)), "broken": failing(io.ErrUnexpectedEOF),
	"silent": silent, "too-large": failing(fmt.Errorf("call: %w", peer.ErrTooLarge)),
}

func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func failing(err error) roundTrip {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func answering(status int, headers ...string) roundTrip {
	return func(*http.Request) (*http.Response, error) {
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
func script(tries *[]string, name string, come ...string) saidLeader {
	return saidLeader{Peer: Peer{Node: name, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		*tries = append(*tries, name)
		now := come[0]
		if len(come) > 1 {
			come = come[1:]
		}
		return outcomes[now](r)
	})}}
}

// forwardedRequests are those of testdata/forward.txt.
var forwardedRequests = map[string]request{
	"event": post("event", eventBody), "event-with-key": post("event", eventBody, "Idempotency-Key: k"),
	"event-with-id": post("event", `{"workflowId":"leave","instanceId":"`+instanceOne+`","event":{"name":"approve","id":"k","data":{"a":1}}}`),
	"read":          get("/workflow/api/v1/instance/leave/" + instanceOne),
	"sign-out":      {Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn, "Idempotency-Key: k"}},
	"sign-in":       {Method: "GET", Path: "/login/oidc/callback?user=ann&code=c&state=s", Headers: []string{"Cookie: session-oidc=" + flowCookie}},
	"form":          {Method: "POST", Path: "/form-portal/forms/create", Body: formBody, Headers: []string{withPortal, jsonLine, "Idempotency-Key: k"}},
}

// TestForwarding plays testdata/forward.txt: what a caller is told when a leader is away, moves or breaks off, how long that takes, which nodes
// were tried, and what was counted.
//
// A block is a request, and the answers to the question who leads, one a line and the last one for ever: "NODE: OUTCOMES", "here" or "nobody",
// each perhaps "after" a time. "does: OUTCOMES" is what the request comes to here, which else is that another node leads.
func TestForwarding(t *testing.T) {
	datadriven.RunTest(t, "testdata/forward.txt", func(t *testing.T, d *datadriven.TestData) (out string) {
		synctest.Test(t, func(t *testing.T) { out = forwarded(t, d) })
		return out
	})
}

// alert is what a page of an error says.
var alert = regexp.MustCompile(`(?s)^<!DOCTYPE html>.*(<p id="problem"[^\n]*).*$`)

func forwarded(t *testing.T, d *datadriven.TestData) string {
	s, peers, workflows := newForwarding(t, Options{})
	var said []saidLeader
	var tries []string
	does := []string{"elsewhere"}
	for line := range strings.SplitSeq(d.Input, "\n") {
		who, come, _ := strings.Cut(line, ": ")
		who, after, _ := strings.Cut(who, " after ")
		next := saidLeader{}
		switch who {
		case "does":
			does = strings.Fields(come)
			continue
		case "here":
			next.Peer = Peer{Node: "A"}
		case "nobody":
		default:
			next = script(&tries, who, strings.Fields(come)...)
		}
		next.after, _ = time.ParseDuration(after)
		said = append(said, next)
	}
	peers.say(said...)
	elsewhere := failure.Elsewhere(7)
	for _, f := range []*planned{&workflows.planned, &s.services.Portal.(*fakePortal).planned, &s.services.Sessions.(*fakeSessions).planned} {
		f.setFail(elsewhere)
	}
	s.services.Sessions.(*fakeSessions).elsewhere = elsewhere
	calls := 0
	workflows.send = func(_ context.Context, r *message.Event) (*message.Reply, error) {
		assert.Equal(t, `{"a":1}`, string(r.Data), "call %d", calls)
		err := map[string]error{"elsewhere": elsewhere, "busy": failure.ErrBusy}[does[min(calls, len(does)-1)]]
		calls++
		return smallReply(r.WorkflowID, r.InstanceID, 2, true), err
	}
	begun := time.Now()
	w := askHandler(t.Context(), s, forwardedRequests[d.Cmd])
	out := fmt.Sprintf("%d after %v\n", w.status, time.Since(begun))
	for _, name := range []string{"Etag", "Retry-After"} {
		if value := w.header.Get(name); value != "" {
			out += name + "\n"
		}
	}
	if out += alert.ReplaceAllString(w.body.String(), "$1") + "\n"; len(tries) < 10 { // NB: how often it tries in ten seconds depends on the pauses, which vary
		out += fmt.Sprintln("tried", tries)
	}
	assert.LessOrEqual(t, len(tries), 30, "tries")
	assert.Equal(t, uint16(7), peers.shards[0], "asked for the leader")
	m := s.Metrics()
	assert.True(t, m.LeaderWaiting == 0 && m.InFlight == 0, m)
	return out + fmt.Sprintf("forwarded %d, unknown %d, refused %d, waited %t\n", m.Forwarded, m.ForwardUnknown, m.ForwardRefused, m.LeaderWaits > 0)
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
		peers.say(saidLeader{after: time.Minute})
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
		peers.say(script(&tries, "B", "503"))
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
		return outcomes["200"](r)
	})}))
	r := post("event", " "+eventBody, "Connection: close, X-Mine, Idempotency-Key", "X-Mine: 1", "X-Other: 2", "Expect: 100-continue", "TE: trailers",
		"Idempotency-Key: k", "Troupe-Sender: x", "Cookie: a=b")
	w := askHandler(t.Context(), s, r)
	require.Equal(t, 200, w.status, w.body.String())
	if got.Method != "POST" || got.Host != "x" || got.URL.String() != "https://01ARZ3NDEKTSV4RRFFQ69G5FAV/workflow/api/v1/event" || body != " "+eventBody || got.ContentLength != int64(len(body)) {
		t.Errorf("got %s %s with %d bytes %s", got.Method, got.URL, got.ContentLength, body)
	}
	for name, want := range map[string]string{
		"Connection": "", "X-Mine": "1", "Expect": "", "Te": "", "X-Other": "2", "Idempotency-Key": "k", "Cookie": "a=b",
		"Authorization": "svc.token " + tokenAnn, "Accept-Encoding": "", kernel.SenderHeader: `{"user":"ann","request":"` + s.kernel.IDPrefix + `1","client":""}`,
	} {
		assert.True(t, got.Header.Get(name) == want && len(got.Header[name]) <= 1, "header %s: got %q, want %q", name, got.Header[name], want)
	}
	s.services.Sessions.(*fakeSessions).setFail(failure.Elsewhere(7))
	askHandler(t.Context(), s, request{Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn, "Idempotency-Key: k"}})
	assert.True(t, got.Method == "DELETE" && got.Header["Idempotency-Key"] == nil, "%v %v", got.Method, got.Header["Idempotency-Key"])
	askHandler(t.Context(), s, get("/workflow/api/v1/instances/leave?filter=%7B%7D&limit=5", "Accept-Encoding: gzip"))
	assert.True(t, got.URL.RequestURI() == "/workflow/api/v1/instances/leave?filter=%7B%7D&limit=5" && got.Body == nil && got.Header.Get("Accept-Encoding") == "gzip", "got %s, %v", got.URL, got.Header)
}
