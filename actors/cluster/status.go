package cluster

import (
	"maps"
	"slices"

	"troupe/actors/cluster/peer"
	"troupe/persistence/key"
)

// Status is the cluster as this node knows it.
type Status struct {
	Self  peer.NodeID  `json:"self"`
	Nodes []NodeStatus `json:"nodes"`
	// Short are the shards that have fewer voters alive than they should, by number; key.Meta is the cluster's own.
	Short []key.Shard `json:"short"`
}

// NodeStatus is one node. What a node has that is not alive is as it was heard last.
type NodeStatus struct {
	ID                peer.NodeID `json:"id"`
	Name              string      `json:"name,omitempty"` // for people; empty: it has none but its address
	Address           string      `json:"address,omitempty"`
	Alive             bool        `json:"alive"`
	Voter             bool        `json:"voter"` // it has a vote in every shard in which it shall vote, and that is at least one
	Leaving           bool        `json:"leaving,omitempty"`
	Full              bool        `json:"full,omitempty"` // its disk
	Version           string      `json:"version"`
	Led               int         `json:"led"`  // shards, the cluster's own included
	Held              int         `json:"held"` // the same; one that it has nothing of yet does not count
	Lag               uint64      `json:"lag"`  // entries that the replica lacks that is behind the most, a second ago
	SettingsDiffer    bool        `json:"settingsDiffer"`
	DifferingSettings []string    `json:"differingSettings,omitempty"` // their names, as far as the node says them
}

// Status returns the cluster as this node knows it.
func (n *Node) Status() Status {
	status := Status{Self: n.self, Nodes: []NodeStatus{}, Short: []key.Shard{}}
	d := n.directory.Load()
	if d == nil {
		return status
	}
	said := map[peer.NodeID]hello{}
	n.others.mu.Lock()
	for id, o := range n.others.by {
		said[id] = o.said
	}
	n.others.mu.Unlock()
	said[n.self] = n.hello()

	// NB: until another node leads a shard, those that follow know who has a vote.
	best := map[key.Shard]groupState{}
	for id, h := range said {
		if !n.isAlive(id) {
			continue
		}
		for sh, g := range h.Groups {
			if than := best[sh]; g.Epoch > than.Epoch || g.Epoch == than.Epoch && g.Applied > than.Applied {
				best[sh] = g
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.Nodes)) {
		m, h := d.Nodes[id], said[id]
		node := NodeStatus{ID: id, Address: m.Address, Alive: n.isAlive(id), Leaving: m.Leaving, Full: h.Full, Version: h.Version}
		node.Name = h.Name
		if node.SettingsDiffer = h.Settings != n.o.Settings && h.Node != ""; node.SettingsDiffer {
			node.DifferingSettings = differing(h.Changed, n.o.Changed)
		}
		shall, votes := 0, 0
		for sh := range n.store.AllShards() {
			g := h.Groups[sh]
			if g.Epoch != 0 && node.Alive {
				node.Led++
			}
			if _, kept := h.Groups[sh]; kept {
				node.Lag = max(node.Lag, max(best[sh].Applied, g.Applied)-g.Applied)
			}
			if g.Applied > 0 {
				node.Held++
			}
			if slices.Contains(d.Placement[sh], id) {
				shall++
				if slices.Contains(best[sh].Voters, id) {
					votes++
				}
			}
		}
		node.Voter = shall > 0 && votes == shall
		status.Nodes = append(status.Nodes, node)
	}
	for sh := range n.store.AllShards() {
		alive := 0
		for _, id := range best[sh].Voters {
			if n.isAlive(id) {
				alive++
			}
		}
		if alive < len(d.Placement[sh]) || alive == 0 {
			status.Short = append(status.Short, sh)
		}
	}
	return status
}

// Metrics are what a node counts, and how the cluster is as it knows.
type Metrics struct {
	Nodes, Alive int    // that belong to the cluster, and that are alive, this one included
	Led, Held    int    // shards, the cluster's own included
	Short        int    // shards with fewer voters alive than they should have
	Lag          uint64 // entries that this node's most backward replica lacks
	Moves        uint64 // changes of replicas that this node made
	HandOvers    uint64 // leaderships that this node gave to others
	SecondsStale float64
	Port         peer.Metrics
}

// Metrics may be called at any time after Run.
func (n *Node) Metrics() Metrics {
	status := n.Status()
	m := Metrics{
		Nodes: len(status.Nodes), Short: len(status.Short), Moves: n.moves.Load(), HandOvers: n.handed.Load(),
		SecondsStale: n.staleFor().Seconds(), Port: n.port.Metrics(),
	}
	for _, node := range status.Nodes {
		if node.Alive {
			m.Alive++
		}
		if node.ID == n.self {
			m.Led, m.Held, m.Lag = node.Led, node.Held, node.Lag
		}
	}
	return m
}
