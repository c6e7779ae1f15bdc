package replica

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/time/rate"

	"troupe/persistence/replica/internal/entry"
	"troupe/persistence/replica/internal/mesh"
	"troupe/persistence/replica/internal/notices"
)

// Host runs the groups of all shards of a node: it alone steps them, sends what they say to another node in one stream,
// and writes what they have for the disk in one batch.
type Host struct {
	o    HostOptions
	self uint64
	mesh *mesh.Mesh

	conns     mesh.Conns     // of copies
	receiving chan struct{}  // has an entry while a copy of a shard is taken
	pace      *rate.Limiter  // of copies
	older     rate.Sometimes // complaints that the store is older than the node
	wake      chan struct{}
	stop      chan struct{}
	done      sync.WaitGroup

	notices *notices.Queue
	probing atomic.Bool  // a write of probeDisk is on its way
	synced  atomic.Int64 // when the last write that is safe was begun
	packer  entry.Packer // belongs to the round

	mu struct {
		sync.Mutex
		groups map[uint16]*Group
		names  map[uint64]string    // of nodes, by the number that Raft has for them
		heard  map[uint64]time.Time // when a node has said last that it is alive
		runs   map[uint64]uint64    // the number of a node's run
		ready  []*Group             // have something to do; each once
	}
}

// NewHost returns a host without groups. Close ends it.
func NewHost(o HostOptions) *Host {
	o.Tick = cmp.Or(o.Tick, time.Second)
	h := &Host{o: o, self: raftID(o.Node), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	h.receiving, h.pace = make(chan struct{}, 1), rate.NewLimiter(copyRate, copyBurst)
	h.older = rate.Sometimes{Interval: time.Minute}
	h.mu.groups, h.mu.names = map[uint16]*Group{}, map[uint64]string{}
	h.mu.heard, h.mu.runs = map[uint64]time.Time{}, map[uint64]uint64{}
	h.synced.Store(time.Now().UnixNano())
	h.notices = notices.NewQueue()
	h.mesh = mesh.New(mesh.Options{
		Node: o.Node, Run: rand.Uint64() | 1, Streams: o.Messages, Ping: o.Tick / pingTicks,
		Healthy: h.healthy, Met: h.meet, Lost: h.unreachable, Log: o.Log,
	})
	for _, loop := range []func(){h.rounds, h.tick, h.acceptCopies, func() { h.notices.Run(h.stop) }} {
		h.done.Go(loop)
	}
	return h
}

// Close ends the host, whose groups are stopped.
func (h *Host) Close() {
	close(h.stop)
	_ = h.o.Copies.Close()
	h.conns.Close()
	h.mesh.Close()
	h.done.Wait()
}

// know remembers the ids of nodes.
func (h *Host) know(nodes ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range nodes {
		h.mu.names[raftID(n)] = n
	}
}

// name returns the id of a node, "" when it is not known.
func (h *Host) name(id uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.names[id]
}

func (h *Host) group(shard uint16) *Group {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.groups[shard]
}

func (h *Host) groups() []*Group {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.mu.groups))
}

// schedule has a group stepped in the next round. g.mu is held.
func (h *Host) schedule(g *Group) {
	if g.mu.scheduled {
		return
	}
	g.mu.scheduled = true
	h.mu.Lock()
	h.mu.ready = append(h.mu.ready, g)
	first := len(h.mu.ready) == 1
	h.mu.Unlock()
	if first {
		mesh.Signal(h.wake)
	}
}

// rounds is the scheduler: each round steps all groups that have something to do.
func (h *Host) rounds() {
	var groups []*Group
	for {
		select {
		case <-h.wake:
		case <-h.stop:
			return
		}
		// NB: those who can run and are about to ask for something do so before the round begins. That makes rounds as
		// large as the processors are busy, and costs nothing when they are not.
		runtime.Gosched()
		h.mu.Lock()
		groups, h.mu.ready = h.mu.ready, groups[:0]
		h.mu.Unlock()
		r := &round{host: h, begun: time.Now()}
		for _, g := range groups {
			g.step(r)
		}
		clear(groups)
		r.end()
	}
}

