package cluster

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/clocktest"
)

// TestTheLevelGoesUpWhenAllHaveIt: until then a node can go back to the program before, and after it none can.
func TestTheLevelGoesUpWhenAllHaveIt(t *testing.T) {
	const before, next = levelHere, levelHere + 1
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
		w.await("the level before", have(before))
		runs(a, next)
		runs(b, next)
		for range 100 {
			clocktest.Advance(100 * time.Millisecond)
			require.True(t, have(before)(), "the level goes up, or a node is missing, while one has the program before")
		}
		runs(b, before)
		runs(c, next)
		runs(b, next)
		w.await("the next level", have(next))

		c.stop(true)
		c.level = before
		if err := c.startNode(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("level %d, and all nodes of the cluster have had level %d: start it with a newer program", before, next)) {
			t.Errorf("a node that goes back among others: %v", err)
		}
		w.check(c.ClosePort(t.Context()))
		if _, err := w.joinAs(a, w.invite(a, time.Hour)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the new node runs version test of level %d, and all nodes", before)) {
			t.Errorf("a new node of the level before: %v", err)
		}
		b.stop(true)
		a.stop(false)
		a.level = before
		w.check(a.startNode())
		var err error
		a.store, err = persistence.Open("store", a.options(a.Replication()))
		w.check(err)
		if err := a.Run(a.store); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("level %d, and all nodes of the cluster have had level %d: start a newer program", before, next)) {
			t.Errorf("a node that goes back while no other runs: %v", err)
		}
		w.check(a.Stop(t.Context()))
		w.check(a.store.Close())
		w.check(a.ClosePort(t.Context()))
	})
}
