package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"troupe/actors/cluster/peer"
	"troupe/actors/guard"
	"troupe/persistence/key"
)

func (n *Node) keepLoop() {
	before := 0
	n.every(n.o.Pace, func(ctx context.Context) {
		if led := n.ledShards(); led != before {
			n.o.Log.Info().Int("shards", led).Int("before", before).Msg("the number of shards that this node leads has changed")
			before = led
		}
		n.reconcile(ctx)
		if n.store.Epoch(key.Meta) != 0 {
			if err := n.keepDirectory(ctx); err != nil {
				n.warnings.log(n.o.Log, "directory", func() string { return "the cluster's own row cannot be written: " + err.Error() })
			}
		}
		switch {
		case n.stopping.Load():
		case n.full():
			if n.ledShards() > 0 {
				n.sendHeartbeats(ctx) // another disk may have become full since it was heard
				n.transferLeaderships(ctx, n.haveRoom)
			}
		default:
			n.balance(ctx)
		}
	})
}

// wanted gives the group that begins with a shard to those who vote in it, and Meta to every node: users, definitions and
// this directory are read where they are needed.
func (d *directory) wanted(sh key.Shard) replicaSet {
	want := replicaSet{voters: d.Placement[sh]}
	if sh != key.Meta {
		return want
	}
	for _, id := range slices.Sorted(maps.Keys(d.Nodes)) {
		if !d.Nodes[id].Leaving && !slices.Contains(want.voters, id) {
			want.learners = append(want.learners, id)
		}
	}
	return want
}

func (n *Node) reconcile(ctx context.Context) {
	d := n.directory.Load()
	if d == nil {
		return
	}
	for sh := range n.store.Groups() {
		if sh == key.Meta || d.wanted(sh).has(n.self) || !n.Fresh() || !n.isOut(sh) {
			continue
		}
		n.o.Log.Info().Str("shard", shown(sh)).Msg("shard is kept by other nodes now; removing this copy")
		if err := n.store.Leave(sh, func() error { return n.removedFrom(ctx, sh) }); err != nil {
			n.warnings.log(n.o.Log, "leave", func() string { return fmt.Sprintf("%s cannot be removed: %v", shown(sh), err) })
		}
	}
	for sh, g := range newest(n.heard(), func(h heartbeat) map[key.Shard]groupState { return h.Groups }) {
		// NB: also without being wanted: a group that was divided while this node was away may need its vote
		if n.store.Replica(sh) != nil || !d.wanted(sh).has(n.self) && !g.replicas().has(n.self) {
			continue
		}
		if err := n.store.Join(sh); err != nil {
			n.warnings.log(n.o.Log, "join", func() string { return fmt.Sprintf("%s cannot be taken in: %v", shown(sh), err) })
		}
	}
}

// newest is what is known of what some node has something of: from who leads it, or else, as those that follow know who has
// a vote, from who is least behind.
func newest(said map[peer.NodeID]heartbeat, of func(heartbeat) map[key.Shard]groupState) map[key.Shard]groupState {
	best := map[key.Shard]groupState{}
	for _, h := range said {
		for sh, g := range of(h) {
			if than := best[sh]; g.Epoch > than.Epoch || g.Epoch == than.Epoch && g.Applied > than.Applied {
				best[sh] = g
			}
		}
	}
	return best
}

// lacksDivision says whether a node that is alive has a group as it was before it was divided: it must stay until it has
// the other part too, which it may be needed for.
func (n *Node) lacksDivision(sh key.Shard, id peer.NodeID) bool {
	g := n.store.Replica(sh)
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	o := n.others.by[id]
	return g != nil && o.alive() && o.said.Groups[sh].Last > key.Shard(g.Last())
}

func (n *Node) isOut(sh key.Shard) bool {
	leader, led := leaderIn(n.heard(), sh)
	return n.store.Epoch(sh) == 0 && leader != "" && !led.replicas().has(n.self)
}

// removedFrom asks the node that leads a shard whether this one has no part in it, as of now.
func (n *Node) removedFrom(ctx context.Context, sh key.Shard) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatMax)
	defer cancel()
	led, err := AskIn(ctx, n, sh, pathGroup, n.group, sh)
	if err == nil && led.replicas().has(n.self) {
		err = errors.New("this node has a part in it again")
	}
	return err
}

