package invoke

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
)

// TestATreeAtRestIsForgotten, a large one later than a small one, and one that is being asked, never.
func TestATreeAtRestIsForgotten(t *testing.T) {
	s, now := New(Options{}), time.Unix(1_700_000_000, 0)
	id := func(n int) key.ID { return key.ID{byte(n)} }
	small, large, asked := s.tree(id(1), now), s.tree(id(2), now), s.tree(id(3), now)
	large.running = map[key.ID]struct{}{}
	for n := range 100 {
		large.running[id(n)] = struct{}{}
	}
	s.leave(small)
	s.leave(large)
	for _, c := range []struct {
		after time.Duration
		want  int // with the one that looks
	}{{0, 4}, {pause - 1, 4}, {pause, 3}, {pause + 99*time.Second, 3}, {pause + 112*time.Second, 2}} {
		if s.leave(s.tree(id(9), now.Add(c.after))); len(s.trees) != c.want {
			t.Errorf("after %s there are %d, want %d", c.after, len(s.trees), c.want)
		}
	}
	assert.True(t, s.tree(id(1), now) != small && s.tree(id(3), now) == asked, "the one that was asked was forgotten, or the small one not")
}
