package replicatest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// spread gives each group but Meta's simNodes homes.
func (c *cluster) spread() {
	c.homes, c.moves = map[key.Shard][]string{}, map[key.Shard]*atomic.Bool{}
	for sh := range c.nodes[0].store.Groups() {
		c.moves[sh] = new(atomic.Bool)
		if sh == key.Meta {
			continue
		}
		for i := range simNodes {
			c.homes[sh] = append(c.homes[sh], c.nodes[(int(sh)+i)%len(c.nodes)].name)
		}
	}
	c.settle()
}

// joinAll has all nodes take part in all groups: one that got a copy of a group that was divided lacks the other part.
func (c *cluster) joinAll() {
	for _, leader := range c.nodes {
		if leader.store == nil {
			continue
		}
		for sh, g := range leader.store.Groups() {
			for _, n := range c.nodes {
				if g.Epoch() != 0 && n.store != nil {
					c.check(n.store.Join(sh))
				}
			}
		}
	}
}

// adopt gives groups that were divided from others the homes of these.
func (c *cluster) adopt() {
	for _, n := range c.nodes {
		if n.store == nil {
			continue
		}
		for sh, g := range n.store.Groups() {
			if g.Epoch() != 0 && c.moves[sh] == nil {
				c.homes[sh], c.moves[sh] = slices.Clone(c.homes[c.first(sh)]), new(atomic.Bool)
			}
		}
	}
}

// first returns the first shard of a shard's group, as far as that has homes.
func (c *cluster) first(sh key.Shard) key.Shard {
	if sh != key.Meta {
		for c.homes[sh] == nil {
			sh--
		}
	}
	return sh
}

// divide has the leaders of groups with several shards divide them.
func (c *cluster) divide(r *rand.Rand) {
	for _, n := range c.nodes {
		for sh, g := range n.store.Groups() {
			if more := int(g.Last() - uint16(sh)); more > 0 && g.Epoch() != 0 {
				at := uint16(sh) + 1 + uint16(r.IntN(more))
				c.looks.Go(func() { _ = g.Split(c.t.Context(), at) }) // NB: in the midst of faults
			}
		}
	}
}

// rehome has a group go from one node to another.
func (c *cluster) rehome(r *rand.Rand, sh key.Shard) {
	i := r.IntN(len(c.nodes))
	for slices.Contains(c.homes[sh], c.nodes[i].name) {
		i = (i + 1) % len(c.nodes)
	}
	c.homes[sh][r.IntN(simNodes)] = c.nodes[i].name
}

// replace has a node go for good, and a new one have its place.
func (c *cluster) replace(n *node) {
	c.net.Isolate(n.name, c.names, true)
	_ = n.stop()
	c.came++
	fresh := c.node(fmt.Sprint("fresh", c.came))
	c.nodes[slices.Index(c.nodes, n)] = fresh
	c.names = append(c.names, fresh.name)
	for _, home := range c.homes {
		if i := slices.Index(home, n.name); i >= 0 {
			home[i] = fresh.name
		}
	}
	fresh.start()
}

// wanted are the nodes that shall have a shard.
func (c *cluster) wanted(sh key.Shard) (want []string) {
	if sh != key.Meta {
		return c.homes[c.first(sh)]
	}
	for _, n := range c.nodes {
		want = append(want, n.name)
	}
	return want
}

// isHome reports whether those have a shard that shall, with a vote.
func (c *cluster) isHome(sh key.Shard) bool {
	want := c.wanted(sh)
	for _, n := range c.nodes {
		if (n.store.Replica(sh) != nil) != slices.Contains(want, n.name) {
			return false
		}
	}
	leader := c.leads(sh)
	if leader == nil {
		return false
	}
	members := leader.store.Replica(sh).Members()
	return len(members) == len(want) && !slices.ContainsFunc(members, func(m replica.Member) bool { return !m.Voter || !slices.Contains(want, m.Node) })
}

// leads returns a node that believes that it leads a shard, nil when there is none.
func (c *cluster) leads(sh key.Shard) (leader *node) {
	for _, n := range c.nodes {
		if n.store != nil && n.store.Epoch(sh) != 0 && (leader == nil || n.store.Epoch(sh) > leader.store.Epoch(sh)) {
			leader = n
		}
	}
	return leader
}

// shift has each shard go a step towards where it shall be, as package cluster does.
func (c *cluster) shift() {
	if c.homes == nil {
		c.joinAll()
		return
	}
	c.adopt()
	for sh := range c.moves {
		leader, want := c.leads(sh), c.wanted(sh)
		if leader == nil {
			continue
		}
		have := leader.store.Replica(sh).Members()
		for _, n := range c.nodes {
			switch is := slices.Contains(want, n.name); {
			case n.store == nil:
			case is:
				c.check(n.store.Join(sh))
			case n.store.Replica(sh) != nil && n.store.Replica(sh).First() == uint16(sh) && member(have, n.name) == nil:
				if n.store.Leave(sh, func() error { return c.removedFrom(n, sh) }) == nil {
					c.left++
				}
			}
		}
		if step := c.step(leader, sh, have, want); step != nil && c.moves[sh].CompareAndSwap(false, true) {
			c.looks.Go(func() {
				_ = step() // NB: in the midst of faults; it is tried again
				c.moves[sh].Store(false)
			})
		}
	}
}

func member(of []replica.Member, node string) *replica.Member {
	if i := slices.IndexFunc(of, func(m replica.Member) bool { return m.Node == node }); i >= 0 {
		return &of[i]
	}
	return nil
}

// removedFrom asks the node that leads a shard whether another one has no part in it.
func (c *cluster) removedFrom(n *node, sh key.Shard) error {
	leader := c.leads(sh)
	if leader == nil {
		return errors.New("nobody leads")
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	_, err := leader.store.ReadIndex(ctx, sh)
	if err == nil && member(leader.store.Replica(sh).Members(), n.name) != nil {
		err = errors.New("it is taken in again")
	}
	return err
}

// step is what the leader of a shard can do next, nil when there is nothing.
func (c *cluster) step(leader *node, sh key.Shard, have []replica.Member, want []string) func() error {
	g := leader.store.Replica(sh)
	var learner, voter string // that shall vote, and that does
	for _, n := range c.nodes {
		switch m := member(have, n.name); {
		case n.store == nil || !slices.Contains(want, n.name):
		case m == nil:
			return func() error { return g.AddLearner(n.name) }
		case m.Voter && n != leader:
			voter = n.name
		case !m.Voter && n.store.Replica(sh).Applied() > 0 && learner == "":
			learner = n.name
		}
	}
	out := ""
	for _, m := range have {
		if !slices.Contains(want, m.Node) && (out == "" || out == leader.name) {
			out = m.Node
		}
	}
	switch {
	case out != "" && out == leader.name && voter != "":
		return func() error { return g.HandOver(c.t.Context(), voter) }
	case out != "" && !member(have, out).Voter:
		return func() error { return g.Remove(out) }
	case learner != "" && out != "" && out != leader.name:
		return func() error { return g.Swap(learner, out, false) }
	case learner != "":
		return func() error { return g.AddVoter(learner) }
	case out != "" && out != leader.name && len(have) > len(want):
		return func() error { return g.Remove(out) }
	}
	return nil
}
