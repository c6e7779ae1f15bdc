package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// leaderOf is the node that leads a shard in the newest epoch that nodes have said.
func leaderOf(sh key.Shard, said iter.Seq2[peer.NodeID, heartbeat]) (leader peer.NodeID, led groupState) {
	for id, h := range said {
		if g := h.shards[sh]; g.Epoch > led.Epoch {
			leader, led = id, g
		}
	}
	return leader, led
}

func leaderIn(said map[peer.NodeID]heartbeat, sh key.Shard) (leader peer.NodeID, led groupState) {
	return leaderOf(sh, maps.All(said))
}

// leaderHeard is leaderIn of what was heard.
func (n *Node) leaderHeard(sh key.Shard) (leader peer.NodeID, led groupState) {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	return leaderOf(sh, n.others.aliveLocked)
}

func (n *Node) heard() map[peer.NodeID]heartbeat {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	return maps.Collect(n.others.aliveLocked)
}

// aliveLocked yields what the nodes have said that are alive.
func (o *others) aliveLocked(yield func(peer.NodeID, heartbeat) bool) {
	for id, of := range o.by {
		if of.alive() && !yield(id, of.said) {
			return
		}
	}
}

func (n *Node) isAlive(id peer.NodeID) bool {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	return id == n.self || n.others.by[id].alive()
}

// isCaughtUp says whether a node's replica of the group that begins with a shard and is led here lacks next to nothing.
// What it has said is unknown where this node did not lead yet when it spoke; what it has confirmed since is always known.
func (n *Node) isCaughtUp(sh key.Shard, id peer.NodeID) bool {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	o := n.others.by[id]
	if !o.alive() {
		return id == n.self
	}
	g := n.store.Replica(sh)
	if g == nil || o.lag[sh] > lagMax {
		return false
	}
	lag, known := g.Behind(string(id))
	return known && lag <= lagMax
}

func (n *Node) isSettled(id peer.NodeID) bool {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	o := n.others.by[id]
	return o.alive() && time.Since(o.since) >= n.o.Settle
}

func (n *Node) heartbeat() heartbeat {
	h := heartbeat{
		Count: n.greetings.Add(1), // NB: before it looks at what is, so that a later one has no less
		Node:  n.self, Boot: n.boot, Address: n.o.Advertise, Version: n.o.Version, Level: n.level,
		Settings: n.o.Settings, Name: n.o.Name, Changed: n.o.Changed, Clock: time.Now(), Stopping: n.stopping.Load(),
	}
	if !n.started.Load() {
		h.Starting, h.Shards = true, n.o.Shards
		return h
	}
	h.Full = n.full()
	h.Shards, h.Groups = int(n.store.Shards()), map[key.Shard]groupState{}
	for sh, g := range n.store.Groups() {
		h.Groups[sh] = n.groupState(sh, g)
	}
	h.spread()
	return h
}

func (n *Node) groupState(sh key.Shard, g *replica.Group) groupState {
	have, epoch := n.replicas(sh), g.Epoch() // NB: before the last shard, which may be another one in the next epoch
	return groupState{Last: key.Shard(g.Last()), Applied: g.Applied(), Epoch: epoch, Voters: have.voters, Learners: have.learners}
}

// group is a shard's state on this node, which leads it still.
func (n *Node) group(ctx context.Context, _ peer.NodeID, sh key.Shard) (groupState, error) {
	if _, err := n.store.ReadIndex(ctx, sh); err != nil {
		return groupState{}, failure.OfStore(err)
	}
	g := n.store.Replica(sh)
	if g == nil { // it was left since
		return groupState{}, failure.Elsewhere(uint16(sh))
	}
	return n.groupState(sh, g), nil
}

func (n *Node) replicas(sh key.Shard) (have replicaSet) {
	g := n.store.Replica(sh)
	if g == nil {
		return have
	}
	for _, m := range g.Members() {
		if m.Voter {
			have.voters = append(have.voters, peer.NodeID(m.Node))
		} else {
			have.learners = append(have.learners, peer.NodeID(m.Node))
		}
	}
	return have
}

func (n *Node) sendHeartbeat(ctx context.Context, id peer.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatMax)
	defer cancel()
	answer, err := call[heartbeat, heartbeat](ctx, n, id, pathHeartbeat, n.heartbeat())
	if err == nil && answer.Node == id {
		n.note(answer)
	}
	return err
}

// welcome refuses a node that must not run with this one.
func (n *Node) welcome(_ context.Context, from peer.NodeID, said heartbeat) (heartbeat, error) {
	if said.Node != from {
		return heartbeat{}, failure.Refuse(failure.ErrInvalid, "a node greets as another one")
	}
	if err := n.refusal(said); err != nil {
		return heartbeat{}, err
	}
	n.note(said)
	return n.heartbeat(), nil
}

