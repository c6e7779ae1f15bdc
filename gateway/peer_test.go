package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
)

// TestEveryRouteIsForwarded holds gateway/INTERFACE.md, "Any node accepts any request": the answer
// through another node is that of the leader.
func TestEveryRouteIsForwarded(t *testing.T) {
	nodes := startNodes(t, Options{BasePath: "/platform"}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	a.follow(b)
	forwarded := uint64(0)
	compare := func(r request) {
		t.Helper()
		want, got := b.do(t, r), a.do(t, r)
		for _, h := range []http.Header{want.Header, got.Header} {
			h.Del("Date")
			if h.Get("Retry-After") != "" {
				h.Set("Retry-After", "some seconds")
			}
		}
		assert.True(t, got.Status == want.Status && got.Body == want.Body && got.Closes == want.Closes && fmt.Sprint(got.Header) == fmt.Sprint(want.Header),
			"%s %s:\ngot  %d %v %.300s\nwant %d %v %.300s", r.Method, r.Path, got.Status, got.Header, got.Body, want.Status, want.Header, want.Body)
		forwarded++
		require.Equal(t, forwarded, a.Metrics().Forwarded, "%v %v", r.Method, r.Path)
	}
	for _, rt := range a.kernel.Table {
		// NB: those that are public and no sign-in are the same files everywhere; session and
		// choices ask no actor that could be elsewhere, a batch has many shards, and health is of the node.
		if rt.Access.Kinds == 0 && !rt.Access.SignIn && rt.Name != "login-callback" || slices.Contains([]string{"session", "choices", "batch", "health"}, rt.Name) {
			continue
		}
		r := requestOf(t, &rt)
		r.Headers = append(r.Headers, "Accept-Encoding: gzip")
		if rt.Name == "login-callback" {
			r.Path += "?user=ann&state=x&anything=goes"
			r.Headers[0] = "Cookie: session-oidc=" + flowCookie
		}
		for _, err := range []error{nil, failure.ErrNotFound, failure.ErrBusy} {
			if err != nil && !describes(r, kernel.MappingOf(err).Status) {
				continue
			}
			b.fail(err)
			compare(r)
			if rt.Method == http.MethodGet {
				head := r
				head.Method = http.MethodHead
				compare(head)
			}
		}
	}
	assert.GreaterOrEqual(t, forwarded, uint64(40), "only")
	assert.Equal(t, forwarded, b.Metrics().Taken, "B took")
}

// TestWhatANodeTellsTheLeader: who asks, with which rights, from where, and under which id the
// request stands in the log.
func TestWhatANodeTellsTheLeader(t *testing.T) {
	nodes := startNodes(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	a.follow(b)
	t.Run("the caller, who is not looked up again", func(t *testing.T) {
		a.open(func(s *Services) { s.Credentials = provided{} })
		r := post("event", eventBody, "Troupe-Sender: {\"user\":\"mod\"}")
		r.Headers[0] = "Authorization: svc.token " + tokenNobody // which B does not know
		a.do(t, r).WantStatus(t, 200)
		caller := b.workflows.asked.(*message.Event).Caller
		assert.True(t, caller.ID == "ann" && slices.Equal(caller.Roles, []string{"clerk", "visitor"}), caller)
	})
	a.follow(b)
	t.Run("the address and TLS", func(t *testing.T) {
		r := request{Method: "POST", Path: "/session", Body: signInBody, Headers: []string{jsonLine, "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"}}
		got := a.do(t, r)
		assert.False(t, got.Status != 200 || b.sessions.address != netip.MustParseAddr("192.0.2.7") || !strings.Contains(got.Header.Get("Set-Cookie"), "Secure"), "got %d %v from %v", got.Status, got.Header, b.sessions.address)
	})
	t.Run("the session that is to end", func(t *testing.T) {
		a.do(t, request{Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn}}).WantStatus(t, 200)
		assert.Equal(t, []string{sessionAnn}, b.sessions.ended, "B ended")
	})
	t.Run("the id", func(t *testing.T) {
		before := len(b.log.String())
		a.do(t, get("/workflow/api/v1/instance/leave/"+instanceOne)).WantStatus(t, 200)
		_, id, _ := strings.Cut(b.log.String()[before:], `"from":"a-node","origin":"`)
		id, _, _ = strings.Cut(id, `"`)
		log := a.log.String()
		assert.True(t, id != "" && strings.Contains(log, `"request":"`+id+`"`) && strings.Contains(log, `"leader":"B"`), "%v %v", log, b.log.String())
	})
}

// provided knows ann under a token of nobody else's, with a role that a provider gave her.
type provided struct{ fakeCredentials }

func (provided) Authenticate(identity.Kind, string) (*identity.Principal, error) {
	p := *ann
	p.Roles = []string{"clerk", "visitor"}
	return &p, nil
}

// TestWhoMayForward: what a node says of a request counts at the port of the nodes and nowhere
// else.
func TestWhoMayForward(t *testing.T) {
	nodes := startNodes(t, Options{}, "A")
	a := nodes["A"]
	ask := func(handler http.Handler, headers ...string) int {
		t.Helper()
		w := newRecorder()
		handler.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, headers...))
		return w.status
	}
	known := a.PeerHandler(func(*http.Request) string { return "B" })
	const asAnn, asMod = `Troupe-Sender: {"user":"ann","client":"192.0.2.7"}`, `Troupe-Sender: {"user":"mod"}`
	unknownToken := "Authorization: svc.token " + tokenNobody
	for _, c := range []struct {
		name    string
		handler http.Handler
		headers []string
		want    int
	}{
		{"a node", known, []string{asAnn, unknownToken}, 200},
		{"a node that says nothing", known, []string{withToken}, 403},
		{"a node that says two things", known, []string{asAnn, asMod, withToken}, 403},
		{"a node that says nonsense", known, []string{"Troupe-Sender: ann", withToken}, 403},
		{"somebody who is no node", a.PeerHandler(func(*http.Request) string { return "" }), []string{asAnn, withToken}, 403},
		{"a user who is gone", known, []string{`Troupe-Sender: {"user":"eve"}`, withToken}, 401},
		{"no user", known, []string{`Troupe-Sender: {}`, withToken}, 401},
		{"a request without a credential", known, []string{asAnn}, 401},
		{"a page of another site", known, []string{asAnn, "Cookie: session=" + sessionAnn, jsonLine, "Sec-Fetch-Site: cross-site"}, 403},
		{"a client with a token", a, []string{asMod, withToken}, 200},
		{"a client without a token", a, []string{asAnn}, 401},
		{"a client with a wrong token", a, []string{asAnn, unknownToken}, 401},
	} {
		assert.Equal(t, c.want, ask(c.handler, c.headers...), c.name)
	}
	assert.Same(t, ann, a.workflows.asked.(*message.Event).Caller, "a client made itself")
	w := newRecorder()
	known.ServeHTTP(w, newTestRequest("POST", "/session", signInBody, asAnn, jsonLine, "X-Forwarded-For: 192.0.2.9"))
	assert.False(t, w.status != 200 || a.sessions.address != netip.MustParseAddr("192.0.2.7"), "got %d from %v, want the address that the node has told", w.status, a.sessions.address)
	assert.NotContains(t, a.log.String(), "untrusted peer", "a node is taken for a proxy")
	a.workflows.setFail(failure.Elsewhere(3))
	got, calls := ask(known, asAnn, withToken), len(a.peers.shards)
	assert.True(t, got == 421 && calls <= 0, "a request that is led elsewhere: got %d, and %d looks for the leader", got, calls)
	fresh, err := New(Options{})
	require.NoError(t, err)
	assert.Equal(t, 421, ask(fresh.PeerHandler(func(*http.Request) string { return "B" }), asAnn, withToken), "before Open")
	stop(t, a.Server)
	assert.Equal(t, 421, ask(known, asAnn, withToken), "after Stop")
	assert.Equal(t, 503, ask(a, withToken), "a client after Stop")
}

