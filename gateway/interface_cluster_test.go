package gateway_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/gateway"
	"troupe/persistence/key"
)

// peers are the other nodes as a gateway sees them; cmd/troupe has the same.
type peers struct{ node *cluster.Node }

// Leader implements gateway.Peers.
func (p peers) Leader(ctx context.Context, shard uint16) (gateway.Peer, error) {
	id, err := p.node.Leader(ctx, key.Shard(shard))
	if err != nil || id == p.node.Self() {
		return gateway.Peer{Node: string(id)}, err
	}
	return gateway.Peer{Node: string(id), Transport: p.node.Transport()}, nil
}

// serveNode has a gateway answer what other nodes forward.
func serveNode(n *cluster.Node, server *gateway.Server) {
	n.Serve(server.PeerHandler(func(r *http.Request) string { return string(peer.NodeOf(r.Context())) }))
}

// TestInterfaceThroughOtherNodes holds gateway/INTERFACE.md, "Any node accepts any request", and
// persistence/PROMISES.md, "P27": an instance that one node leads is made and moved through any. It
// also shows that -nodes does what it says.
func TestInterfaceThroughOtherNodes(t *testing.T) {
	if *nodes == 1 {
		t.Skip("one node forwards nothing; see -nodes")
	}
	s := newScene(t)
	for range 8 * *nodes {
		r := s.ann.Create(t, "plain", "").Record(t)
		s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
		s.ann.Load(t, "plain", r.ID).Record(t)
	}
	for i, server := range s.gateways {
		m := server.Metrics()
		assert.True(t, m.Forwarded != 0 && m.Taken != 0, "node %d: others carried out %d of its requests, and it %d of theirs; want some", i, m.Forwarded, m.Taken)
	}
}
