package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
)

func TestStepsAreDelayed(t *testing.T) {
	var s Steps
	id, now := key.ID{1}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 100 {
		require.Zero(t, s.Step(id, 0, now.Add(time.Duration(n)*time.Millisecond)), "step %d is delayed", n+1)
	}
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		d := s.Step(id, 0, now)
		assert.Equal(t, want*time.Second, d, "step %d is delayed, %d", 101+n, want)
		now = now.Add(d)
	}
	assert.Zero(t, s.Step(key.ID{2}, 0, now), "another instance is delayed")
	assert.Zero(t, s.Step(id, 0, now.Add(2*time.Minute+time.Second)), "after a rest it is delayed")
}

func TestACallerCalms(t *testing.T) {
	var s Steps
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 1000 {
		for range 100 {
			require.Zero(t, s.Step(key.ID{}, 0, now), "it is delayed")
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
		require.Zero(t, s.Step(key.ID{1}, 0, now), "one step a second is delayed")
		s.Step(key.ID{2, byte(n), byte(n >> 8)}, 0, now)
	}
	assert.LessOrEqual(t, len(s.of), 300, "instances are remembered")
}

// TestDearStepsCountMore: ten a minute of a tenth of a second are many, and few are not.
func TestDearStepsCountMore(t *testing.T) {
	var s Steps
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n, want := range []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, time.Second, 2 * time.Second} {
		assert.Equal(t, want, s.Step(key.ID{1}, 10*dearStep, now.Add(time.Duration(n)*time.Second)), "step %d is delayed", n+1)
	}
	for n := range 100 {
		now = now.Add(window / 8)
		require.Zero(t, s.Step(key.ID{2}, 10*dearStep, now), "step %d of those that are eight a minute is delayed", n+1)
	}
}
