package cluster

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

// TestAFullDiskLeadsNothing: while there is another node that can, and until there is room again.
func TestAFullDiskLeadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		b.full.Store(true)
		w.await("all led by others", func() bool { return len(a.led())+len(c.led()) == 3 })
		for _, p := range []*process{a, b} {
			for _, node := range p.Status().Nodes {
				assert.Equal(t, node.ID == b.self, node.Full, "node %s says that the disk of node %s is full", p.self, node.ID)
			}
		}
		clocktest.Advance(10 * time.Second)
		led := b.led()
		assert.Empty(t, led, "it was given %v again", led)
		a.stop(true)
		led = b.led()
		assert.Empty(t, led, "who stopped has given it %v", led)
		w.check(a.start())
		b.full.Store(false)
		w.await("three nodes that lead alike", func() bool { return w.whole(3) })
	})
}

// TestFullDisksKeepTheirEpochs: where most voters have no room a new leader could begin no epoch.
func TestFullDisksKeepTheirEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		before := [][]key.Shard{a.led(), b.led(), c.led()}
		a.full.Store(true)
		b.full.Store(true)
		clocktest.Advance(20 * time.Second)
		now := [][]key.Shard{a.led(), b.led(), c.led()}
		assert.Equal(t, before, now, "two full disks of three: the nodes lead")
		a.full.Store(false)
		w.await("all led by those with room", func() bool { return len(a.led())+len(c.led()) == 3 })
		b.full.Store(false)
		w.await("three nodes that lead alike", func() bool { return w.whole(3) })
	})
}

// TestWhoHasEverything: a disk that is full takes nothing of what is missing, however little that is.
func TestWhoHasEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.end()
		a, b, _ := w.three()
		for _, c := range []struct {
			lag  uint64
			full bool
			want bool
		}{{0, false, true}, {0, true, true}, {1, false, true}, {1, true, false}, {lagMax, false, true}, {lagMax + 1, false, false}} {
			said := a.heard()
			said[a.self] = a.heartbeat()
			leads := said[a.self].Groups[0]
			leads.Epoch, leads.Applied = 1<<40, leads.Applied+lagMax+1
			said[a.self].Groups[0] = leads
			follows := said[b.self]
			follows.Full = c.full
			follows.Groups = maps.Clone(follows.Groups)
			follows.Groups[0] = groupState{Applied: leads.Applied - c.lag}
			said[b.self] = follows
			assert.Equal(t, c.want, a.isComplete(b.self, said), "%d entries behind, full: %t", c.lag, c.full)
		}
	})
}
