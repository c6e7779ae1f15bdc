package replicatest_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// A long run takes more of them; see the Makefile.
var (
	seedCount = flag.Uint64("seeds", 2, "how many runs of 24 rounds of faults")
	firstSeed = flag.Uint64("first-seed", 0, "the first of them")
)

// Led implements persistence.LeadershipObserver.
func (n *node) Led(sh key.Shard, epoch uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.c.mu.Lock()
	n.c.epochs++
	n.c.mu.Unlock()
	w := &writer{n: n, shard: sh, epoch: epoch}
	if old := n.writers[sh]; old != nil && n.c.sim.memory {
		w.at = old.at
	}
	n.writers[sh] = w
}

// Ended implements persistence.LeadershipObserver.
func (n *node) Ended(sh key.Shard, _ uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.writers[sh]; w != nil {
		w.end()
	}
}

// writer stands for the actors of all instances of a shard: it remembers what it wrote
// and builds on it before it is confirmed.
type writer struct {
	n     *node
	shard key.Shard
	epoch uint64

	order sync.Mutex // held while a write is appended

	mu    sync.Mutex
	over  bool
	ahead int
	at    map[key.ID]uint64 // the last sequence of each instance; nil before it is read
}

func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// instance returns the id of an instance of the test. The store that it is asked of says
// which shard an id belongs to; these rows stand in whichever shard the test likes.
func instance(sh key.Shard, i int) key.ID {
	return key.ID{0: byte(sh), 1: byte(sh >> 8), 15: byte(i)}
}

// write appends one more entry to an instance, if the writer may.
func (w *writer) write(i int) {
	w.order.Lock()
	defer w.order.Unlock()
	a := w.prepare(i)
	if a == nil {
		return
	}
	id, seq := a.at.id, a.at.seq
	writes := w.n.store.NewBatchIn(w.shard, w.epoch)
	writes.Set(key.Entry(nil, w.shard, id, seq), binary.BigEndian.AppendUint64(nil, a.id))
	writes.Set(key.Record(nil, w.shard, "w", id), binary.BigEndian.AppendUint64(nil, seq))
	writes.Add(key.Count(nil, w.shard, "w", 1), 1)
	writes.Set(lastRow(w.shard, id, seq), nil)
	writes.Delete(lastRow(w.shard, id, seq-1))
	w.n.store.Append(writes, a)
}

// lastRow is the key of a row that is there until the instance has its next entry.
func lastRow(sh key.Shard, id key.ID, seq uint64) []byte {
	return key.Draft(nil, sh, id, fmt.Sprint(seq))
}

// prepare remembers the entry that is to be appended; nil when there is none.
func (w *writer) prepare(i int) *appended {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.ahead >= simAhead*simInstances || !w.read() {
		return nil
	}
	id := instance(w.shard, i)
	w.at[id]++
	w.ahead++
	c := w.n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return &appended{w: w, id: c.next, at: position{w.shard, id, w.at[id]}}
}

// read reads what there is of the instances, once.
func (w *writer) read() bool {
	if w.at != nil {
		return true
	}
	at := map[key.ID]uint64{}
	for i := range simInstances {
		id := instance(w.shard, i)
		stored, err := w.n.store.Load(key.Record(nil, w.shard, "w", id))
		switch {
		case err == nil:
			at[id] = binary.BigEndian.Uint64(stored)
		case !errors.Is(err, persistence.ErrNotFound):
			return false // the store is closed
		}
	}
	w.at = at
	return true
}

// appended is one write on its way.
type appended struct {
	w  *writer
	id uint64
	at position
}

// Committed implements persistence.Waiter.
func (a *appended) Committed(err error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.ahead--
	if err != nil {
		a.w.over = true // what it holds in memory may not be there
	}
	if err != nil && !(a.w.n.c.sim.tooEarly && errors.Is(err, persistence.ErrLost)) {
		return
	}
	c := a.w.n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[a.id] = a.at
	c.show(instanceAt{a.at.shard, a.at.id}, a.at.seq)
}

