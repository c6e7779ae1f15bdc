package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
)

// TestNoGreetingReplacesANewerOne of the same process: it may come later, on another way.
func TestNoGreetingReplacesANewerOne(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a := w.first()
		says := func(boot string, count, epoch uint64, stopping bool) (led uint64, alive bool) {
			a.note(heartbeat{Node: "B", Boot: boot, Count: count, Stopping: stopping, Groups: map[key.Shard]groupState{0: {Epoch: epoch}}})
			_, of := a.leaderHeard(0)
			return of.Epoch, a.isAlive("B")
		}
		for _, c := range []struct {
			what     string
			boot     string
			count    uint64
			epoch    uint64
			stopping bool
			led      uint64
			alive    bool
		}{
			{what: "the second", boot: "b", count: 2, epoch: 5, led: 5, alive: true},
			{what: "the first", boot: "b", count: 1, led: 5, alive: true},
			{what: "the last", boot: "b", count: 4, epoch: 5, stopping: true},
			{what: "the third", boot: "b", count: 3, epoch: 5},
			{what: "another process", boot: "c", count: 1, epoch: 7, led: 7, alive: true},
			{what: "one that does not count", boot: "d", epoch: 8, led: 8, alive: true},
			{what: "the same again", boot: "d", epoch: 9, led: 9, alive: true},
		} {
			led, alive := says(c.boot, c.count, c.epoch, c.stopping)
			assert.True(t, led == c.led && alive == c.alive, "%s: it leads in %d, alive %v", c.what, led, alive)
		}
		before := a.heartbeat()
		assert.Greater(t, a.heartbeat().Count, before.Count)
	})
}
