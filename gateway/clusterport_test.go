package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/message"
)

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
	follows.Open(Services{Workflows: follows.workflows, Credentials: fakeCredentials{}, Peers: peers})
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