// TestTheOperatorNeedsNoCredential where mod-workflows is demanded, and gets nowhere else; in a cluster whichever node leads.
func TestTheOperatorNeedsNoCredential(t *testing.T) {
	nodes := startNodes(t, Options{BasePath: "/platform"}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		a.OperatorHandler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, follows := range []bool{false, true} {
		if follows {
			a.fail(failure.Elsewhere(7))
			a.peers.say(leading(b.peer))
		}
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/workflow/api/v1/outbox", "", 200},
			{"GET", "/workflow/api/v1/incidents?limit=7", "", 200},
			{"POST", "/workflow/api/v1/outbox/x", operationBody, 200},
			{"POST", "/workflow/api/v1/outbox/x", "", 400},
			{"GET", "/workflow/api/v1/choices", "", 401},
			{"GET", "/workflow/api/v1/instance/leave/i1", "", 401},
			{"PUT", "/admin/api/v1/home", "", 401},
			{"GET", "/workflow/api/v1/nothing", "", 404},
		} {
			status, answer := ask(c.method, c.path, c.body)
			assert.Equal(t, c.status, status, "%v %v %v", c.method, c.path, answer)
		}
	}
	assert.Equal(t, "x retry", b.workflows.asked, "the leader was asked")
	assert.Equal(t, 401, a.do(t, request{Method: "GET", Path: "/workflow/api/v1/outbox", Headers: []string{"Troupe-Sender: {\"operator\":true}"}}).Status)
}

