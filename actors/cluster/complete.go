package cluster

import (
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
)

// Complete returns a node whose replicas of all shards have next to everything, as far as this one knows: itself if it
// is one, else any. Such a node can answer lists and streams. The error is failure.ErrUnavailable when there is none.
func (n *Node) Complete() (peer.NodeID, error) {
	d, said := n.directory.Load(), n.heard()
	said[n.self] = n.hello()
	if n.isComplete(n.self, said) {
		return n.self, nil
	}
	for id := range said { // NB: in another order each time, so that who is asked in vain is not asked for ever
		if d != nil && !d.Nodes[id].Leaving && n.isComplete(id, said) {
			return id, nil
		}
	}
	return "", failure.Refuse(failure.ErrUnavailable, "no node keeps all shards")
}

func (n *Node) isComplete(id peer.NodeID, said map[peer.NodeID]hello) bool {
	for sh := range n.store.AllShards() {
		_, led := leaderIn(said, sh)
		if lacks(said[id].Groups[sh].Applied, led.Applied, said[id].Full) {
			return false
		}
	}
	return true
}

func (n *Node) isAnotherComplete() bool {
	id, err := n.Complete()
	return err == nil && id != n.self
}

// NB: a shard can have gigabytes in its first entry, which is the store of a single node.
func lacks(applied, led uint64, full bool) bool {
	return applied == 0 || led > applied+lagMax || full && led > applied
}
