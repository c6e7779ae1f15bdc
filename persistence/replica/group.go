package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// groupChangesMax and groupBytesMax are how much is enough for one entry.
	groupChangesMax = 256
	groupBytesMax   = 256 << 10
	// proposalsMax is how many entries may wait for a majority.
	proposalsMax = 8
	// transitionsMax is how many changes of leadership Raft may report before it waits.
	transitionsMax = 64
)

// Group is this node's replica of one shard. All methods are safe for concurrent use.
type Group struct {
	o       Options
	raft    *raft.Raft
	log     *entries
	state   *state
	network *transport

	wake      chan struct{}  // has an entry while the proposer has something to look at
	proposals chan proposal  // to the finisher
	failed    chan uint64    // epochs that end while this node leads; to followLeadership
	leading   chan bool      // from Raft
	stop      chan struct{}  // closed by Stop
	done      sync.WaitGroup // of all goroutines, which may wait for an answer of Raft
	stopOnce  sync.Once
	proposed  atomic.Uint64 // entries of writes, for Stats
	epoch     atomic.Uint64 // in which changes are taken, 0 for none; follows mu

	mu struct {
		sync.Mutex
		epoch    uint64 // 0: this node does not lead, or not yet
		term     uint64 // Raft's, in which epoch began
		revision uint64 // of the next entry of writes
		queue    []queued
		inFlight int           // changes that were taken from the queue and are not done
		drained  chan struct{} // closed when nothing is queued or in flight; nil unless handing over
		stopped  bool          // nothing is added to done any more
	}
}

type queued struct {
	change Change
	epoch  uint64
}

// proposal is an entry on its way, or a question whether this node leads still.
type proposal struct {
	changes []Change
	future  raft.Future
	epoch   uint64
	term    uint64
	asked   uint64 // on the transport's clock, when the changes were taken
}

// Start begins to take part in the group with what the store has of it, which may be
// nothing: then the leader sends it. [Bootstrap] begins a group.
func Start(o Options) (*Group, error) {
	o.ensureDefaults()
	g := &Group{
		o: o, wake: make(chan struct{}, 1), proposals: make(chan proposal, proposalsMax), failed: make(chan uint64, 2*proposalsMax),
		leading: make(chan bool, transitionsMax), stop: make(chan struct{}),
	}
	if err := g.start(); err != nil {
		if g.network == nil && o.Streams != nil {
			err = errors.Join(err, o.Streams.Close()) // NB: else nobody could start the group again
		}
		return nil, fmt.Errorf("start replica of shard %d: %w", o.Shard, err)
	}
	return g, nil
}

func (g *Group) start() (err error) {
	o := &g.o
	if g.state, err = openState(o.Store, o.StatePrefix, o.Fatal); err != nil {
		return err
	}
	g.state.told = o.Follower
	saved := newSnapshots(o.Store, o.StatePrefix, g.state)
	if err = saved.check(); err != nil {
		return err
	}
	if g.log, err = openEntries(o.Store, o.LogPrefix, g.watchWrite); err != nil {
		return err
	}
	saved.log = g.log
	if err = saved.raise(); err != nil {
		return err
	}
	logger := raftLog(o.Log)
	g.network = newTransport(o, logger)
	g.raft, err = raft.NewRaft(g.config(logger), g.state, g.log, newVotes(o.Store, o.LogPrefix, g.watchWrite), saved, g.network)
	if err != nil {
		return errors.Join(err, g.network.Close())
	}
	leads := g.leadsIn
	g.network.leads.Store(&leads)
	for _, loop := range []func(){g.proposeLoop, g.finishLoop, g.followLeadership, g.trimLoop} {
		g.done.Go(loop)
	}
	if all := g.servers(); len(all) == 1 && all[0].ID == raft.ServerID(o.Node) {
		g.done.Go(g.standAtOnce)
	}
	return nil
}

// standAtOnce has this node, which is the only one of the group, elected without the time in which a
// follower waits for a leader.
func (g *Group) standAtOnce() {
	if g.raft.State() != raft.Follower {
		return
	}
	select {
	case g.network.requests <- raft.RPC{Command: g.timeoutNow(), RespChan: make(chan raft.RPCResponse, 1)}:
	case <-g.stop:
	}
}

// timeoutNow is the message that has a node stand for election.
func (g *Group) timeoutNow() *raft.TimeoutNowRequest {
	return &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(g.o.Node), Addr: []byte(g.o.Node),
	}}
}