func (n *Node) keepDirectory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepMax)
	defer cancel()
	if old := n.directory.Load(); old != nil { // NB: looked at before, so that nothing is asked of the others when nothing is to be done
		if changed, _ := n.edit(old.clone()); !changed {
			return nil
		}
	}
	var left []peer.NodeID
	err := n.change(ctx, func(d *directory) error {
		var changed bool
		if changed, left = n.edit(d); !changed {
			return errUnchanged
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range left {
		n.o.Log.Info().Str("node", string(id)).Msg("node was removed from the cluster")
		n.dismiss(ctx, id)
	}
	return nil
}

// NB: its connections are being closed, so a try may fail. One that is lost hears nothing, and one that misses it finds
// that its greetings are refused.
func (n *Node) dismiss(ctx context.Context, id peer.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatMax)
	defer cancel()
	for {
		if _, err := call[struct{}, struct{}](ctx, n, id, pathGoodbye, struct{}{}); err == nil {
			return
		}
		select {
		case <-time.After(n.o.Pace / 20):
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) edit(d *directory) (changed bool, left []peer.NodeID) {
	if n.refound(d) {
		changed = true
	}
	said := n.heard()
	said[n.self] = n.heartbeat()
	for id, m := range d.Nodes {
		h, alive := said[id]
		if alive && (!m.Started || m.Address != h.Address || m.Level != h.Level) {
			m.Started, m.Address, m.Level = true, h.Address, h.Level
			d.Nodes[id] = m
			changed = true
		}
		if m.Leaving && n.hasNone(id, n.store.AllShards(), said) {
			delete(d.Nodes, id)
			d.Gone = append(d.Gone, id)
			left = append(left, id)
			changed = true
		}
	}
	for id, key := range d.Keys {
		if time.Since(key.Expires) > keyKept {
			delete(d.Keys, id)
			changed = true
		}
	}
	if level := d.levelOfAll(); level != d.Level {
		d.Level = level
		changed = true
	}
	if d.grow(int(n.store.Shards())) {
		changed = true
	}
	next := place(d.Placement, d.firsts(n.store), d.staying(), n.o.Replicas, func(sh key.Shard) int { return d.length(sh, int(n.store.Shards())) })
	if len(d.staying()) > 0 && !maps.EqualFunc(next, d.Placement, slices.Equal[[]peer.NodeID]) {
		d.Placement = next
		changed = true
	}
	return changed, left
}

// NB: one that leads a shard, and was taken out of Meta before it knew that it shall leave, would lead it for ever.
func (n *Node) isBusy(id peer.NodeID) bool {
	said := n.heard()
	said[n.self] = n.heartbeat()
	return n.isAlive(id) && !n.hasNone(id, n.besides(key.Meta), said)
}

func (n *Node) besides(other key.Shard) iter.Seq[key.Shard] {
	return func(yield func(key.Shard) bool) {
		for sh := range n.store.AllShards() {
			if sh != other && !yield(sh) {
				return
			}
		}
	}
}

func (n *Node) hasNone(id peer.NodeID, shards iter.Seq[key.Shard], said map[peer.NodeID]heartbeat) bool {
	for sh := range shards {
		leader, led := leaderIn(said, sh)
		if leader == "" || led.replicas().has(id) {
			return false
		}
	}
	return true
}

// balance hands groups over when then no node leads more shards than this one does now: one at a look, or more
// where there are many groups, so that a node that has started leads its part within some 20 looks.
func (n *Node) balance(ctx context.Context) {
	d := n.directory.Load()
	if d == nil {
		return
	}
	led, own, heard := map[peer.NodeID]int{}, n.led(), n.heard()
	led[n.self] = n.ledShards()
	for id, said := range heard {
		for _, g := range said.shards {
			if g.Epoch != 0 {
				led[id]++
			}
		}
		if !said.mayLead() || d.Nodes[id].Leaving || !n.isSettled(id) {
			led[id] += int(n.store.Shards()) + 1
		}
	}
	given := 0
	for _, sh := range own {
		g := n.store.Replica(sh)
		var best peer.NodeID
		voters := n.replicas(sh).voters
		if g == nil || !n.haveRoom(voters, heard) {
			continue
		}
		length := int(g.Last()-g.First()) + 1
		for _, id := range voters {
			if id != n.self && slices.Contains(d.Placement[sh], id) && n.isCaughtUp(sh, id) && led[id]+length < led[n.self] && (best == "" || led[id] < led[best]) {
				best = id
			}
		}
		if best == "" {
			continue
		}
		n.transferLeadership(ctx, sh, best)
		led[best] += length
		led[n.self] -= length
		if given++; given > len(own)/32 {
			return
		}
	}
}

// haveRoom: without a majority with free disks nobody can begin an epoch; who leads keeps its own, and reads go on.
func (n *Node) haveRoom(voters []peer.NodeID, said map[peer.NodeID]heartbeat) bool {
	room := 0
	for _, id := range voters {
		if h, alive := said[id]; id == n.self && !n.full() || alive && !h.Full {
			room++
		}
	}
	return 2*room > len(voters)
}

// led are the groups that this node leads, by their first shards.
func (n *Node) led() []key.Shard {
	var own []key.Shard
	for sh, g := range n.store.Groups() {
		if g.Epoch() != 0 {
			own = append(own, sh)
		}
	}
	return own
}

// ledShards counts the shards that this node leads.
func (n *Node) ledShards() (count int) {
	for sh := range n.store.AllShards() {
		if n.store.Epoch(sh) != 0 {
			count++
		}
	}
	return count
}

// handOverMax bounds a hand-over; while it lasts nothing is written.
const handOverMax = 2 * time.Second

func (n *Node) transferLeadership(ctx context.Context, sh key.Shard, to peer.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	g := n.store.Replica(sh)
	if g == nil {
		return
	}
	if err := g.HandOver(ctx, string(to)); err != nil {
		n.warnings.log(n.o.Log, "hand over", func() string { return fmt.Sprintf("%s is not handed over to node %s: %v", shown(sh), to, err) })
		return
	}
	for n.store.Epoch(sh) != 0 && ctx.Err() == nil { // until this node has noticed
		<-time.After(time.Millisecond)
	}
	n.handed.Add(1)
	n.o.Log.Debug().Str("shard", shown(sh)).Str("node", string(to)).Msg("leadership handed over")
}

// Led implements persistence.LeadershipObserver.
func (n *Node) Led(sh key.Shard, epoch uint64) {
	if g := n.store.Replica(sh); g == nil || key.Shard(g.First()) != sh { // NB: a group is told of at each of its shards
		return
	}
	n.tending.mu.Lock()
	defer n.tending.mu.Unlock()
	if n.ctx.Err() != nil { // Stop waits already
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	n.tending.stop[sh] = cancel
	n.o.Log.Debug().Str("shard", shown(sh)).Uint64("epoch", epoch).Msg("leading")
	select {
	case n.leads <- struct{}{}:
	default:
	}
	n.running.Go(func() { guard.Loop(ctx.Done(), n.o.Log, "tending of a shard", func() { n.reconcileShard(ctx, sh) }) })
	n.news()
}

// Ended implements persistence.LeadershipObserver.
func (n *Node) Ended(sh key.Shard, epoch uint64) {
	n.tending.mu.Lock()
	defer n.tending.mu.Unlock()
	if cancel := n.tending.stop[sh]; cancel != nil {
		cancel()
		delete(n.tending.stop, sh)
	}
	n.o.Log.Debug().Str("shard", shown(sh)).Uint64("epoch", epoch).Msg("not leading any more")
	n.news()
}

func (n *Node) reconcileShard(ctx context.Context, sh key.Shard) {
	for ctx.Err() == nil {
		pause := n.o.Pace
		if d := n.directory.Load(); d != nil && len(d.wanted(sh).voters) > 0 {
			want := d.wanted(sh)
			step := nextMove(n.replicas(sh), want, surroundings{
				self: n.self, alive: n.isAlive, caughtUp: func(id peer.NodeID) bool { return n.isCaughtUp(sh, id) },
				busy: func(id peer.NodeID) bool { return sh == key.Meta && n.isBusy(id) || n.lacksDivision(sh, id) },
			})
			// NB: with n.ctx, as ctx ends with the epoch, which both can bring about
			if step.what != rest && n.move(n.ctx, sh, step, want.has(step.out)) || step.what == rest && n.divide(n.ctx, d, sh) {
				pause = n.o.Pace / 20
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// move makes a step. With learns the one who gives its vote keeps its copy.
func (n *Node) move(ctx context.Context, sh key.Shard, step move, learns bool) bool {
	g, id := n.store.Replica(sh), step.id
	if g == nil {
		return false
	}
	var err error
	var done string
	switch step.what {
	case addLearner:
		err, done = g.AddLearner(string(id)), "node gets a copy of the shard"
	case addVoter:
		err, done = g.AddVoter(string(id)), "node has a vote in the shard"
	case swap:
		err, done = g.Swap(string(id), string(step.out), learns), "node has the vote of another one in the shard"
	case demote:
		err, done = g.Demote(string(id)), "node keeps its copy of the shard, and has no vote any more"
	case drop:
		err, done = g.Remove(string(id)), "node has no part in the shard any more"
	case leave:
		n.transferLeadership(ctx, sh, id)
		return true
	}
	if err != nil {
		n.warnings.log(n.o.Log, "move", func() string { return fmt.Sprintf("the replicas of %s cannot be changed now: %v", shown(sh), err) })
		return false
	}
	n.moves.Add(1)
	n.o.Log.Info().Str("shard", shown(sh)).Str("node", string(id)).Msg(done)
	return true
}

// keyKept is how long a key is remembered after its end, so that who uses it is told why it is refused.
const keyKept = 24 * time.Hour

// transferLeaderships hands every shard over that another node can lead, and whose voters may have another leader.
func (n *Node) transferLeaderships(ctx context.Context, may func(voters []peer.NodeID, said map[peer.NodeID]heartbeat) bool) {
	taken, said := map[peer.NodeID]int{}, n.heard()
	var all sync.WaitGroup
	for _, sh := range n.led() {
		var to peer.NodeID
		voters := n.replicas(sh).voters
		if !may(voters, said) {
			continue
		}
		for _, id := range voters {
			if id == n.self || !n.isCaughtUp(sh, id) || !said[id].mayLead() {
				continue
			}
			if better := n.isSettled(id); to == "" || better && !n.isSettled(to) || better == n.isSettled(to) && taken[id] < taken[to] {
				to = id
			}
		}
		if to != "" {
			taken[to]++
			all.Go(func() { n.transferLeadership(ctx, sh, to) })
		}
	}
	all.Wait()
}
