package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"troupe/actors/cluster/peer"
	"troupe/persistence"
	"troupe/persistence/key"
)

// A group of few shards costs as much as one of many, in processor time and in writes, and one node leads it: so there are
// as few as nodes can share. A cluster begins with groupsFirst, which are enough for three nodes, and has groupsEach for
// each node when there are more, until each shard has its own. They are not joined again when nodes go: little would be
// saved.
const (
	groupsFirst = 6
	groupsEach  = 3
)

// beginnings returns where a new cluster's groups begin.
func beginnings(shards int) (firsts []key.Shard) {
	groups := min(groupsFirst, shards)
	for i := range groups {
		firsts = append(firsts, key.Shard(i*shards/groups))
	}
	return firsts
}

// grow plans as many groups as the nodes need, by dividing the longest ones, and reports whether there are more than before.
func (d *directory) grow(shards int) (grown bool) {
	nodes := len(d.staying())
	if d.Groups == nil || nodes <= 3 {
		return false
	}
	for len(d.Groups) < min(groupsEach*nodes, shards) {
		longest := slices.MaxFunc(d.Groups, func(a, b key.Shard) int { return cmp.Compare(d.length(a, shards), d.length(b, shards)) })
		at := longest + key.Shard(d.length(longest, shards)+1)/2
		i, _ := slices.BinarySearch(d.Groups, at)
		d.Groups = slices.Insert(slices.Clone(d.Groups), i, at)
		if voters := d.Placement[longest]; voters != nil {
			d.Placement[at] = slices.Clone(voters)
		}
		grown = true
	}
	return grown
}

// length is how many shards the group has that begins with a shard.
func (d *directory) length(first key.Shard, shards int) int {
	i, _ := slices.BinarySearch(d.Groups, first)
	switch {
	case first == key.Meta || d.Groups == nil:
		return 1
	case i+1 < len(d.Groups):
		return int(d.Groups[i+1] - first)
	}
	return shards - int(first)
}

// firsts are the first shards of all groups, Meta's at the end.
func (d *directory) firsts(s *persistence.Store) []key.Shard {
	numbered := d.Groups
	if numbered == nil {
		numbered = s.Numbered()
	}
	return append(slices.Clone(numbered), key.Meta)
}

// first returns the first shard of the group that a shard is in.
func (d *directory) first(sh key.Shard) key.Shard {
	if sh == key.Meta || d.Groups == nil {
		return sh
	}
	i, is := slices.BinarySearch(d.Groups, sh)
	if !is {
		i--
	}
	return d.Groups[i]
}

// divides returns where a group of some shards shall be divided next, 0: nowhere.
func (d *directory) divides(first, last key.Shard) key.Shard {
	for _, at := range d.Groups {
		if at > first && at <= last {
			return at
		}
	}
	return 0
}

// divide divides a group that is led here where another one shall begin, once all its voters lack next to nothing: who
// gets a copy of it instead of the entry that divides it gets one of the new group too.
func (n *Node) divide(ctx context.Context, d *directory, sh key.Shard) bool {
	g := n.store.Replica(sh)
	if g == nil {
		return false
	}
	at := d.divides(sh, key.Shard(g.Last()))
	if at == 0 || slices.ContainsFunc(n.replicas(sh).voters, func(id peer.NodeID) bool { return !n.isCaughtUp(sh, id) }) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	if err := g.Split(ctx, uint16(at)); err != nil {
		n.warnings.log(n.o.Log, "divide", func() string { return fmt.Sprintf("the group of %s cannot be divided now: %v", shown(sh), err) })
		return false
	}
	n.o.Log.Info().Str("first", shown(sh)).Str("at", shown(at)).Msg("a group of shards is divided")
	return true
}
