package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"troupe/persistence"
	"troupe/persistence/clocktest"
)

// TestTheLevelGoesUpWhenAllHaveIt: until then a node can go back to the program before, and after it none can.
func TestTheLevelGoesUpWhenAllHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		all := []*process{a, b, c}
		have := func(level int) func() bool {
			return func() bool {
				for _, p := range all {
					if p.directory.Load().Level != level {
						return false
					}
				}
				return w.whole(3)
			}
		}
		runs := func(p *process, level int) {
			t.Helper()
			p.stop(true)
			p.level = level
			w.check(p.start())
			w.await("three nodes", func() bool { return w.whole(3) })
		}
		w.await("level 1", have(1))
		runs(a, 2)
		runs(b, 2)
		for range 100 {
			clocktest.Advance(100 * time.Millisecond)
			if !have(1)() {
				t.Fatal("the level goes up, or a node is missing, while one has the program before")
			}
		}
		runs(b, 1)
		runs(c, 2)
		runs(b, 2)
		w.await("level 2", have(2))

		c.stop(true)
		c.level = 1
		if err := c.startNode(); err == nil || !strings.Contains(err.Error(), "level 1, and all nodes of the cluster have had level 2: start it with a newer program") {
			t.Errorf("a node that goes back among others: %v", err)
		}
		w.check(c.ClosePort(t.Context()))
		if _, err := w.joinAs(a, w.invite(a, time.Hour)); err == nil || !strings.Contains(err.Error(), "the new node runs version test of level 1, and all nodes") {
			t.Errorf("a new node of the level before: %v", err)
		}
		b.stop(true)
		a.stop(false)
		a.level = 1
		w.check(a.startNode())
		var err error
		a.store, err = persistence.Open("store", a.options(a.Replication()))
		w.check(err)
		if err := a.Run(a.store); err == nil || !strings.Contains(err.Error(), "level 1, and all nodes of the cluster have had level 2: start a newer program") {
			t.Errorf("a node that goes back while no other runs: %v", err)
		}
		w.check(a.Stop(t.Context()))
		w.check(a.store.Close())
		w.check(a.ClosePort(t.Context()))
	})
}
