package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/cluster/peer"
	_ "troupe/internal/fixedseed"
	"troupe/persistence/key"
)

func nodesDrawn(t *rapid.T, label string) []peer.NodeID {
	var ids []peer.NodeID
	for i := range 7 {
		if rapid.Bool().Draw(t, fmt.Sprint(label, i)) {
			ids = append(ids, peer.NodeID(fmt.Sprint("node", i)))
		}
	}
	return ids
}

// TestPlacement: from wherever it was, each group gets as many nodes as it should have, all
// have about as many shards, and nothing moves that need not.
func TestPlacement(t *testing.T) {
	var shards []key.Shard
	for sh := range key.Shard(16) {
		shards = append(shards, sh)
	}
	shards = append(shards, key.Meta)
	rapid.Check(t, func(t *rapid.T) {
		now := map[key.Shard][]peer.NodeID{}
		weights := rapid.SliceOfN(rapid.IntRange(1, 4), len(shards), len(shards)).Draw(t, "weights")
		weight := func(sh key.Shard) int { return weights[slices.Index(shards, sh)] }
		for round := range 3 {
			nodes := nodesDrawn(t, fmt.Sprint("nodes ", round, " "))
			if len(nodes) == 0 {
				continue
			}
			replicas := rapid.IntRange(1, 5).Draw(t, "replicas")
			next := place(now, shards, nodes, replicas, weight)
			count := map[peer.NodeID]int{}
			for _, sh := range shards {
				require.Len(t, next[sh], min(replicas, len(nodes)), "shard %d", sh)
				require.True(t, slices.IsSorted(next[sh]) && len(slices.Compact(slices.Clone(next[sh]))) == len(next[sh]), "%v %v", sh, next[sh])
				for _, id := range next[sh] {
					require.Contains(t, nodes, id, "shard %d is placed", sh)
					if sh != key.Meta {
						count[id] += weight(sh)
					}
				}
			}
			least, most := 4*len(shards), 0
			for _, id := range nodes {
				least, most = min(least, count[id]), max(most, count[id])
			}
			if most-least > slices.Max(weights)+weight(key.Meta) { // NB: Meta counts as well, and does not move
				t.Fatalf("some have %d shards and some %d: %v", least, most, count)
			}
			again := place(next, shards, nodes, replicas, weight)
			require.Equal(t, fmt.Sprint(next), fmt.Sprint(again), "placed again it is\n%v, not\n%v", again, next)
			stay := slices.DeleteFunc(slices.Clone(now[key.Meta]), func(id peer.NodeID) bool { return !slices.Contains(nodes, id) })
			require.False(t, len(stay) <= replicas && slices.ContainsFunc(stay, func(id peer.NodeID) bool { return !slices.Contains(next[key.Meta], id) }),
				"Meta has moved from %v to %v without need", stay, next[key.Meta])
			now = next
		}
	})
}

// TestWhoKeepsWhat: a numbered shard stands where it has votes, and Meta on every node, but for those that leave.
func TestWhoKeepsWhat(t *testing.T) {
	shards := []key.Shard{0, 1, 2, key.Meta}
	rapid.Check(t, func(t *rapid.T) {
		d := &directory{Nodes: map[peer.NodeID]member{}}
		for _, id := range nodesDrawn(t, "node ") {
			d.Nodes[id] = member{Started: rapid.Bool().Draw(t, "started"), Leaving: rapid.Bool().Draw(t, "leaving")}
		}
		d.Placement = place(nil, shards, d.staying(), rapid.IntRange(1, 5).Draw(t, "replicas"), nil)
		for _, sh := range shards {
			want := d.wanted(sh)
			require.True(t, slices.Equal(want.voters, d.Placement[sh]), "%v shall vote in shard %d, want %v", want.voters, sh, d.Placement[sh])
			require.True(t, sh == key.Meta || want.learners == nil, "%v shall learn shard %d", want.learners, sh)
			for id, m := range d.Nodes {
				votes, learns := slices.Contains(want.voters, id), slices.Contains(want.learners, id)
				require.True(t, sh != key.Meta || (!votes || !learns) && (votes || learns) != m.Leaving, "%v %v %v %v %v", sh, id, m, votes, learns)
			}
		}
	})
}

