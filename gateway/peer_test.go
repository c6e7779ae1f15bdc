package gateway

import (
	"context"
	"fmt"
	"net/http"
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
		// choices ask no actor that could be elsewhere, a batch and jobs have many shards, and health is of the node.
		if rt.Access.Kinds == 0 && !rt.Access.SignIn && rt.Name != "login-callback" || rt.ReadsBody || asksNobody(&rt) {
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

// TestWhoForwardsWhatIsNotLedHere: a node that does not lead says so to the one that asked, and looks for no other; testdata/fakes/peer.txt has
// what a node says of a request.
func TestWhoForwardsWhatIsNotLedHere(t *testing.T) {
	a := startNodes(t, Options{}, "A")["A"]
	ask := func(handler http.Handler, headers ...string) int {
		w := newRecorder()
		handler.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, headers...))
		return w.status
	}
	const asAnn = `Troupe-Sender: {"user":"ann","client":"192.0.2.7"}`
	node := func(*http.Request) string { return "B" }
	a.workflows.setFail(failure.Elsewhere(3))
	assert.Equal(t, 421, ask(a.PeerHandler(node), asAnn, withToken), "a request that is led elsewhere")
	assert.Empty(t, a.peers.shards, "the leader is looked for")
	fresh, err := New(Options{})
	require.NoError(t, err)
	assert.Equal(t, 421, ask(fresh.PeerHandler(node), asAnn, withToken), "before Open")
	stop(t, a.Server)
	assert.Equal(t, 421, ask(a.PeerHandler(node), asAnn, withToken), "after Stop")
	assert.Equal(t, 503, ask(a, withToken), "a client after Stop")
}

// TestTheOperatorIsForwarded to whichever node leads.
func TestTheOperatorIsForwarded(t *testing.T) {
	nodes := startNodes(t, Options{BasePath: "/platform"}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	a.follow(b)
	w := newRecorder()
	a.OperatorHandler().ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/outbox/x", operationBody, jsonLine))
	assert.Equal(t, 200, w.status)
	assert.Equal(t, "x retry", b.workflows.asked, "the leader was asked")
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
