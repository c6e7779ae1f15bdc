package serve

import "testing"

// TestRoomPercent: a small heap may grow by 128 MiB, a large one by half, and what is in
// use without any heap does not make the room endless.
func TestRoomPercent(t *testing.T) {
	for _, c := range []struct {
		used uint64
		want int
	}{
		{0, 1600}, {1 << 20, 1600}, {8 << 20, 1600}, {64 << 20, 200}, {128 << 20, 100}, {256 << 20, 50}, {8 << 30, 50},
	} {
		if got := roomPercent(c.used); got != c.want {
			t.Errorf("%d MiB in use: got %d, want %d", c.used>>20, got, c.want)
		}
	}
	if used := usedBytes(); used < 1<<10 {
		t.Errorf("in use: got %d bytes", used)
	}
	for _, c := range []struct {
		from, to int
		want     bool
	}{{0, 100, true}, {100, 100, false}, {100, 110, false}, {100, 120, true}, {100, 80, true}} {
		if got := changesMuch(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: got %t", c.from, c.to, got)
		}
	}
}
