package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRoomPercent: a small heap may grow by 128 MiB, a large one by half, and what is in
// use without any heap does not make the room endless.
func TestRoomPercent(t *testing.T) {
	for _, c := range []struct {
		used uint64
		want int
	}{
		{0, 1600}, {1 << 20, 1600}, {8 << 20, 1600}, {64 << 20, 200}, {128 << 20, 100}, {256 << 20, 50}, {8 << 30, 50},
	} {
		assert.Equal(t, c.want, roomPercent(c.used), "%d MiB in use", c.used>>20)
	}
	assert.GreaterOrEqual(t, usedBytes(), uint64(1<<10), "in use")
	for _, c := range []struct {
		from, to int
		want     bool
	}{{0, 100, true}, {100, 100, false}, {100, 110, false}, {100, 120, true}, {100, 80, true}} {
		assert.Equal(t, c.want, changesMuch(c.from, c.to), "from %d to %d", c.from, c.to)
	}
}