// show notes that somebody was shown an entry. c.mu is held.
func (c *cluster) show(at instanceAt, seq uint64) { c.shown[at] = max(c.shown[at], seq) }

// look shows somebody an instance as the writer holds it, once that is durable and the
// node leads still.
func (w *writer) look(i int) {
	w.order.Lock()
	defer w.order.Unlock()
	w.mu.Lock()
	if w.over || !w.read() {
		w.mu.Unlock()
		return
	}
	c, at := w.n.c, instanceAt{w.shard, instance(w.shard, i)}
	c.mu.Lock()
	l := &looked{c, at, w.at[at.id], c.shown[at]}
	c.mu.Unlock()
	w.mu.Unlock()
	if c.sim.unasked {
		l.Committed(nil)
		return
	}
	w.n.store.BarrierIn(w.shard, w.epoch, l)
}

// lookThere shows somebody an instance as another node has it, once that has all that the
// leader knew to be acknowledged.
func (n *node) lookThere(sh key.Shard, i int) {
	c, at := n.c, instanceAt{sh, instance(sh, i)}
	c.mu.Lock()
	l := &looked{c, at, 0, c.shown[at]}
	c.mu.Unlock()
	store, leads := n.store, c.leads(sh) // NB: they may be closed meanwhile
	if leads == nil {
		return
	}
	leader, replica := leads.store, store.Replica(sh)
	c.looks.Go(func() {
		if !c.sim.unasked {
			index, err := leader.ReadIndex(c.t.Context(), sh)
			if err != nil || store.AwaitApplied(c.t.Context(), sh, index) != nil {
				return
			}
		}
		stored, err := store.Load(key.Record(nil, sh, "w", at.id))
		switch {
		case replica == nil || store.Replica(sh) != replica: // its copy is being removed
			return
		case err == nil:
			l.seq = binary.BigEndian.Uint64(stored)
		case !errors.Is(err, persistence.ErrNotFound):
			return
		}
		l.Committed(nil)
	})
}

// looked is a look on its way.
type looked struct {
	c  *cluster
	at instanceAt
	// seq is what it shows, and least what somebody was shown before it began.
	seq, least uint64
}