// tick advances the time of the groups that need it.
func (h *Host) tick() {
	ticker := time.NewTicker(h.o.Tick / raftTicks)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
		case <-h.stop:
			return
		}
		if n%(raftTicks/pingTicks) == 0 {
			h.probeDisk()
		}
		members := map[uint64]bool{}
		for _, g := range h.groups() {
			for _, id := range g.tick() {
				members[id] = true
			}
		}
		if n%raftTicks == 0 {
			h.mesh.Keep(func(node string) bool {
				id := raftID(node)
				return members[id] || h.heardWithin(id, 10*h.o.Tick)
			})
		}
	}
}

// probeDisk writes something that has to be safe when nothing was written for some time.
func (h *Host) probeDisk() {
	begun := time.Now()
	if h.probing.Load() || begun.Sub(time.Unix(0, h.synced.Load())) < h.o.Tick/5 {
		return
	}
	h.probing.Store(true)
	h.o.Store.Append(true, func(b Batch) { b.Set(h.o.Probe, binary.BigEndian.AppendUint64(nil, uint64(begun.Unix()))) }, func(error) {}, func(err error) {
		h.probing.Store(false)
		if err == nil {
			h.noteSync(begun)
		}
	})
}

func (h *Host) noteSync(begun time.Time) {
	for at := begun.UnixNano(); ; {
		before := h.synced.Load()
		if before >= at || h.synced.CompareAndSwap(before, at) {
			return
		}
	}
}

// healthy reports whether the disk takes writes.
func (h *Host) healthy() bool { return time.Since(time.Unix(0, h.synced.Load())) < h.o.Tick*3/5 }

// hear notes that a node is alive.
func (h *Host) hear(node uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.heard[node] = time.Now()
}

// alive reports whether a node has said lately that it is alive.
func (h *Host) alive(node uint64) bool {
	return node == h.self || h.heardWithin(node, h.o.Tick/2)
}

func (h *Host) heardWithin(node uint64, within time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.mu.heard[node]) < within
}

// meet notes which run of a node has opened a stream. In another one it has forgotten that it leads
// (persistence/PROMISES.md, "F20").
func (h *Host) meet(node string, run uint64) mesh.Inbound {
	id := raftID(node)
	h.mu.Lock()
	h.mu.names[id] = node
	other := h.mu.runs[id] != 0 && h.mu.runs[id] != run
	if h.mu.runs[id] != run { // NB: it leads perhaps, and must not be taken for dead before it can have said that it is alive
		h.mu.heard[id] = time.Now()
	}
	h.mu.runs[id] = run
	h.mu.Unlock()
	for _, g := range h.groups() {
		g.do(func() {
			g.mu.Lock()
			g.mu.idle = 0
			g.mu.Unlock()
			if other {
				g.forget(id)
			}
		})
	}
	return &inbound{h, id}
}

// inbound takes what a node says.
type inbound struct {
	host *Host
	from uint64
}

func (in *inbound) Alive() { in.host.hear(in.from) }

// Unwell: a node whose disk does not take writes leads no more, and what was asked of it has no answer.
func (in *inbound) Unwell() {
	h := in.host
	h.mu.Lock()
	node := h.mu.names[in.from]
	delete(h.mu.heard, in.from)
	h.mu.Unlock()
	if h.o.Lost != nil {
		h.o.Lost(node)
	}
}

func (in *inbound) Receive(shard uint16, m *raftpb.Message, bytes int) {
	m.From, m.To = &in.from, &in.host.self
	if g := in.host.group(shard); g != nil {
		g.receive(m, bytes)
	}
}

// unreachable tells all groups that what was sent to a node was lost.
func (h *Host) unreachable(node string) {
	if h.o.Lost != nil {
		h.o.Lost(node)
	}
	id := raftID(node)
	for _, g := range h.groups() {
		g.do(func() { g.raft.ReportUnreachable(id) })
	}
}

// receive takes a message of another node. A message of more than inboxBytesMax, as of a published home, is taken when nothing waits.
func (g *Group) receive(m *raftpb.Message, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped || g.mu.inboxBytes > 0 && g.mu.inboxBytes+bytes > inboxBytesMax && len(m.GetEntries()) > 0 {
		return
	}
	g.mu.inboxBytes += bytes
	g.mu.inbox = append(g.mu.inbox, m)
	if g.urgentLocked(m) {
		g.host.schedule(g)
	}
}

