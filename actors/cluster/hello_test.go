package cluster

import (
	"testing"
	"testing/synctest"
)

// TestWhoRefusesIsThere: `cluster recover` must not make a second cluster of a node that the first one shuts
// out.
func TestWhoRefusesIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.end()
		a, b, c := w.three()
		answering := func(p *process, why string, want int) {
			t.Helper()
			if err := p.startNode(); err == nil {
				t.Fatalf("%s: it starts", why)
			}
			if answer, all := p.Answering(t.Context()); len(answer) != want || all != 3 {
				t.Errorf("%s: %v of %d nodes answer, want %d of 3", why, answer, all, want)
			}
		}
		c.stop(false)
		c.past.Store(true)
		answering(c, "a wrong clock", 2)
		c.past.Store(false)
		w.check(c.start())
		w.await("three nodes again", func() bool { return w.whole(3) })

		w.check(a.Remove(t.Context(), b.self, false))
		w.awaitRemoved(b)
		answering(b, "a node that was removed", 2)
	})
}