func (n *Node) refusal(said heartbeat) error {
	n.others.mu.Lock()
	known := n.others.by[said.Node]
	taken := known.alive() && known.said.Boot != said.Boot
	n.others.mu.Unlock()
	level := n.levelRefusal("node "+string(said.Node), said.Version, said.Level)
	switch {
	case said.Node == n.self && said.Boot != n.boot, taken:
		return failure.Refuse(failure.ErrPrecondition, "another process is node %s already; a node's folder must not be copied: an empty home and `troupe cluster join` make another node", said.Node)
	case n.isGone(said.Node):
		return failure.Refuse(failure.ErrForbidden, "node %s was removed from the cluster", said.Node)
	case level != nil:
		return level
	case said.Starting && time.Since(said.Clock).Abs() > clockMax:
		return refuseClock("node "+string(said.Node), said.Clock)
	case said.Shards != 0 && n.started.Load() && said.Shards != int(n.store.Shards()):
		return failure.Refuse(errUnfit, "the store of node %s has %d shards, or would have, and that of node %s has %d: all nodes of a cluster have as many", said.Node, said.Shards, n.self, n.store.Shards())
	}
	return nil
}

func refuseClock(who string, clock time.Time) error {
	off, direction := time.Until(clock).Round(time.Second), "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return failure.Refuse(errUnfit, "the clock of %s is %s %s that of the cluster: set it", who, off.Abs(), direction)
}

// note takes over what a node says of itself, unless something newer has come before.
func (n *Node) note(said heartbeat) {
	said.spread()
	lag := map[key.Shard]uint64{}
	if n.started.Load() {
		for sh, g := range said.Groups {
			if own := n.store.Replica(sh); own != nil && key.Shard(own.First()) == sh && own.Epoch() != 0 {
				lag[sh] = max(own.Applied(), g.Applied) - g.Applied
			}
		}
	}
	n.others.mu.Lock()
	before := n.others.by[said.Node]
	if before != nil && before.said.Boot == said.Boot && before.said.Count > said.Count {
		n.others.mu.Unlock()
		return
	}
	now := &other{heard: time.Now(), since: time.Now(), said: said, lag: lag}
	if before.alive() && before.said.Boot == said.Boot && !before.said.Starting {
		now.since = before.since
	}
	if said.Stopping {
		now.heard = time.Time{} // its next process may come at once
	}
	n.others.by[said.Node] = now
	n.others.mu.Unlock()
	if before.alive() != now.alive() {
		n.logAlive(said, now.alive())
	}
	if off := time.Since(said.Clock); off.Abs() > clockMax {
		n.warnings.log(n.o.Log, "clock of "+string(said.Node), func() string {
			return fmt.Sprintf("the clock of node %s differs by %s from this one: set the clocks", said.Node, off.Round(time.Second))
		})
	}
	if d := n.directory.Load(); d != nil && said.Settings != n.o.Settings {
		n.warnings.log(n.o.Log, "settings of "+string(said.Node), func() string {
			which := "the settings"
			if names := differing(said.Changed, n.o.Changed); len(names) > 0 {
				which += " " + strings.Join(names, ", ")
			}
			return fmt.Sprintf("%s of node %s differ from those here; troupe config shows them", which, said.Node)
		})
	}
	n.news()
}

func (n *Node) logAlive(said heartbeat, alive bool) {
	line, text := n.o.Log.Info(), "node is here"
	if !alive {
		text = "node is stopping"
	}
	line.Str("node", string(said.Node)).Str("address", said.Address).Str("version", said.Version).Msg(text)
}

func (n *Node) sendHeartbeats(ctx context.Context) map[peer.NodeID]error {
	var all sync.WaitGroup
	var mu sync.Mutex
	faults := map[peer.NodeID]error{}
	for _, id := range n.known() {
		all.Go(func() {
			if err := n.sendHeartbeat(ctx, id); err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults[id] = err
			}
		})
	}
	all.Wait()
	return faults
}

// Answering returns the other nodes that answer now, and how many nodes the cluster has, this one
// included, as far as this one knows. One that refuses this node is there too. It may be called before Run.
func (n *Node) Answering(ctx context.Context) (answer []peer.NodeID, all int) {
	ctx, cancel := context.WithTimeout(ctx, askedMax)
	defer cancel()
	known := n.known()
	there := make([]bool, len(known))
	var asked sync.WaitGroup
	for i, id := range known {
		asked.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+string(id)+pathHeartbeat, nil)
			if err != nil {
				return
			}
			response, err := n.port.RoundTrip(request)
			if err == nil { // NB: that it is no greeting, which the other would remember, does not matter
				_ = response.Body.Close()
			}
			there[i] = err == nil || errors.Is(err, peer.ErrRefused) || errors.Is(err, peer.ErrExpired) || errors.Is(err, peer.ErrOtherNode)
		})
	}
	asked.Wait()
	for i, id := range known {
		if there[i] {
			answer = append(answer, id)
		}
	}
	return answer, len(known) + 1
}

