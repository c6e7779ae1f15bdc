package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
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
			require.Error(t, p.startNode(), "%s: it starts", why)
			answer, all := p.Answering(t.Context())
			assert.True(t, len(answer) == want && all == 3, "%s: %v of %d nodes answer, want %d of 3", why, answer, all, want)
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

// TestWhoFitsNobodyEnds: and nobody else does, though each refuses the other, when a node that has joined
// would have, or has, a store with another number of shards.
func TestWhoFitsNobodyEnds(t *testing.T) {
	for nodes := 1; nodes <= 3; nodes++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			defer w.end()
			all := []*process{w.first()}
			for len(all) < nodes {
				all = append(all, w.join(all[0]))
			}
			w.await("all nodes", func() bool { return w.whole(nodes) })
			odd, err := w.joinAs(all[0], w.invite(all[0], time.Hour))
			w.check(err)
			odd.shards, odd.disk.Shards = 5, 5
			err = odd.start()
			assert.True(t, err != nil && strings.Contains(err.Error(), "5 shards, or would have"), "a node of %d that would have 5 shards: got %v", nodes+1, err)
			w.check(odd.ClosePort(t.Context()))
			odd.shards = 0 // it does not know
			w.check(odd.start())
			for range 300 {
				clocktest.Advance(100 * time.Millisecond)
				for _, p := range all {
					select {
					case err := <-p.Failed():
						t.Fatalf("a node of %d that fits ends: %v", nodes+1, err)
					default:
					}
				}
			}
			select {
			case err := <-odd.Failed():
				assert.Contains(t, err.Error(), "5 shards", "it ends")
			default:
				if nodes > 1 { // NB: two that refuse each other are no majority
					t.Errorf("a node of %d that does not fit goes on", nodes+1)
				}
			}
			odd.stop(false)
		})
	}
}

// TestTheVotesOfOthersStay: that a leader is gone, and no other is elected yet, is no news of who has a vote.
func TestTheVotesOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		a.stop(false)
		for range 50 {
			clocktest.Advance(100 * time.Millisecond)
			for _, p := range []*process{b, c} {
				for _, node := range p.Status().Nodes {
					assert.True(t, node.Voter, "node %s says that node %s has no vote", p.address, node.Address)
				}
			}
		}
		w.check(a.start())
	})
}