// TestMoves: step by step the replicas become those that shall be, and at no time are fewer
// voters alive than a majority needs.
func TestMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := replicaSet{voters: nodesDrawn(t, "voter ")}
		for _, id := range nodesDrawn(t, "learner ") {
			if !have.has(id) {
				have.learners = append(have.learners, id)
			}
		}
		want := replicaSet{voters: nodesDrawn(t, "wanted ")}
		if len(have.voters) == 0 || len(want.voters) == 0 {
			return
		}
		if rapid.Bool().Draw(t, "all others learn") {
			for i := range 7 {
				if id := peer.NodeID(fmt.Sprint("node", i)); !want.has(id) {
					want.learners = append(want.learners, id)
				}
			}
		}
		down := map[peer.NodeID]bool{}
		for _, id := range nodesDrawn(t, "down ") {
			down[id] = true
		}
		s := surroundings{
			self:  rapid.SampledFrom(have.voters).Draw(t, "leader"),
			alive: func(id peer.NodeID) bool { return !down[id] },
		}
		s.caughtUp = s.alive
		busy := map[peer.NodeID]bool{}
		for _, id := range nodesDrawn(t, "busy ") {
			busy[id] = true
		}
		s.busy = func(id peer.NodeID) bool { return busy[id] }
		down[s.self] = false
		if !s.majority(have.voters) {
			return
		}
		anyDown := slices.ContainsFunc(slices.Concat(have.voters, want.voters, want.learners), func(id peer.NodeID) bool { return down[id] })
		for range 100 {
			step := nextMove(have, want, s)
			id, before := step.id, len(have.voters)
			switch step.what {
			case rest:
				if leaving := len(busy); leaving > 0 { // their work is done, and they may go; who stays has work for good
					maps.DeleteFunc(busy, func(id peer.NodeID, _ bool) bool { return !want.has(id) })
					if len(busy) < leaving {
						continue
					}
				}
				slices.Sort(have.voters)
				slices.Sort(have.learners)
				slices.Sort(want.learners)
				require.False(t, !anyDown && (!slices.Equal(have.voters, want.voters) || !slices.Equal(have.learners, want.learners)), "%v %v", have, want)
				return
			case addLearner:
				have.learners = append(have.learners, id)
			case addVoter:
				have.learners = without(have.learners, id)
				have.voters = append(have.voters, id)
			case swap:
				out := step.out
				require.True(t, slices.Contains(have.learners, id) && slices.Contains(want.voters, id) && slices.Contains(have.voters, out) && !slices.Contains(want.voters, out), "%v %v %v", step, have, want)
				require.False(t, out == s.self || busy[out] && !want.has(out), "%s is taken out, and leads or has work", out)
				have.learners, have.voters = without(have.learners, id), append(without(have.voters, out), id)
				if want.has(out) {
					have.learners = append(have.learners, out)
				}
			case demote:
				require.True(t, slices.Contains(have.voters, id) && slices.Contains(want.learners, id) && id != s.self, "%v %v %v", id, have, want)
				require.False(t, s.alive(id) && before <= len(want.voters), "%v %v", before, len(want.voters))
				have.voters = without(have.voters, id)
				have.learners = append(have.learners, id)
			case drop:
				require.False(t, want.has(id), "%s is taken out, and shall have a replica: %v, want %v", id, have, want)
				require.False(t, busy[id], "%s is taken out, and has work", id)
				require.NotEqual(t, s.self, id, "the leader drops itself")
				require.False(t, slices.Contains(have.voters, id) && s.alive(id) && before <= len(want.voters), "%v %v", before, len(want.voters))
				have.learners, have.voters = without(have.learners, id), without(have.voters, id)
			case leave:
				require.True(t, slices.Contains(have.voters, id) && !down[id], "it hands over to %s", id)
				s.self = id
			}
			require.True(t, s.majority(have.voters), "after %v too few voters are alive: %v", step, have)
		}
		t.Fatalf("it does not come to rest: %v, want %v", have, want)
	})
}