// TestClusterPort forwards through the port of package peer: who asks is known there, and a
// connection that was never made is told from one that broke.
func TestClusterPort(t *testing.T) {
	const a, b = peer.NodeID("01J0000000000000000000000A"), peer.NodeID("01J0000000000000000000000B")
	authority, err := peer.NewAuthority("01J0000000000000000000000C", time.Now())
	require.NoError(t, err)
	addresses := map[peer.NodeID]string{b: "127.0.0.1:1"} // where nobody listens; changed while nothing is asked
	start := func(node peer.NodeID, calls http.Handler) *peer.Port {
		identity, err := peer.NewIdentity(node)
		require.NoError(t, err)
		csr, err := identity.CSR()
		require.NoError(t, err)
		certificate, err := authority.Sign(csr, node, time.Now())
		require.NoError(t, err)
		require.NoError(t, identity.Accept(certificate, authority.Certificate()))
		port, err := peer.New(peer.Options{Address: "127.0.0.1:0", Identity: identity, Calls: calls, Resolve: func(n peer.NodeID) (string, bool) {
			address, ok := addresses[n]
			return address, ok
		}})
		require.NoError(t, err)
		require.NoError(t, port.Start())
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = port.Stop(ctx)
		})
		return port
	}
	leads, follows := startServer(t, Options{}, nil), startServer(t, Options{LeaderWaitMax: 100 * time.Millisecond}, nil)
	nodeOf := func(r *http.Request) string { return string(peer.NodeOf(r.Context())) }
	from := start(a, nil)
	peers := new(fakePeers)
	peers.say(leading(Peer{Node: string(b), Transport: from}))
	follows.workflows.setFail(failure.Elsewhere(7))
	follows.Open(follows.workflows.with(Services{Credentials: fakeCredentials{}, Peers: peers}))
	follows.do(t, post("event", eventBody)).WantFault(t, 503, "Unavailable") // nobody listens: not applied

	to := start(b, leads.PeerHandler(nodeOf))
	addresses[b] = to.Addr().String()
	follows.kernel.Options.LeaderWaitMax = 2 * time.Minute
	follows.do(t, post("event", eventBody)).WantStatus(t, 200)
	assert.Equal(t, 1, leads.log.Count(`"from":"`+string(a)+`"`), "the leader does not know who asked: %s", leads.log)
	// The leader is lost while it has the request.
	leads.workflows.send = func(context.Context, *message.Event) (*message.Reply, error) {
		from.Disconnect(b)
		return nil, failure.ErrInternal
	}
	follows.do(t, post("event", eventBody)).WantFault(t, 504, "OutcomeUnknown")
}
