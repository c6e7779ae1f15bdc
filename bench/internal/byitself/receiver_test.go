package byitself

import "testing"

// TestWhatTheReceiverFinds is the control of the measurement: deliveries that are missing, out of order, or under another id.
func TestWhatTheReceiverFinds(t *testing.T) {
	type delivery struct {
		of string
		n  int
		id string
	}
	for _, c := range []struct {
		what      string
		came      []delivery
		right     bool
		arrived   int
		cameTwice int
	}{
		{"in order", []delivery{{"a", 1, "x"}, {"b", 1, "y"}, {"a", 2, "z"}}, true, 3, 0},
		{"the last one again", []delivery{{"a", 1, "x"}, {"a", 2, "y"}, {"a", 2, "y"}}, true, 2, 1},
		{"under another id", []delivery{{"a", 1, "x"}, {"a", 1, "y"}}, false, 1, 0},
		{"one is missing", []delivery{{"a", 1, "x"}, {"a", 3, "y"}}, false, 2, 0},
		{"an early one again", []delivery{{"a", 1, "x"}, {"a", 2, "y"}, {"a", 1, "x"}}, false, 2, 0},
	} {
		r := &receiver{of: map[string]*arrivals{}, changed: make(chan struct{}, 1)}
		for _, d := range c.came {
			r.note(d.of, d.n, d.id)
		}
		if (r.fault == nil) != c.right || r.arrived != c.arrived || r.again != c.cameTwice {
			t.Errorf("%s: got %v, %d and %d, want %v, %d and %d", c.what, r.fault, r.arrived, r.again, c.right, c.arrived, c.cameTwice)
		}
	}
}