func (n *Node) known() []peer.NodeID {
	var ids []peer.NodeID
	if d := n.directory.Load(); d != nil {
		ids = slices.Sorted(maps.Keys(d.Nodes))
	} else {
		ids = slices.Sorted(maps.Keys(n.seeds))
	}
	return slices.DeleteFunc(ids, func(id peer.NodeID) bool { return id == n.self })
}

// A node that others refuse for longer than claimMax ends, because another process is this node, or because it was
// removed.
func (n *Node) heartbeatLoop() {
	var refusedSince time.Time
	silent := map[peer.NodeID]bool{}
	n.every(n.o.Pace, func(ctx context.Context) {
		faults := n.sendHeartbeats(ctx)
		refused := n.refusedBy(faults, peer.ErrRefused)
		n.refused.Store(nil)
		for id, err := range faults {
			if errors.Is(err, peer.ErrRefused) || errors.Is(err, errUnfit) {
				n.refused.Store(&err)
			}
			if !silent[id] && !n.isAlive(id) {
				n.o.Log.Warn().Err(err).Str("node", string(id)).Msg("node does not answer")
			}
		}
		for _, id := range n.known() {
			silent[id] = !n.isAlive(id)
		}
		switch {
		case refused == nil && len(faults) == len(n.known()): // nobody took it and too few refused it: that says nothing
		case refused == nil:
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
		case time.Since(refusedSince) >= claimMax:
			n.fail(refused)
		}
	})
}

// tellLoop greets the others at once when this node leads something new: who has no replica of it learns so who leads.
func (n *Node) tellLoop() {
	for {
		select {
		case <-n.leads:
		case <-n.ctx.Done():
			return
		}
		for _, id := range n.known() { // NB: without waiting, since one may be silent
			n.running.Go(func() { _ = n.sendHeartbeat(n.ctx, id) })
		}
		select {
		case <-time.After(tellPause): // what it leads meanwhile is told together
		case <-n.ctx.Done():
		}
	}
}

// refusedBy says why this node must end, from what its greetings brought. NB: a node whose clock is wrong takes no
// other's certificate, so causes count only where the rest has no majority; one that fits nobody says so of all.
func (n *Node) refusedBy(faults map[peer.NodeID]error, causes ...error) (refused error) {
	shut, unfit := 0, 0
	for _, id := range slices.Sorted(maps.Keys(faults)) {
		err := faults[id]
		switch is := func(cause error) bool { return errors.Is(err, cause) }; {
		case isRefusal(err):
			return fmt.Errorf("node %s: %w", id, err)
		case is(errUnfit):
			shut, unfit, refused = shut+1, unfit+1, fmt.Errorf("node %s: %w", id, err)
		case slices.ContainsFunc(causes, is):
			shut, refused = shut+1, err
		}
	}
	if all := len(n.known()) + 1; 2*shut < all || 2*shut == all && unfit > 0 && n.started.Load() {
		return nil
	}
	return refused
}

func isRefusal(err error) bool {
	kind := failure.Of(err).Kind
	return kind == failure.ErrPrecondition || kind == failure.ErrForbidden
}

// Claim opens the cluster port and makes sure that this process alone is its node: the others are asked. The store must
// not be open yet. It returns an error with one line of what to do.
//
// A clock with which most certificates of the others are not valid ends a node here only.
func (n *Node) Claim(ctx context.Context) error {
	if err := n.renew(); err != nil {
		return err
	}
	if err := n.port.Start(); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		refused := n.refusedBy(n.sendHeartbeats(ctx), peer.ErrRefused, peer.ErrExpired)
		switch {
		case refused == nil:
			return ctx.Err()
		case errors.Is(refused, peer.ErrExpired):
			return fmt.Errorf("this node cannot run beside the others: %w", refused)
		case failure.Of(refused).Kind != failure.ErrPrecondition, time.Since(begun) >= claimMax:
			return fmt.Errorf("the cluster does not take this node: %w", refused)
		}
		select {
		case <-time.After(claimMax / 40):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func differing(a, b map[string]string) (names []string) {
	if a == nil || b == nil {
		return nil
	}
	for name, digest := range a {
		if b[name] != digest {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
