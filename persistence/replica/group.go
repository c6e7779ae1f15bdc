package replica

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"troupe/persistence/replica/internal/lag"
	"troupe/persistence/replica/internal/raftlog"
)

const (
	// entryChangesMax and entryBytesMax are how much is enough for one entry.
	entryChangesMax = 256
	entryBytesMax   = 256 << 10
	// messageBytesMax bounds the entries of one message, inflightMax the messages that nobody has answered.
	messageBytesMax = 1 << 20
	inflightMax     = 64
	// inboxBytesMax bounds the entries that wait to be handled; what is more is dropped, and sent again.
	inboxBytesMax = 16 << 20
)

// Group is this node's replica of some shards in a row. All methods are safe for concurrent use.
type Group struct {
	o     Options
	host  *Host
	log   *raftLog
	state *state
	stop  chan struct{} // closed by Stop

	raftMu sync.Mutex // held while a round steps the group
	raft   *raft.RawNode

	// What follows belongs to the round that steps the group.
	leading    uint64 // the term in which this node leads, 0 when it does not
	installing bool   // a copy of the shard is being put in place; nothing else happens meanwhile
	readsAsked uint64
	incoming   Replacement // the rows of a copy that Raft was told of
	lag        lag.Lag
	dropping   chan struct{} // of DropLog

	copying  atomic.Bool   // a copy is on its way, or being put in place
	epoch    atomic.Uint64 // in which changes are taken, 0 for none; follows mu
	proposed atomic.Uint64 // entries of writes, for Stats

	mu struct {
		sync.Mutex
		scheduled  bool
		stopped    bool
		ticks      int
		idle       int  // ticks since something happened last
		quiet      bool // all members have everything and know it, as far as this one knows
		lead       uint64
		peers      []uint64          // the other members
		campaign   time.Time         // when this node asks for an election, if there is no leader
		inbox      []*raftpb.Message // from other nodes, and of what was written
		inboxBytes int
		commands   []func()
		queue      []queued
		pending    []*answer     // proposed, in their order
		inFlight   int           // answers that are on their way
		patience   time.Time     // until when what is on its way is waited for, when stopped
		ended      chan struct{} // closed when the group is stopped and everything is answered
		term       uint64        // in which this node leads, as of the last round
		epoch      uint64        // 0: this node does not lead, or not yet
		revision   uint64        // of the next entry of writes
		told       uint64        // the epoch that the observer knows of
		renew      bool          // another epoch is to begin
		drained    chan struct{}
		held       chan struct{}            // of Hold; closed when nothing is on its way
		conf       map[string]chan struct{} // by changeContext.ID
		copied     map[uint64]uint64        // what the copies have that members were sent last, in this leadership
		wanted     uint64                   // the last entry that somebody waits for, 0 for none
		alone      bool                     // no other member has a vote
		confirmed  uint64                   // the last entry that is
		acked, own uint64                   // the last entry that another member has, and that this one has, in this leadership
	}
}

type queued struct {
	change Change
	epoch  uint64
}

// answer is changes whose outcome is known, or will be.
type answer struct {
	group    *Group
	changes  []Change
	epoch    uint64
	revision uint64 // of their entry, when they write
	read     uint64 // of the question whether this node leads, when they do not
	ready    bool
	err      error
	begins   uint64        // instead: the term in which the epoch begins
	then     chan struct{} // closed instead
}

// Start begins to take part in the group with what the store has of it, which may be
// nothing: then the leader sends it. started is called before anybody is told anything of the group, and may refuse; nil: nothing is.
// [Bootstrap] begins a group.
func (h *Host) Start(o Options, started func(*Group) error) (*Group, error) {
	o.ensureDefaults()
	g := &Group{o: o, host: h, stop: make(chan struct{})}
	g.mu.conf, g.mu.copied = map[string]chan struct{}{}, map[uint64]uint64{}
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start replica of shard %d: %w", o.Shard, err)
	}
	all := g.state.members.all()
	h.know(all...)
	g.notePeers()
	if started != nil {
		if err := started(g); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	h.mu.groups[o.Shard] = g // NB: from here on rounds step it
	h.mu.Unlock()
	if len(all) == 1 && all[0] == h.o.Node || o.Elect {
		g.mu.Lock()
		g.standLocked() // NB: the others may not have begun yet
		g.mu.Unlock()
		g.do(func() { _ = g.raft.Campaign() })
	}
	return g, nil
}

// standLocked sets the time of the next election.
func (g *Group) standLocked() {
	g.mu.campaign = time.Now().Add(g.host.o.Tick/20 + rand.N(g.host.o.Tick/5))
}

func (g *Group) start() (err error) {
	if err := checkEngine(&g.o); err != nil {
		return err
	}
	if g.state, err = openState(g.o.Store, g.o.StatePrefix, g.o.Fatal); err != nil {
		return err
	}
	g.state.told, g.state.configure = g.o.Follower, g.configure
	g.state.first, g.state.beside = g.o.Shard, g.o.Beside
	if g.log, err = openLog(g.o.Store, g.o.LogPrefix, g.state.published); err != nil {
		return err
	}
	g.raft, err = g.newRaft()
	return err
}