func (g *Group) config(logger raftLogger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.o.Node)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = g.o.Tick, g.o.Tick, g.o.Tick/2
	c.MaxAppendEntries = 16 // of up to groupBytesMax each, but for a single change that is larger
	c.ShutdownOnRemove = false
	c.NoSnapshotRestoreOnStart = true // the rows are there
	c.NoLegacyTelemetry = true
	c.SnapshotInterval, c.SnapshotThreshold = time.Hour, 1<<62 // trimLoop asks for them
	c.NotifyCh = g.leading
	c.Logger = logger
	return c
}

// watchWrite has Options.TooSlow called when a write of the log takes too long.
func (g *Group) watchWrite() (end func()) {
	if g.o.TooSlow == nil {
		return func() {}
	}
	w := &writeWatch{left: watchSteps}
	w.mu.Lock() // NB: the first step may come at once
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(g.o.LogWriteMax/watchSteps, func() { w.step(g) })
	return w.end
}

// watchSteps is how many times a write is looked at: a process that was stopped for long finds
// that one of them is over, and not all.
const watchSteps = 8

type writeWatch struct {
	timer *time.Timer
	mu    sync.Mutex
	left  int // 0: the write is over, or was too slow
}

func (w *writeWatch) step(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return
	}
	if w.left--; w.left == 0 {
		go g.o.TooSlow()
		return
	}
	w.timer.Reset(g.o.LogWriteMax / watchSteps)
}

func (w *writeWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
	w.timer.Stop()
}

// Stop leaves the group at once: what is on its way has an unknown outcome, and nothing is
// handed over; see [Group.Drain] and [Group.HandOver]. It may be called more than once.
//
// NB: Raft forgets to answer entries that it has committed, and not applied, when it is shut down. So
// it goes on, without other nodes, until it has answered all: it applies them, or leads no more.
func (g *Group) Stop() {
	g.stopOnce.Do(func() {
		g.mu.Lock()
		g.mu.stopped = true
		g.mu.Unlock()
		close(g.stop)
		_ = g.network.Close()
		g.done.Wait()
		_ = g.raft.Shutdown().Error() // has none
	})
}

// Append takes a change that was made in an epoch, or returns ErrNotLed; then Done is not called.
func (g *Group) Append(c Change, epoch uint64) error {
	g.mu.Lock()
	if epoch == 0 || epoch != g.epoch.Load() {
		g.mu.Unlock()
		return ErrNotLed
	}
	g.mu.queue = append(g.mu.queue, queued{c, epoch})
	first := len(g.mu.queue) == 1
	g.mu.Unlock()
	if first {
		g.signal()
	}
	return nil
}

func (g *Group) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
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
	_, id := g.raft.LeaderWithID()
	return string(id)
}

// Applied is the last entry that the state contains. What was acknowledged before is in it on the leader.
func (g *Group) Applied() uint64 {
	at, _ := g.state.position()
	return at.applied
}

// Behind is how many entries of the log another node lacks, as it has said to this one, which
// leads. It is false for a node that has not said so within a Tick.
func (g *Group) Behind(node string) (entries uint64, known bool) {
	matched, known := g.network.matchedIn(g.raft.CurrentTerm(), raft.ServerID(node), g.o.Tick)
	return max(g.raft.LastIndex(), matched) - matched, known
}

// leadsIn reports whether this node leads another one in a term.
func (g *Group) leadsIn(term uint64, id raft.ServerID) bool {
	return g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term &&
		slices.ContainsFunc(g.servers(), func(s raft.Server) bool { return s.ID == id })
}

// AwaitApplied returns when the state contains an entry.
func (g *Group) AwaitApplied(ctx context.Context, index uint64) error {
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
	at, _ := g.state.position()
	bytes, _ := g.log.size()
	return Stats{
		Applied: at.applied, Term: g.raft.CurrentTerm(), LogBytes: bytes, Proposed: g.proposed.Load(),
		Stale: g.state.stale.Load(), Installed: g.state.installed.Load(),
	}
}

// awaitWhile returns when a condition does not hold any more.
func (g *Group) awaitWhile(ctx context.Context, holds func() bool) error {
	ticker := time.NewTicker(g.o.Tick / 1000)
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

// trimLoop keeps the log short.
func (g *Group) trimLoop() {
	ticker := time.NewTicker(g.o.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-g.stop:
			return
		}
		bytes, trailing := g.log.size()
		if bytes <= g.o.LogBytesMax {
			continue
		}
		reloaded := g.raft.ReloadableConfig()
		reloaded.TrailingLogs = max(trailing, 1)
		err := g.raft.ReloadConfig(reloaded)
		if err == nil {
			err = g.raft.Snapshot().Error()
		}
		if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && !errors.Is(err, raft.ErrRaftShutdown) {
			g.o.Log.Warn().Err(err).Uint16("shard", g.o.Shard).Msg("the log of a shard could not be shortened")
		}
	}
}
