package replica

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"troupe/persistence/replica/internal/entry"
	"troupe/persistence/replica/internal/lag"
)

// step gives Raft everything that has come for a group, and takes what it wants to have done.
func (g *Group) step(r *round) {
	g.mu.Lock()
	g.mu.scheduled = false
	if g.installing || g.mu.stopped && g.mu.ended == nil {
		g.mu.Unlock()
		return // it is scheduled when the copy is in place, or has ended
	}
	inbox, commands, ticks, wanted := g.mu.inbox, g.mu.commands, g.mu.ticks, g.mu.wanted
	if len(g.mu.queue) > 0 || !lag.OnlyHeartbeats(inbox) {
		g.mu.idle = 0
	}
	g.mu.inbox, g.mu.commands, g.mu.ticks, g.mu.inboxBytes = nil, nil, 0, 0
	g.mu.Unlock()
	g.raftMu.Lock()
	defer g.raftMu.Unlock()
	for _, m := range inbox {
		g.take(m)
	}
	for range ticks {
		g.raft.Tick()
	}
	if ticks > 0 {
		defer g.note()
		g.tell()
	}
	for _, f := range commands {
		f()
	}
	g.renew(r)
	g.propose()
	g.handle(r, g.raft.Ready())
	g.apply(r, g.lag.Due(ticks > 0, g.leading != 0 || wanted > g.state.at.applied))
	if g.incoming != nil { // Raft did not want it
		g.incoming.Abort()
		g.incoming = nil
		g.copying.Store(false)
	}
	if g.dropping != nil || ticks > 0 && g.log.outgrown(g.state.everywhere, g.o.LogBytesMax) {
		r.trims = append(r.trims, trimming{g, min(g.raft.BasicStatus().Applied, g.needed()), g.dropping != nil})
	}
	if g.dropping != nil {
		r.answers, g.dropping = append(r.answers, answer{group: g, then: g.dropping}), nil
	}
	g.mu.Lock()
	stopped := g.mu.stopped && !g.installing && (g.leading == 0 || len(g.mu.pending) == 0 || time.Now().After(g.mu.patience))
	g.mu.Unlock()
	if stopped || g.leading == 0 {
		g.fail(r, stopped)
	}
}

// tick gives the group one tick, unless nothing happens in it and everybody is alive whom it needs. Where the leader is
// not alive it is forgotten, and this node stands for election. It returns the other members.
func (g *Group) tick() (peers []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	alive := g.mu.lead != 0 && g.host.alive(g.mu.lead)
	if g.mu.lead == g.host.self {
		alive = !slices.ContainsFunc(g.mu.peers, func(id uint64) bool { return !g.host.alive(id) })
	}
	switch lead := g.mu.lead; {
	case alive && g.mu.quiet && g.mu.idle >= idleTicks:
		return g.mu.peers
	case !alive && lead != 0 && lead != g.host.self:
		g.mu.commands = append(g.mu.commands, func() { g.forget(lead) })
	case lead == 0 && !g.mu.campaign.IsZero() && time.Now().After(g.mu.campaign):
		g.standLocked()
		g.mu.commands = append(g.mu.commands, func() { _ = g.raft.Campaign() })
	}
	g.mu.idle++
	g.mu.ticks++
	g.host.schedule(g)
	return g.mu.peers
}

// forget has Raft know no leader when a node leads no more, so that it agrees to another one.
func (g *Group) forget(lead uint64) {
	if s := g.raft.BasicStatus(); s.Lead != lead || s.RaftState == raft.StateLeader {
		return
	}
	_ = g.raft.ForgetLeader()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.standLocked()
}