func (g *Group) newRaft() (*raft.RawNode, error) {
	return raft.NewRawNode(&raft.Config{
		ID: g.host.self, Storage: g.log, Applied: g.state.at.applied,
		ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		AsyncStorageWrites: true, MaxSizePerMsg: messageBytesMax, MaxInflightMsgs: inflightMax, MaxCommittedSizePerReady: 2 << 20,
		CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, StepDownOnRemoval: true,
		Logger: raftlog.New(g.o.Log),
	})
}

// do has f called in a round that steps the group.
func (g *Group) do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.commands = append(g.mu.commands, f)
	g.host.schedule(g)
}

// Stop leaves the group within a Tick: what is on its way then has an unknown outcome, and nothing is
// handed over; see [Group.Drain] and [Group.HandOver]. It may be called more than once.
func (g *Group) Stop() {
	ended := make(chan struct{})
	g.mu.Lock()
	if g.mu.stopped {
		g.mu.Unlock()
		return
	}
	g.mu.stopped, g.mu.patience = true, time.Now().Add(g.host.o.Tick)
	close(g.stop)
	g.mu.ended = ended // NB: what the rounds before wrote is answered before
	g.host.schedule(g)
	g.mu.Unlock()
	<-ended
}

// Append takes a change that was made in an epoch, or returns ErrNotLed; then Done is not called.
func (g *Group) Append(c Change, epoch uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if epoch == 0 || epoch != g.epoch.Load() || g.mu.stopped {
		return ErrNotLed
	}
	g.mu.queue = append(g.mu.queue, queued{c, epoch})
	g.host.schedule(g)
	return nil
}

// Epoch is the epoch in which this node may write, 0 when it does not lead.
func (g *Group) Epoch() uint64 { return g.epoch.Load() }

// publishLocked makes the epoch known in which changes are taken.
func (g *Group) publishLocked() {
	if g.mu.drained != nil {
		g.epoch.Store(0)
		return
	}
	g.epoch.Store(g.mu.epoch)
}

// Leader is the id of the node that leads as far as this one knows, "" when it knows none.
func (g *Group) Leader() string {
	return g.host.name(g.status().Lead)
}

func (g *Group) status() raft.BasicStatus {
	g.raftMu.Lock()
	defer g.raftMu.Unlock()
	return g.raft.BasicStatus()
}

// First is the first shard of the group, by which it is known.
func (g *Group) First() uint16 { return g.o.Shard }

// Last is the last shard of the group, as far as readers see.
func (g *Group) Last() uint16 {
	_, m := g.state.published()
	return m.last(g.o.Shard)
}

// divided is called when new groups are there.
func (g *Group) divided(beyond []span) {
	for _, of := range beyond {
		g.mu.Lock()
		led := g.mu.term != 0
		g.endLocked() // NB: those who are told of its end must not be told before that the new group is led
		g.mu.Unlock()
		g.o.Divided(of.first, of.last, led)
	}
}

// Applied is the last entry that the state contains. What was acknowledged before is in it on the leader.
func (g *Group) Applied() uint64 {
	at, _ := g.state.position()
	return at.applied
}

// Members returns the replicas of the group as this node knows them.
func (g *Group) Members() (all []Member) {
	_, m := g.state.published()
	for _, n := range m.all() {
		all = append(all, Member{Node: n, Voter: slices.Contains(m.Voters, n)})
	}
	return all
}

// Behind is how many entries of the log another node lacks, as it has said to this one, which
// leads. It is false for a node that has not said so lately.
func (g *Group) Behind(node string) (entries uint64, known bool) {
	g.raftMu.Lock()
	defer g.raftMu.Unlock()
	id, last := raftID(node), uint64(0)
	g.raft.WithProgress(func(of uint64, _ raft.ProgressType, p tracker.Progress) {
		switch of {
		case id:
			entries, known = p.Match, p.Match > 0 && g.host.alive(id)
		case g.host.self:
			last = p.Next - 1
		}
	})
	term := g.raft.BasicStatus().GetTerm()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.mu.inbox { // NB: an answer that confirms nothing waits there for the next tick
		if m.GetType() == raftpb.MsgAppResp && m.GetFrom() == id && m.GetTerm() == term && !m.GetReject() && g.host.alive(id) {
			entries, known = max(entries, m.GetIndex()), true
		}
	}
	return max(last, entries) - entries, known
}

// DropLog drops the entries of the log that the rows contain, also those that another member lacks: that one gets a copy. It closes
// done when they are gone.
func (g *Group) DropLog(done chan struct{}) { g.do(func() { g.dropping = done }) }

// Tell has the other members know soon what is confirmed.
func (g *Group) Tell() { g.do(g.tell) }

