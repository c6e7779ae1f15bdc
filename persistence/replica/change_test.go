package replica

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// TestAChangeOfTheMembersEndsWithItsEpoch: in the next one it would be asked for again, though others have led meanwhile.
func TestAChangeOfTheMembersEndsWithItsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := brokenBeside(t)
		g.mu.conf = map[string]chan struct{}{}
		require.ErrorIs(t, g.Remove("C"), ErrNotLed, "before an epoch has begun")
		g.elect(t)
		g.leading, g.mu.epoch = 2, 6
		ended := make(chan error)
		go func() { ended <- g.Remove("C") }()
		for _, epoch := range []uint64{6, 6, 9} { // NB: what is proposed here is never confirmed
			synctest.Wait()
			g.mu.Lock()
			commands := g.mu.commands
			g.mu.commands, g.mu.epoch = nil, epoch
			g.mu.Unlock()
			assert.Len(t, commands, 1, "in epoch %d", epoch)
			last := g.log.last()
			for _, f := range commands {
				f()
			}
			settle(t, g)
			assert.True(t, epoch == 6 || g.log.last() == last, "it is proposed in epoch %d", epoch)
			clocktest.Advance(g.host.o.Tick)
		}
		assert.ErrorIs(t, <-ended, ErrNotLed)
	})
}
