package cluster

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWhoHasEverything: a disk that is full takes nothing of what is missing, however little that is.
func TestWhoHasEverything(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
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