// AwaitApplied returns when the state contains an entry.
func (g *Group) AwaitApplied(ctx context.Context, index uint64) error {
	if g.Applied() < index {
		g.mu.Lock()
		g.mu.wanted = max(g.mu.wanted, index)
		g.host.schedule(g)
		g.mu.Unlock()
	}
	for {
		at, changed := g.state.position()
		if at.applied >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stop:
			return ErrNotLed
		}
	}
}

// Stats says what a group has done since it was started, and how far it is.
type Stats struct {
	Applied   uint64 // the last entry that the state contains
	Term      uint64 // Raft's
	LogBytes  int64
	Proposed  uint64 // entries of writes that this node made
	Stale     uint64 // entries that every node has passed over
	Installed uint64 // copies of the shard that were put in place
}

// Stats may be called at any time.
func (g *Group) Stats() Stats {
	return Stats{
		Applied: g.Applied(), Term: g.status().GetTerm(), LogBytes: g.log.size(), Proposed: g.proposed.Load(),
		Stale: g.state.stale.Load(), Installed: g.state.installed.Load(),
	}
}

// awaitWhile returns when a condition does not hold any more.
func (g *Group) awaitWhile(ctx context.Context, holds func() bool) error {
	ticker := time.NewTicker(g.host.o.Tick / 1000)
	defer ticker.Stop()
	for holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stop:
			return ErrNotLed
		}
	}
	return nil
}

// Drain takes no more changes, and returns when those it has are answered. resume takes
// changes again, if this node leads still, in another epoch: anyone who saw meanwhile that this one is over
// has left it, and what is still on its way in it stands before everything of the next.
func (g *Group) Drain(ctx context.Context) (resume func(), err error) {
	g.mu.Lock()
	if g.mu.drained != nil {
		g.mu.Unlock()
		return func() {}, ErrNotLed
	}
	drained := make(chan struct{})
	g.mu.drained = drained
	g.publishLocked()
	g.checkDrainedLocked()
	g.mu.Unlock()
	resume = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.drained = nil
		if g.mu.term != 0 {
			g.endLocked()
			g.mu.renew = true
			g.host.schedule(g)
		}
	}
	return resume, g.await(ctx, drained)
}

// Hold has changes wait in the queue, and returns when those that were begun before are answered: from then on the rows
// stay as they are, as long as this node leads in the epoch, until release is called. Nobody is refused, and the epoch
// goes on. ErrHeld: somebody else holds the group.
func (g *Group) Hold(ctx context.Context) (release func(), err error) {
	g.mu.Lock()
	if g.mu.held != nil {
		g.mu.Unlock()
		return func() {}, ErrHeld
	}
	held := make(chan struct{})
	g.mu.held = held
	g.checkDrainedLocked()
	g.mu.Unlock()
	release = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.mu.held == held {
			g.mu.held = nil
			g.host.schedule(g)
		}
	}
	return release, g.await(ctx, held)
}

func (g *Group) await(ctx context.Context, drained chan struct{}) error {
	select {
	case <-drained:
	case <-ctx.Done():
	case <-g.stop:
		return ErrNotLed
	}
	return ctx.Err()
}

func (g *Group) checkDrainedLocked() {
	if len(g.mu.pending) > 0 || g.mu.inFlight > 0 {
		return
	}
	closeOnce(g.mu.held)
	if len(g.mu.queue) == 0 {
		closeOnce(g.mu.drained)
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		if c != nil {
			close(c)
		}
	}
}

// HandOver gives the leadership to a node, or to the one that is least behind when node is empty: it takes no more
// changes, and Raft has the other one elected once that has the whole log. After an error this node may lead still, and
// takes changes again.
func (g *Group) HandOver(ctx context.Context, node string) error {
	if g.Epoch() == 0 {
		return ErrNotLed
	}
	if node == "" {
		node = g.leastBehind()
	}
	if lacks, known := g.Behind(node); !known || lacks > entryChangesMax {
		return fmt.Errorf("hand over to node %q, which is far behind", node)
	}
	resume, err := g.Drain(ctx)
	defer resume()
	if err != nil {
		return err
	}
	term := g.status().GetTerm()
	g.do(func() {
		if g.raft.BasicStatus().RaftState == raft.StateLeader { // NB: the one that leads now would be told
			g.raft.TransferLeader(raftID(node))
		}
	})
	ctx, cancel := context.WithTimeout(ctx, g.host.o.Tick)
	defer cancel()
	leads := func() bool { s := g.status(); return s.RaftState == raft.StateLeader && s.GetTerm() == term }
	if err := g.awaitWhile(ctx, leads); err != nil {
		return fmt.Errorf("node %q was not elected: %w", node, err)
	}
	return nil
}

// leastBehind is the voter that lacks the fewest entries, "" when none has said what it has.
func (g *Group) leastBehind() (node string) {
	var fewest uint64
	for _, m := range g.Members() {
		lacks, known := g.Behind(m.Node)
		if m.Voter && m.Node != g.host.o.Node && known && (node == "" || lacks < fewest) {
			node, fewest = m.Node, lacks
		}
	}
	return node
}
