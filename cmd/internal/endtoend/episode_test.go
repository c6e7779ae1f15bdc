package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"troupe/actors/cluster"
	"troupe/bench/load"
)

// Kinds of episodes, each of which hurts some nodes of a cluster that is whole, or changes them. Those in apart need
// nodes that have a network and a disk of their own, which takes root. With those in moving there is one node more than
// there are replicas, so that shards move. In those of calm nothing happens: it says what the machine does by itself.
var (
	simple = []string{"kill", "pause", "stop", "two", "all", "replace"}
	moving = []string{"join", "leave"}
	calm   = []string{"rest"}
	apart  = []string{"cut", "mute", "deaf", "bridge", "split", "flap", "disk"}
)

// episode is one that was.
type episode struct {
	kind         string
	gap, slowest time.Duration // see ledger
	whole        time.Duration // until the cluster was whole again
}

// hurt does one episode to some of the nodes, in any order.
func hurt(ctx context.Context, f *Fleet, net *network, draw *rand.Rand, kind string, nodes []*Node, say func(string)) error {
	away := time.Duration(draw.Int64N(int64(6 * time.Second))) // some are back before anybody noticed
	long := time.Second + time.Duration(draw.Int64N(int64(7*time.Second)))
	a, b, c := nodes[0], nodes[1], nodes[2]
	some := nodes[:1]
	switch kind {
	case "rest":
		say("for 5s")
		load.Sleep(ctx, 5*time.Second)
		return nil
	case "join":
		say(f.spare.Home)
		return join(ctx, f, a)
	case "leave":
		say(a.Home)
		return goes(ctx, f, a, b)
	case "pause":
		say(fmt.Sprintf("%s for %s", a.Home, long.Round(time.Millisecond)))
		return halt(ctx, a, long)
	case "cut", "mute", "deaf", "bridge", "split", "flap":
		say(fmt.Sprintf("%s, %s, %s for %s", a.Home, b.Home, c.Home, long.Round(time.Millisecond)))
		return part(ctx, net, kind, net.of(a), net.of(b), net.of(c), long)
	case "disk":
		say(fmt.Sprintf("%s for %s", a.Home, long.Round(time.Millisecond)))
		return hold(ctx, a, net.of(a), long)
	case "two":
		some = nodes[:2]
	case "all":
		some = nodes
	}
	var homes []string
	for _, n := range some {
		homes = append(homes, n.Home)
	}
	say(fmt.Sprintf("%s, %s later", strings.Join(homes, " and "), away.Round(time.Millisecond)))
	for _, n := range some {
		if kind == "stop" {
			n.Stop()
		} else {
			n.Kill()
		}
	}
	load.Sleep(ctx, away)
	if kind == "replace" {
		return replace(ctx, f, a, b)
	}
	for _, n := range some {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func part(ctx context.Context, n *network, kind string, a, b, c *machine, long time.Duration) error {
	var err error
	switch kind {
	case "cut":
		err = errors.Join(n.cut(ctx, a, b, true), n.cut(ctx, a, c, true))
	case "mute":
		err = errors.Join(n.link(ctx, a, b, true), n.link(ctx, a, c, true))
	case "deaf":
		err = errors.Join(n.link(ctx, b, a, true), n.link(ctx, c, a, true))
	case "bridge":
		err = n.cut(ctx, a, b, true)
	case "split":
		err = errors.Join(n.cut(ctx, a, b, true), n.cut(ctx, a, c, true), n.cut(ctx, b, c, true))
	case "flap":
		for i := range flaps {
			err = errors.Join(err, n.cut(ctx, a, b, i%2 == 0), n.cut(ctx, a, c, i%2 == 0))
			load.Sleep(ctx, long/flaps)
		}
		long = 0
	}
	load.Sleep(ctx, long)
	return errors.Join(err, n.heal(context.WithoutCancel(ctx)))
}

// flaps is how many times a link goes or comes back in one episode.
const flaps = 20

// hold has the disk of a node take no writes for some time. A node whose disk hangs for long ends by
// itself, and is started again.
func hold(ctx context.Context, n *Node, m *machine, long time.Duration) error {
	if err := m.freeze(ctx); err != nil {
		return err
	}
	load.Sleep(ctx, long)
	if err := m.thaw(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return Again(ctx, func() error {
		select {
		case <-n.Process().Ended():
			return n.Start(ctx)
		default:
			_, err := n.Status(ctx)
			return err
		}
	})
}

func halt(ctx context.Context, n *Node, d time.Duration) error {
	p := n.Process()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	load.Sleep(ctx, d)
	return p.Signal(syscall.SIGCONT)
}

// prepare has a node gone before one joins, and there before one leaves.
func prepare(ctx context.Context, f *Fleet, kind string) error {
	nodes := f.Nodes
	var err error
	switch {
	case kind == "join" && f.spare == nil:
		err = goes(ctx, f, nodes[len(nodes)-1], nodes[0])
	case kind != "join" && f.spare != nil:
		err = join(ctx, f, nodes[0])
	default:
		return nil
	}
	return errors.Join(err, f.Whole(ctx))
}

func join(ctx context.Context, f *Fleet, by *Node) error {
	n := f.spare
	f.spare, f.Nodes = nil, append(f.Nodes, n)
	return f.Join(ctx, n, by)
}

// goes has a running node removed from the cluster, and returns when its process has ended.
func goes(ctx context.Context, f *Fleet, n, by *Node) error {
	status, err := by.Status(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(status.Nodes, func(s cluster.NodeStatus) bool { return s.Address == n.Cluster })
	if i < 0 {
		return fmt.Errorf("%s is no node: %+v", n.Home, status)
	}
	if _, err := by.Output(ctx, "cluster", "remove", string(status.Nodes[i].ID), "--home", by.Home); err != nil {
		return err
	}
	select {
	case <-n.Process().Ended():
	case <-time.After(WholeMax):
		return fmt.Errorf("%s has not ended: %+v", n.Home, status)
	}
	n.Kill()
	f.spare, f.Nodes = n, slices.DeleteFunc(f.Nodes, func(other *Node) bool { return other == n })
	return os.RemoveAll(n.Home)
}

// replace has n, which does not run, lose its folder and join anew.
func replace(ctx context.Context, f *Fleet, n, by *Node) error {
	is := func(s cluster.NodeStatus) bool { return s.Address == n.Cluster }
	var status cluster.Status
	err := Again(ctx, func() (err error) {
		status, err = by.Status(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(n.Home); err != nil {
		return err
	}
	for _, s := range status.Nodes {
		if !is(s) {
			continue
		}
		err := Again(ctx, func() error {
			if status, err := by.Status(ctx); err == nil && !slices.ContainsFunc(status.Nodes, is) {
				return nil // an earlier attempt did it
			}
			_, err := by.Output(ctx, "cluster", "remove", string(s.ID), "--lost", "--home", by.Home)
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.Join(ctx, n, by)
}