// note remembers what tick needs to know.
func (g *Group) note() {
	s := g.raft.BasicStatus()
	quiet := s.Lead != 0
	if s.RaftState == raft.StateLeader {
		last := uint64(0)
		g.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
			if id == g.host.self {
				last = p.Next - 1
			}
		})
		g.raft.WithProgress(func(_ uint64, _ raft.ProgressType, p tracker.Progress) { quiet = quiet && p.Match == last })
		quiet = quiet && s.GetCommit() == last
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.RaftState == raft.StateLeader && g.mu.epoch == 0 { // NB: Raft takes no entry, also not that of an epoch, until a hand-over has failed
		quiet = false
	}
	g.mu.quiet = quiet && len(g.mu.pending) == 0 && len(g.mu.queue) == 0
	if !g.mu.quiet {
		g.mu.idle = 0
	}
}

// notePeers has streams to the other members opened, which say whether they are alive.
func (g *Group) notePeers() {
	var peers []uint64
	for _, node := range g.state.members.all() {
		if node != g.host.o.Node {
			peers = append(peers, raftID(node))
			g.host.mesh.Open(node)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.peers, g.mu.alone = peers, len(g.state.members.Voters) <= 1
}

// take gives Raft one message. Those that it could panic at were refused when they were read.
func (g *Group) take(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgApp && len(m.GetEntries()) > 0 && g.host.o.Store.Refusal() != nil {
		return // NB: Raft could not take them back; the leader sends them again
	}
	if m.GetType() == raftpb.MsgHeartbeat && m.GetCommit() > g.log.last() {
		if g.log.last() > 0 { // else it has joined again, and the message is of before
			g.host.older.Do(func() {
				g.host.o.Log.Error().Msg("the store lacks what this node has confirmed, as an older copy of it would: stop the node, remove it with --lost, and have an empty home join")
			})
		}
		return // NB: Raft would panic
	}
	if t := m.GetType(); (t == raftpb.MsgPreVote || t == raftpb.MsgVote) && m.GetFrom() == g.raft.BasicStatus().Lead {
		g.forget(m.GetFrom()) // it leads no more, or it would not ask
	}
	_ = g.raft.Step(m)
}

// renew begins another epoch where one was ended that this node still leads in.
func (g *Group) renew(r *round) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.renew || g.leading == 0 {
		return
	}
	g.refuseLocked(r) // NB: it may be built on what was read in the old one
	if g.raft.Propose(entry.Begin()) == nil {
		g.mu.renew = false
	}
}

// propose makes entries of what is queued.
func (g *Group) propose() {
	for g.leading != 0 {
		a, data := g.gather()
		switch {
		case a == nil:
			return
		case data == nil && g.raft.BasicStatus().RaftState != raft.StateLeader:
			return // NB: Raft would ask the one that leads now; this step finds out that it is another one
		case data == nil:
			g.readsAsked++
			a.read = g.readsAsked
			g.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, a.read))
		case g.raft.Propose(data) != nil:
			return // Raft takes nothing while it hands over; NB: gather gives the same again
		default:
			g.proposed.Add(1)
		}
		g.mu.Lock()
		if data != nil {
			g.mu.revision++
		}
		rest := copy(g.mu.queue, g.mu.queue[len(a.changes):])
		clear(g.mu.queue[rest:])
		g.mu.queue = g.mu.queue[:rest]
		g.mu.pending = append(g.mu.pending, a)
		g.mu.Unlock()
	}
}

// gather returns the next changes of the queue, and the data of their entry, which is nil when they write nothing.
func (g *Group) gather() (a *answer, data []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for ; n < len(g.mu.queue) && n < entryChangesMax && g.mu.queue[n].epoch == g.mu.epoch && g.mu.held == nil; n++ {
		repr := len(g.mu.queue[n].change.Repr())
		if n > 0 && size+repr > entryBytesMax {
			break
		}
		size += repr
	}
	if n == 0 {
		return nil, nil
	}
	a = &answer{group: g, epoch: g.mu.epoch, revision: g.mu.revision, changes: make([]Change, n)}
	for i := range n {
		a.changes[i] = g.mu.queue[i].change
	}
	if size == 0 {
		return a, nil
	}
	for _, c := range a.changes {
		if repr := c.Repr(); len(repr) > 0 {
			g.host.packer.Add(repr)
		}
	}
	return a, g.host.packer.Data(a.epoch, a.revision, everywhere(g.raft))
}