// Committed implements persistence.Waiter.
func (l *looked) Committed(err error) {
	if err != nil {
		return
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.seq < l.least {
		l.c.stale = append(l.c.stale, fmt.Sprintf("%x of shard %d was shown with %d entries after %d", l.at.id, l.at.shard, l.seq, l.least))
	}
	l.c.show(l.at, l.seq)
}

// load has writers write for a while, on every node that believes that it leads.
func (c *cluster) load(r *rand.Rand, steps int) {
	for range steps {
		c.shift()
		for _, n := range c.nodes {
			if n.store == nil {
				continue
			}
			for sh := range n.store.AllShards() {
				n.mu.Lock()
				w := n.writers[sh]
				n.mu.Unlock()
				if w != nil {
					w.write(r.IntN(simInstances))
					w.look(r.IntN(simInstances))
				}
				if r.IntN(4) == 0 {
					n.lookThere(sh, r.IntN(simInstances))
				}
			}
		}
		c.pass(time.Duration(5+r.IntN(30)) * time.Millisecond)
	}
}

// fault does something bad to the cluster while it works, and ends it.
func (c *cluster) fault(r *rand.Rand) {
	count, kinds := len(c.nodes), 7
	if c.sim.spread {
		kinds = 9
	}
	n := c.nodes[r.IntN(count)]
	other := c.nodes[(r.IntN(count-1)+1+slices.Index(c.nodes, n))%count]
	switch r.IntN(kinds) {
	case 0: // one loses power
		n.crash(r, r.IntN(101))
		c.load(r, r.IntN(60))
		n.restart()
	case 1: // all lose power at once
		for _, n := range c.nodes {
			c.net.Isolate(n.name, c.names, true)
		}
		percent := r.IntN(101)
		for _, n := range c.nodes {
			n.crash(r, percent)
		}
		for _, n := range c.nodes {
			n.restart()
		}
	case 2: // one is cut off
		c.net.Isolate(n.name, c.names, true)
		c.load(r, 40+r.IntN(200))
		c.net.Isolate(n.name, c.names, false)
	case 3: // what one sends to another is lost
		c.net.Set(n.name, other.name, true)
		c.load(r, 40+r.IntN(200))
		c.net.Set(n.name, other.name, false)
	case 4: // two do not reach each other; the third reaches both
		c.net.Set(n.name, other.name, true)
		c.net.Set(other.name, n.name, true)
		c.load(r, 40+r.IntN(200))
		c.net.Set(n.name, other.name, false)
		c.net.Set(other.name, n.name, false)
	case 5: // leaderships are handed over
		for _, g := range n.store.Groups() {
			if g.Epoch() != 0 {
				go func() { _ = g.HandOver(c.t.Context(), "") }()
			}
		}
		c.load(r, 20)
	case 6: // groups are divided
		c.divide(r)
		c.load(r, 20)
	case 7: // groups get other homes
		for sh := range c.homes {
			c.rehome(r, sh)
		}
	case 8: // one goes with its disk, and another one comes
		c.settle() // NB: with another one gone before all have what they shall have, that would be lost
		c.replace(n)
	}
	c.load(r, 20+r.IntN(40))
}

// settle waits until one node leads each shard, and all that shall have it have the same.
func (c *cluster) settle() {
	c.t.Helper()
	c.until("the nodes do not agree", func() bool {
		c.shift()
		return c.settled()
	})
}

func (c *cluster) settled() bool {
	for sh := range c.nodes[0].store.AllShards() {
		leaders, holders := 0, c.holders(sh)
		for _, n := range c.nodes {
			if n.store.Epoch(sh) != 0 {
				leaders++
			}
		}
		if leaders != 1 || c.homes != nil && !c.isHome(sh) || c.homes == nil && len(holders) != len(c.nodes) {
			return false
		}
		for _, n := range holders {
			if n.store.Replica(sh).Applied() != holders[0].store.Replica(sh).Applied() {
				return false
			}
		}
	}
	return true
}

// groups are as many as all nodes together have.
func (c *cluster) groups() int {
	begin := map[key.Shard]bool{}
	for _, n := range c.nodes {
		if n.store != nil {
			for sh := range n.store.Groups() {
				begin[sh] = true
			}
		}
	}
	return len(begin)
}

// holders are the nodes that have a replica of a shard.
func (c *cluster) holders(sh key.Shard) (holders []*node) {
	for _, n := range c.nodes {
		if n.store.Replica(sh) != nil {
			holders = append(holders, n)
		}
	}
	return holders
}

// faults compares what the nodes have with what was acknowledged.
func (c *cluster) faults() (faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	faults = c.stale
	for _, n := range c.nodes {
		found, total, counted := map[uint64]position{}, int64(0), int64(0)
		n.mu.Lock()
		if rows := n.metaRows(); !maps.Equal(rows, n.mirror) {
			fault("%s: who follows Meta has %d rows, and it has %d", n.name, len(n.mirror), len(rows))
		}
		n.mu.Unlock()
		for sh := range n.store.AllShards() {
			first := c.holders(sh)[0]
			if n.store.Replica(sh) == nil {
				continue
			}
			if got, want := n.rows(sh), first.rows(sh); !maps.Equal(got, want) {
				fault("shard %d: %s has %d rows that are not those of %s, %d", sh, n.name, len(got), first.name, len(want))
			}
			if sh != key.Meta {
				count, err := n.store.CountAll(key.CountPrefix(nil, sh, "w"))
				c.check(err)
				counted += count
			}
			for i := range simInstances {
				id := instance(sh, i)
				var seq uint64
				err := n.store.Scan(key.EntryPrefix(nil, sh, id), func(k, value []byte) error {
					if sh != key.Meta { // whose counters CountAll leaves out
						total++
					}
					if seq++; seq != binary.BigEndian.Uint64(k[len(k)-8:]) {
						fault("%s: entry %d of %x is missing", n.name, seq, id)
						seq = binary.BigEndian.Uint64(k[len(k)-8:])
					}
					write := binary.BigEndian.Uint64(value)
					if twice, is := found[write]; is {
						fault("%s: write %d is there twice: %v", n.name, write, twice)
					}
					found[write] = position{sh, id, seq}
					return nil
				})
				c.check(err)
				if shown := c.shown[instanceAt{sh, id}]; seq < shown {
					fault("%s: %x has %d entries, and somebody was shown %d", n.name, id, seq, shown)
				}
			}
		}
		for write, at := range c.acked {
			if found[write] != at && n.store.Replica(at.shard) != nil {
				fault("%s: write %d was acknowledged at %v and is at %v", n.name, write, at, found[write])
			}
		}
		if counted != total {
			fault("%s: it counts %d entries and has %d", n.name, counted, total)
		}
		if kept, err := n.store.Load(key.Record(nil, 0, "before", key.ID{})); n.store.Replica(0) != nil && (err != nil || string(kept) != "kept") {
			fault("%s: what was there before the cluster is not: %v", n.name, err)
		}
	}
	return faults
}

// whole fails the test when the nodes do not agree, or lack what was acknowledged.
func (c *cluster) whole() {
	c.t.Helper()
	for _, f := range c.settledFaults() {
		c.t.Error(f)
	}
}

func (c *cluster) settledFaults() []string {
	if c.broken != nil {
		return c.broken
	}
	c.settle()
	c.looks.Wait()
	return c.faults()
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		c.check(n.stop())
	}
}