// round is what the groups that were stepped have for the disk and for other nodes.
type round struct {
	host     *Host
	appends  []appending
	applies  []applying
	answers  []answer
	trims    []trimming
	installs []func() // put copies in place, once what is before them is on its way
	synced   bool
	begun    time.Time
}

// appending is entries of a group's log, its term and its vote on their way to the disk.
type appending struct {
	group *Group
	m     *raftpb.Message
}

// trimming is a group whose log has more than it needs. Raft may look at what it does not know to be applied.
type trimming struct {
	group   *Group
	applied uint64
	all     bool // that is applied goes
}

// end sends and writes what a round has.
func (r *round) end() {
	r.host.mesh.Flush()
	if len(r.appends) > 0 || len(r.applies) > 0 || len(r.answers) > 0 || len(r.trims) > 0 {
		r.host.o.Store.Append(r.synced, r.fill, r.visible, r.durable)
	}
	for _, install := range r.installs {
		r.host.done.Go(install)
	}
}

// fill writes logs before states: a state never has more than the log after a crash.
func (r *round) fill(b Batch) {
	for _, a := range r.appends {
		a.group.log.append(b, a.m)
	}
	for i := range r.applies {
		a := &r.applies[i]
		a.group.state.fill(b, a)
		a.group.settle(a)
	}
	for _, a := range r.answers {
		a.group.state.touch(b)
	}
	for _, t := range r.trims {
		t.group.log.trim(b, t.applied, t.group.state.everywhere, t.group.o.LogBytesMax, t.all)
	}
}

// visible is called when readers see what was applied.
func (r *round) visible(err error) {
	for i := range r.applies {
		r.applies[i].group.applied(&r.applies[i], err)
	}
	for _, a := range r.answers {
		a.answer(nil)
	}
}

// durable is called when the logs are safe.
func (r *round) durable(err error) {
	if err != nil {
		return // the store was closed
	}
	if r.synced {
		r.host.noteSync(r.begun)
	}
	for _, a := range r.appends {
		a.group.appended(a.m)
	}
	r.host.mesh.Flush()
}

// urgentLocked reports whether something may wait for a message of the inbox. One that says only what a node has written
// or applied, and confirms nothing, is read with the next one, at the next tick at the latest.
func (g *Group) urgentLocked(m *raftpb.Message) (urgent bool) {
	switch kind := m.GetType(); {
	case kind == raftpb.MsgStorageApplyResp:
	case kind == raftpb.MsgAppResp && !m.GetReject() && m.GetFrom() != g.host.self:
		urgent = m.GetIndex() > g.mu.confirmed || m.GetIndex() < g.mu.acked // NB: one that is behind waits for the rest
		g.mu.acked = max(g.mu.acked, m.GetIndex())
	case kind == raftpb.MsgAppResp && m.GetFrom() == g.host.self:
		urgent = g.mu.acked > g.mu.own // NB: what no other member has is not confirmed by this one's having it
	case kind == raftpb.MsgStorageAppendResp: // it comes after that
		urgent = g.mu.acked > g.mu.own || m.GetSnapshot() != nil
		g.mu.own = max(g.mu.own, m.GetIndex())
	default:
		urgent = true
	}
	return urgent || g.mu.alone || g.mu.wanted != 0 || g.mu.idle >= idleTicks
}

// deliver brings a message of Raft to where it goes. It is sent with the next flush.
func (g *Group) deliver(m *raftpb.Message) {
	switch m.GetTo() {
	case g.host.self, raft.LocalAppendThread, raft.LocalApplyThread:
		g.mu.Lock()
		g.mu.inbox = append(g.mu.inbox, m)
		if g.urgentLocked(m) {
			g.host.schedule(g)
		}
		g.mu.Unlock()
	default:
		if m.GetType() == raftpb.MsgSnap {
			g.sendCopy(m)
			return
		}
		if node := g.host.name(m.GetTo()); node != "" {
			g.host.mesh.Send(node, g.o.Shard, m)
		}
	}
}
