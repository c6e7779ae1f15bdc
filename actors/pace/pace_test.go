package pace

import (
	"testing"
	"time"

	"troupe/persistence/key"
)

func TestStepsAreDelayed(t *testing.T) {
	var s Steps
	id, now := key.ID{1}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 100 {
		if d := s.Step(id, 0, now.Add(time.Duration(n)*time.Millisecond)); d != 0 {
			t.Fatalf("step %d is delayed by %s", n+1, d)
		}
	}
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		d := s.Step(id, 0, now)
		if d != want*time.Second {
			t.Errorf("step %d is delayed by %s, want %d s", 101+n, d, want)
		}
		now = now.Add(d)
	}
	if d := s.Step(key.ID{2}, 0, now); d != 0 {
		t.Errorf("another instance is delayed by %s", d)
	}
	if d := s.Step(id, 0, now.Add(2*time.Minute+time.Second)); d != 0 {
		t.Errorf("after a rest it is delayed by %s", d)
	}
}

func TestACallerCalms(t *testing.T) {
	var s Steps
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 1000 {
		for range 100 {
			if d := s.Step(key.ID{}, 0, now); d != 0 {
				t.Fatalf("it is delayed by %s", d)
			}
		}
		s.Calm(key.ID{})
	}
}

// TestSlowStepsAreNotDelayed, and what is at rest takes no memory.
func TestSlowStepsAreNotDelayed(t *testing.T) {
	var s Steps
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 10_000 {
		now = now.Add(time.Second)
		if d := s.Step(key.ID{1}, 0, now); d != 0 {
			t.Fatalf("one step a second is delayed by %s", d)
		}
		s.Step(key.ID{2, byte(n), byte(n >> 8)}, 0, now)
	}
	if len(s.of) > 300 {
		t.Errorf("%d instances are remembered", len(s.of))
	}
}

// TestDearStepsCountMore: ten a minute of a tenth of a second are many, and few are not.
func TestDearStepsCountMore(t *testing.T) {
	var s Steps
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n, want := range []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, time.Second, 2 * time.Second} {
		if d := s.Step(key.ID{1}, 10*dearStep, now.Add(time.Duration(n)*time.Second)); d != want {
			t.Errorf("step %d is delayed by %s, want %s", n+1, d, want)
		}
	}
	for n := range 100 {
		now = now.Add(window / 8)
		if d := s.Step(key.ID{2}, 10*dearStep, now); d != 0 {
			t.Fatalf("step %d of those that are eight a minute is delayed by %s", n+1, d)
		}
	}
}