// handle does what Raft wants to have done, or puts it into the round.
func (g *Group) handle(r *round, ready raft.Ready) {
	if ready.SoftState != nil {
		g.follow(ready.SoftState)
	}
	if commit := ready.HardState.GetCommit(); commit != 0 {
		g.mu.Lock()
		g.mu.confirmed = commit
		g.mu.Unlock()
	}
	for _, s := range ready.ReadStates {
		g.read(r, binary.BigEndian.Uint64(s.RequestCtx))
	}
	for _, m := range ready.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			if !raft.IsEmptySnap(m.GetSnapshot()) {
				g.apply(r, g.lag.Take()) // NB: before the copy that replaces it
				r.installs = append(r.installs, g.install(m))
				continue
			}
			if g.log.note(m) {
				continue
			}
			r.appends = append(r.appends, appending{g, m})
			r.synced = r.synced || len(m.GetResponses()) > 0
		case raft.LocalApplyThread:
			g.lag.Apply(m)
			if lag.ChangesGroup(m) {
				g.tell()
			}
		default:
			if !g.lag.Withhold(m) {
				g.deliver(m)
			}
		}
	}
}

// apply has confirmed entries applied in a round.
func (g *Group) apply(r *round, m *raftpb.Message) {
	if m != nil {
		r.applies = append(r.applies, applying{group: g, m: m})
	}
}

// tell has members told what is confirmed that was put off.
func (g *Group) tell() {
	for _, m := range g.lag.Told() {
		g.deliver(m)
	}
}

// follow notes who leads.
func (g *Group) follow(s *raft.SoftState) {
	g.leading = 0
	g.lag.Forget()
	if s.RaftState == raft.StateLeader {
		g.leading = g.raft.BasicStatus().GetTerm()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.quiet, g.mu.idle, g.mu.acked, g.mu.own = false, 0, 0, 0
	clear(g.mu.copied)
	if g.mu.lead = s.Lead; s.Lead != 0 {
		g.mu.campaign = time.Time{}
	}
	if g.mu.term = g.leading; g.leading == 0 {
		g.mu.renew = false
		g.endLocked()
	}
}

// endLocked takes no more changes.
func (g *Group) endLocked() {
	g.mu.epoch = 0
	g.mu.quiet, g.mu.idle = false, 0
	g.publishLocked()
	if epoch := g.mu.told; epoch != 0 {
		g.mu.told = 0
		g.host.notices.Add(func() { g.o.Observer.Ended(epoch) })
	}
}

// configure has Raft take a change of the members, of which the state says later who they are.
func (g *Group) configure(change raftpb.ConfChangeI) *raftpb.ConfState {
	g.raftMu.Lock()
	defer g.raftMu.Unlock()
	return g.raft.ApplyConfChange(change)
}

// settle finds the answers to what is on its way into the rows.
func (g *Group) settle(a *applying) {
	if len(a.conf) > 0 {
		g.host.know(a.members.all()...)
		g.notePeers()
		g.do(g.askAgain)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, end := range a.ends {
		if end.begins {
			a.answers = append(a.answers, answer{group: g, begins: end.term, epoch: end.epoch})
			continue
		}
		i := slices.IndexFunc(g.mu.pending, func(p *answer) bool { return p.read == 0 && p.epoch == end.epoch && p.revision == end.revision })
		if i >= 0 {
			g.mu.pending[i].ready = true
			g.answerLocked(&a.answers)
		}
	}
}

// askAgain asks once more whether this node leads, if somebody waits for that: with other members, those who were asked
// may count no more.
func (g *Group) askAgain() {
	g.mu.Lock()
	waits := slices.ContainsFunc(g.mu.pending, func(p *answer) bool { return p.read != 0 && !p.ready })
	g.mu.Unlock()
	if waits && g.raft.BasicStatus().RaftState == raft.StateLeader {
		g.readsAsked++
		g.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, g.readsAsked))
	}
}

