package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/cluster/peer"
	"troupe/persistence/key"
)

// TestGroupsGrowWithNodes: there are enough for all nodes, none is much longer than another one, and those that there were
// stay where they begin. A new one stands where the old one did.
func TestGroupsGrowWithNodes(t *testing.T) {
	for _, shards := range []int{1, 4, 64, 256} {
		d := &directory{Nodes: map[peer.NodeID]member{}, Placement: map[key.Shard][]peer.NodeID{}, Groups: beginnings(shards)}
		assert.Len(t, d.Groups, min(6, shards))
		for i, first := range d.Groups {
			d.Placement[first] = []peer.NodeID{peer.NodeID(fmt.Sprint(i))}
		}
		for nodes := 1; nodes <= 81; nodes++ {
			d.Nodes[peer.NodeID(fmt.Sprint(nodes))] = member{Started: true}
			before, stood := d.Groups, d.clone()
			grown := d.grow(shards)
			assert.Equal(t, grown, len(d.Groups) > len(before))
			assert.Subset(t, d.Groups, before)
			if nodes > 3 {
				assert.Len(t, d.Groups, max(len(before), min(groupsEach*nodes, shards)), "%d nodes", nodes)
			} else {
				assert.False(t, grown)
			}
			least, most, all := shards, 0, 0
			for _, first := range d.Groups {
				n := d.length(first, shards)
				least, most, all = min(least, n), max(most, n), all+n
				assert.Equal(t, stood.Placement[stood.first(first)], d.Placement[first], "group %d", first)
			}
			assert.True(t, all == shards && most <= 2*least+1, "%d shards, groups of %d to %d, together %d", shards, least, most, all)
		}
	}
}

// TestWhereAGroupIsDivided: at the next beginning that is planned in it.
func TestWhereAGroupIsDivided(t *testing.T) {
	d := &directory{Groups: []key.Shard{0, 4, 6}}
	assert.Equal(t, []key.Shard{4, 6, 0, 0, 0}, []key.Shard{d.divides(0, 7), d.divides(4, 7), d.divides(6, 7), d.divides(0, 3), new(directory).divides(0, 7)})
	assert.Equal(t, []key.Shard{0, 4, 4, 6, key.Meta}, []key.Shard{d.first(3), d.first(4), d.first(5), d.first(9), d.first(key.Meta)})
	assert.Equal(t, key.Shard(5), new(directory).first(5), "without groups each shard has its own")
}

// TestAHeartbeatSaysWhatEachShardDoes: of two groups that are said to have a shard, the one with the newer epoch has it.
func TestAHeartbeatSaysWhatEachShardDoes(t *testing.T) {
	h := heartbeat{Shards: 5, Groups: map[key.Shard]groupState{
		0: {Last: 3, Epoch: 4}, 2: {Last: 9, Epoch: 7}, key.Meta: {Last: key.Meta, Epoch: 1},
	}}
	h.spread()
	epochs := map[key.Shard]uint64{}
	for sh, g := range h.shards {
		epochs[sh] = g.Epoch
	}
	assert.Equal(t, map[key.Shard]uint64{0: 4, 1: 4, 2: 7, 3: 7, 4: 7, key.Meta: 1}, epochs)
}

// TestWhatIsNewestOfAGroup is what its leader says, or else who has most of it; who has nothing of it says nothing.
func TestWhatIsNewestOfAGroup(t *testing.T) {
	said := map[peer.NodeID]heartbeat{
		"a": {Groups: map[key.Shard]groupState{0: {Applied: 9, Voters: []peer.NodeID{"a"}}, 4: {Applied: 3, Voters: []peer.NodeID{"a"}}}},
		"b": {Groups: map[key.Shard]groupState{0: {Applied: 8, Epoch: 5, Voters: []peer.NodeID{"b"}}, 4: {Applied: 7, Voters: []peer.NodeID{"b"}}, 6: {}}},
	}
	best := newest(said, func(h heartbeat) map[key.Shard]groupState { return h.Groups })
	assert.Len(t, best, 2)
	assert.Equal(t, []peer.NodeID{"b", "b"}, []peer.NodeID{best[0].Voters[0], best[4].Voters[0]})
}
