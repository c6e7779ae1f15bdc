package cluster

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

var goes = flag.Uint64("go-seeds", 1, "how many runs of nodes that come and go")

// rows are what somebody writes into a cluster, wherever a shard is led.
type rows struct {
	w     *world
	next  uint64
	acked map[uint64]key.Shard
	done  chan written
}

type written struct {
	row uint64
	sh  key.Shard
	err error
}

type writing struct {
	to chan<- written
	written
}

// Committed implements persistence.Waiter.
func (w writing) Committed(err error) {
	w.err = err
	w.to <- w.written
}

func rowOf(sh key.Shard, row uint64) []byte {
	id := key.ID{}
	for i := range 8 {
		id[15-i] = byte(row >> (8 * i))
	}
	return key.Record(nil, sh, "w", id)
}

// write writes for some time.
func (r *rows) write(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); clocktest.Advance(20 * time.Millisecond) {
		for _, p := range r.w.running() {
			for sh := range p.store.AllShards() {
				if p.store.Epoch(sh) == 0 {
					continue
				}
				r.next++
				b := p.store.NewBatchIn(sh, p.store.Epoch(sh))
				b.Set(rowOf(sh, r.next), nil)
				p.store.Append(b, writing{r.done, written{row: r.next, sh: sh}})
			}
		}
		for len(r.done) > 0 {
			if d := <-r.done; d.err == nil {
				r.acked[d.row] = d.sh
			}
		}
	}
}

func (w *world) running() (all []*process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.nodes {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *process) int { return a.machine - b.machine })
	return all
}

// missing are the acknowledged rows that some replica does not have.
func (r *rows) missing() (missing []string) {
	last := map[key.Shard]uint64{}
	for _, p := range r.w.running() {
		for sh := range p.store.AllShards() {
			if p.store.Epoch(sh) != 0 {
				last[sh] = p.store.Replica(sh).Applied()
			}
		}
	}
	for _, p := range r.w.running() {
		for sh, at := range last { // NB: those who follow apply what is confirmed a tick later
			if p.store.Replica(sh) != nil {
				r.w.check(p.store.AwaitApplied(r.w.t.Context(), sh, at))
			}
		}
		for row, sh := range r.acked {
			if p.store.Replica(sh) == nil {
				continue
			}
			if _, err := p.store.Load(rowOf(sh, row)); err != nil {
				missing = append(missing, fmt.Sprintf("row %d of %s on node %s: %v", row, shown(sh), p.self, err))
			}
		}
	}
	return missing
}

// TestNothingIsLostWhileNodesComeAndGo: of five nodes, three of which have each shard, some stop, are cut off, leave, are lost
// with their disks, and others join, while shards move and somebody writes (persistence/PROMISES.md, "P22").
func TestNothingIsLostWhileNodesComeAndGo(t *testing.T) {
	rounds := 12
	if testing.Short() { // with the race detector
		rounds = 2
	}
	for seed := range *goes {
		inWorld(t, 12, func(t *testing.T, w *world) {
			draw := rand.New(rand.NewPCG(seed, 0))
			a := w.first()
			for range 4 {
				w.join(a)
			}
			r := &rows{w: w, acked: map[uint64]key.Shard{}, done: make(chan written, 1<<16)}
			whole := func() {
				w.await("a whole cluster", func() bool { return w.complete(len(w.running()), 100) })
			}
			whole()
			for range rounds {
				nodes := w.running()
				draw.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
				p, by := nodes[0], nodes[1]
				away := time.Duration(draw.Int64N(int64(8 * time.Second)))
				switch kind := draw.IntN(5); {
				case kind == 0: // it stops, perhaps in the midst of moves
					p.stop(draw.IntN(2) == 0)
					r.write(away)
					w.check(p.start())
				case kind == 1:
					p.isolate(true)
					r.write(away)
					p.isolate(false)
				case len(nodes) < 5 || kind == 2 && len(nodes) < 7:
					whole() // NB: the key, which is written where Meta is led
					w.join(by)
				case kind == 3: // it leaves, with what it has going to others first
					whole()
					w.check(by.Remove(t.Context(), p.self, false))
					r.write(away)
					w.awaitRemoved(p)
				default: // it is lost with its disk
					whole() // NB: with two lost, so would be what only they have
					p.stop(false)
					w.await("its silence", func() bool {
						return !slices.ContainsFunc(w.running(), func(q *process) bool { return q.isAlive(p.self) })
					})
					w.check(by.Remove(t.Context(), p.self, true))
				}
				r.write(away)
			}
			whole()
			w.currentEverywhere()
			assert.Empty(t, r.missing(), "seed %d", seed)
			assert.Greater(t, len(r.acked), 500, "seed %d: acknowledged writes", seed)
			moves, groups := uint64(0), map[key.Shard]bool{}
			for _, p := range w.running() {
				moves += p.moves.Load()
				for sh := range p.store.Groups() {
					groups[sh] = true
				}
			}
			one := w.running()[0]
			assert.Len(t, groups, len(one.directory.Load().firsts(one.store)), "seed %d: groups", seed)
			assert.Greater(t, len(groups), groupsFirst+1, "seed %d: no group was divided", seed)
			t.Logf("seed %d: %d nodes and %d groups at the end, %d acknowledged writes, %d moves by those", seed, len(w.running()), len(groups), len(r.acked), moves)
		})
	}
}