// result is what became of a simulation.
type result struct {
	faults []string
	acks   int
	epochs int
	left   int // copies that nodes removed, as the group was elsewhere
	groups int // at the end
	stats  replica.Stats
}

// simulate runs rounds of faults and says what is wrong afterwards: every other time with five nodes, and groups that move. All shards begin in one group.
func simulate(t *testing.T, seed uint64, rounds int) (done result) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := newCluster(t, simulation{spread: seed%2 == 1, firsts: []key.Shard{0}})
		c.load(r, 50)
		for i := 0; i < rounds && c.broken == nil; i++ {
			c.fault(r)
		}
		if c.broken == nil {
			c.makeUp(r)
		}
		done.faults = c.settledFaults()
		done.groups = c.groups()
		c.close()
		done.acks, done.epochs, done.stats, done.left = len(c.acked), c.epochs, c.stats, c.left
	})
	return done
}

// makeUp does what the faults have left out by chance: a group is divided, and where groups move a node has lost its copy.
func (c *cluster) makeUp(r *rand.Rand) {
	const undivided = 2 // Meta's, and that of all others
	c.until("no group is divided", func() bool {
		if c.groups() > undivided {
			return true
		}
		c.shift()
		c.divide(r)
		return false
	})
	for c.sim.spread && c.left == 0 {
		c.rehome(r, 0)
		c.settle()
	}
}

// TestNothingIsLostUnderFaults has writers build on what is not confirmed yet while nodes
// lose power and links: all that was acknowledged is there once, in its place, on every
// node, and nobody is shown what was overtaken or what is lost later. The rows of all nodes are
// the same, also after copies of shards (persistence/PROMISES.md, "F22").
func TestNothingIsLostUnderFaults(t *testing.T) {
	var total result
	seeds, rounds := *seedCount, 24
	if testing.Short() { // with the race detector
		seeds, rounds = 1, 8
	}
	for i := range seeds {
		seed := *firstSeed + i
		done := simulate(t, seed, rounds)
		for _, f := range done.faults {
			t.Errorf("seed %d: %s", seed, f)
		}
		total.acks += done.acks
		total.epochs += done.epochs
		total.left += done.left
		total.groups += done.groups
		total.stats.Installed += done.stats.Installed
	}
	t.Logf("%d acknowledged writes, %d epochs, %d groups at the end, %d copies of shards installed, %d removed", total.acks, total.epochs, total.groups, total.stats.Installed, total.left)
	assert.True(t, total.acks >= 40*rounds*int(seeds) && total.epochs >= rounds*int(seeds)/2 && (total.stats.Installed != 0 && total.left != 0 && total.groups > 2*int(seeds) || testing.Short()), "the faults do not reach what they are there for")
}
