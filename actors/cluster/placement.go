package cluster

import (
	"cmp"
	"slices"

	"troupe/actors/cluster/peer"
	"troupe/persistence/key"
)

// place decides which nodes shall have a vote in which group: as many as replicas says, or all nodes when there are
// fewer. Meta moves only when it must. weight is how many shards a group has, by its first one; nil: one.
func place(now map[key.Shard][]peer.NodeID, shards []key.Shard, nodes []peer.NodeID, replicas int, weight func(key.Shard) int) map[key.Shard][]peer.NodeID {
	if weight == nil {
		weight = func(key.Shard) int { return 1 }
	}
	next := map[key.Shard][]peer.NodeID{}
	count := map[peer.NodeID]int{}
	for _, sh := range shards {
		for _, id := range now[sh] {
			if slices.Contains(nodes, id) {
				next[sh] = append(next[sh], id)
				count[id] += weight(sh)
			}
		}
	}
	fewest := func(without []peer.NodeID) (best peer.NodeID) {
		for _, id := range nodes {
			if !slices.Contains(without, id) && (best == "" || count[id] < count[best]) {
				best = id
			}
		}
		return best
	}
	for _, sh := range shards {
		for len(next[sh]) > replicas {
			most := slices.MaxFunc(next[sh], func(a, b peer.NodeID) int { return cmp.Compare(count[a], count[b]) })
			next[sh] = slices.DeleteFunc(next[sh], func(id peer.NodeID) bool { return id == most })
			count[most] -= weight(sh)
		}
		for len(next[sh]) < min(replicas, len(nodes)) {
			id := fewest(next[sh])
			next[sh] = append(next[sh], id)
			count[id] += weight(sh)
		}
	}
	for moved := true; moved; {
		moved = false
		for _, sh := range shards {
			if sh == key.Meta {
				continue
			}
			to := fewest(next[sh])
			for i, from := range next[sh] {
				if to != "" && count[from] > count[to]+weight(sh) {
					next[sh][i] = to
					count[from] -= weight(sh)
					count[to] += weight(sh)
					moved = true
					break
				}
			}
		}
	}
	for _, sh := range shards {
		slices.Sort(next[sh])
	}
	return next
}

type replicaSet struct{ voters, learners []peer.NodeID }

func (s replicaSet) has(id peer.NodeID) bool {
	return slices.Contains(s.voters, id) || slices.Contains(s.learners, id)
}

// move is what a leader can do with the replicas of its shard: what, and with which node.
type move struct {
	what
	id  peer.NodeID
	out peer.NodeID // of swap: who gives its vote
}

type what uint8

const (
	rest       what = iota // all is as it should be, or must wait
	addLearner             // have a node get the log
	addVoter               // give a learner a vote
	swap                   // give a learner the vote of another node, which is taken out unless it shall learn
	demote                 // take a node's vote, and leave it a learner
	drop                   // take a node out
	leave                  // hand over to a node, which then takes this one out
)

type surroundings struct {
	self     peer.NodeID
	alive    func(peer.NodeID) bool
	caughtUp func(peer.NodeID) bool // its replica lacks next to nothing
	busy     func(peer.NodeID) bool // it has work that needs this shard: it stays
}

// No step leaves fewer voters that are alive than a majority needs, and a voter loses its vote only to another one, or
// when all who shall vote do, or when it is not alive. A node that shall keep a replica is never without one in between.
func nextMove(have, want replicaSet, s surroundings) move {
	for _, id := range have.learners {
		if !want.has(id) && !s.busy(id) {
			return move{drop, id, ""}
		}
	}
	for _, id := range slices.Concat(want.voters, want.learners) {
		if !have.has(id) && s.alive(id) {
			return move{addLearner, id, ""}
		}
	}
	for _, id := range want.voters {
		if !slices.Contains(have.learners, id) || !s.alive(id) || !s.caughtUp(id) {
			continue
		}
		for _, out := range have.voters {
			if out != s.self && !slices.Contains(want.voters, out) && (want.has(out) || !s.busy(out)) && s.majority(append(without(have.voters, out), id)) {
				return move{swap, id, out}
			}
		}
		if s.majority(append(slices.Clone(have.voters), id)) {
			return move{addVoter, id, ""}
		}
	}
	complete := !slices.ContainsFunc(want.voters, func(id peer.NodeID) bool { return !slices.Contains(have.voters, id) })
	for _, id := range have.voters {
		stays := want.has(id)
		if slices.Contains(want.voters, id) || !complete && s.alive(id) || !stays && s.busy(id) {
			continue
		}
		switch {
		case !s.majority(without(have.voters, id)):
		case id != s.self && stays:
			return move{demote, id, ""}
		case id != s.self:
			return move{drop, id, ""}
		default:
			for _, to := range want.voters {
				if slices.Contains(have.voters, to) && s.alive(to) && s.caughtUp(to) {
					return move{leave, to, ""}
				}
			}
		}
	}
	return move{}
}

func without(ids []peer.NodeID, id peer.NodeID) []peer.NodeID {
	return slices.DeleteFunc(slices.Clone(ids), func(other peer.NodeID) bool { return other == id })
}

func (s surroundings) majority(voters []peer.NodeID) bool {
	alive := 0
	for _, id := range voters {
		if id == s.self || s.alive(id) {
			alive++
		}
	}
	return 2*alive > len(voters)
}