// answerLocked moves what has its outcome, and nothing before it without one.
func (g *Group) answerLocked(to *[]answer) {
	n := 0
	for ; n < len(g.mu.pending) && g.mu.pending[n].ready; n++ {
		*to = append(*to, *g.mu.pending[n])
	}
	g.mu.pending = slices.Delete(g.mu.pending, 0, n)
	g.mu.inFlight += n
}

// read is called when this node led still after a question.
func (g *Group) read(r *round, asked uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.mu.pending {
		if p.read != 0 && p.read <= asked {
			p.ready = true
		}
	}
	g.answerLocked(&r.answers)
}

// fail answers everything that this node cannot do as it leads no more, or takes part no more.
func (g *Group) fail(r *round, stopped bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if stopped {
		g.endLocked()
		g.host.mu.Lock()
		if g.host.mu.groups[g.o.Shard] == g {
			delete(g.host.mu.groups, g.o.Shard)
		}
		g.host.mu.Unlock()
	}
	for _, p := range g.mu.pending {
		if p.err = ErrNotLed; p.read == 0 {
			p.err = ErrLost
		}
		r.answers = append(r.answers, *p)
	}
	g.mu.inFlight += len(g.mu.pending)
	g.mu.pending = nil
	g.refuseLocked(r)
	if stopped && g.mu.ended != nil {
		r.answers = append(r.answers, answer{group: g, then: g.mu.ended})
		g.mu.ended = nil
	}
}

// refuseLocked answers what is queued: nothing of it was begun.
func (g *Group) refuseLocked(r *round) {
	if len(g.mu.queue) == 0 {
		return
	}
	a := answer{group: g, err: ErrNotLed}
	for _, q := range g.mu.queue {
		a.changes = append(a.changes, q.change)
	}
	r.answers = append(r.answers, a)
	g.mu.queue = nil
	g.mu.inFlight++
}

// applied is called when what was applied is visible, or will not be, as the store was closed.
func (g *Group) applied(a *applying, err error) {
	if err != nil {
		for _, done := range a.answers {
			done.answer(fmt.Errorf("%w: %w", ErrLost, err))
		}
		return
	}
	g.state.publish(a.at, a.members)
	g.divided(a.splits)
	if len(a.reprs) > 0 {
		g.state.told.Changed(a.reprs)
	}
	for _, done := range a.answers {
		done.answer(nil)
	}
	for _, m := range a.m.GetResponses() {
		g.deliver(m)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.wanted <= a.at.applied {
		g.mu.wanted = 0
	}
	for _, id := range a.conf { // NB: Raft takes the next change once it knows that this one is applied
		if done := g.mu.conf[id]; done != nil {
			close(done)
			delete(g.mu.conf, id)
		}
	}
}

// answer tells those who made changes how it ended.
func (a *answer) answer(err error) {
	g := a.group
	if a.then != nil {
		close(a.then)
		return
	}
	if a.begins != 0 && err == nil {
		g.begin(a.epoch, a.begins)
	}
	if a.begins != 0 {
		return
	}
	for _, c := range a.changes {
		c.Done(cmp.Or(a.err, err))
	}
	g.mu.Lock()
	g.mu.inFlight--
	g.checkDrainedLocked()
	g.mu.Unlock()
}

// begin is called when the entry that began a leadership is visible.
func (g *Group) begin(epoch, term uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.term != term || g.mu.stopped {
		return
	}
	g.mu.epoch, g.mu.revision, g.mu.told = epoch, 0, epoch
	g.publishLocked()
	last := g.Last()
	g.host.notices.Add(func() { g.o.Observer.Led(epoch, last) })
}

// appended is called when what was written of the log is safe.
func (g *Group) appended(m *raftpb.Message) {
	for _, answer := range m.GetResponses() {
		g.deliver(answer)
	}
}
