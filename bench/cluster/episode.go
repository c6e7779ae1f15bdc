package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Kinds of episodes, each of which hurts some nodes of a cluster that is whole. Those in apart need
// nodes that have a network and a disk of their own, which takes root.
var (
	simple = []string{"kill", "pause", "stop", "two", "all", "replace"}
	apart  = []string{"cut", "mute", "deaf", "bridge", "split", "flap", "disk"}
)

// episode is one that was.
type episode struct {
	kind         string
	gap, slowest time.Duration // see ledger
	whole        time.Duration // until the cluster was whole again
}

// hurt does one episode to some of the nodes, in any order.
func (f *fleet) hurt(ctx context.Context, draw *rand.Rand, kind string, nodes []*node, say func(string)) error {
	away := time.Duration(draw.Int64N(int64(6 * time.Second))) // some are back before anybody noticed
	long := time.Second + time.Duration(draw.Int64N(int64(7*time.Second)))
	a, b, c := nodes[0], nodes[1], nodes[2]
	some := nodes[:1]
	switch kind {
	case "pause":
		say(fmt.Sprintf("%s for %s", a.home, long.Round(time.Millisecond)))
		return a.pause(ctx, long)
	case "cut", "mute", "deaf", "bridge", "split", "flap":
		say(fmt.Sprintf("%s, %s, %s for %s", a.home, b.home, c.home, long.Round(time.Millisecond)))
		return f.part(ctx, kind, &a.machine, &b.machine, &c.machine, long)
	case "disk":
		say(fmt.Sprintf("%s for %s", a.home, long.Round(time.Millisecond)))
		return a.hold(ctx, long)
	case "two":
		some = nodes[:2]
	case "all":
		some = nodes
	}
	var homes []string
	for _, n := range some {
		homes = append(homes, n.home)
	}
	say(fmt.Sprintf("%s, %s later", strings.Join(homes, " and "), away.Round(time.Millisecond)))
	for _, n := range some {
		if kind == "stop" {
			n.stop()
		} else {
			n.kill()
		}
	}
	wait(ctx, away)
	if kind == "replace" {
		return f.replace(ctx, a, b)
	}
	for _, n := range some {
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// part cuts links for some time.
func (f *fleet) part(ctx context.Context, kind string, a, b, c *machine, long time.Duration) error {
	n := f.network
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
			wait(ctx, long/flaps)
		}
		long = 0
	}
	wait(ctx, long)
	return errors.Join(err, n.heal(context.WithoutCancel(ctx)))
}

// flaps is how many times a link goes or comes back in one episode.
const flaps = 20

// hold has the node's disk take no writes for some time. A node whose disk hangs for long ends by
// itself, and is started again.
func (n *node) hold(ctx context.Context, long time.Duration) error {
	if err := n.freeze(ctx); err != nil {
		return err
	}
	wait(ctx, long)
	if err := n.thaw(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return again(ctx, func() error {
		select {
		case <-n.process.Load().Ended():
			return n.start(ctx)
		default:
			_, err := n.status(ctx)
			return err
		}
	})
}
