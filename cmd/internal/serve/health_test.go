package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/persistence"
)

// TestTroubles holds cmd/troupe/HOME.md, "Health, metrics and logs": what /readyz?verbose says before it is too late.
func TestTroubles(t *testing.T) {
	const least = 512 << 20
	require.NoError(t, fillingUp(persistence.Metrics{FreeBytes: 4 * least}, least))
	require.NoError(t, fillingUp(persistence.Metrics{FreeBytes: -1}, least), "a file system that does not say")
	require.NoError(t, fillingUp(persistence.Metrics{FreeBytes: 1}, -1), "a limit that is off")
	require.EqualError(t, fillingUp(persistence.Metrics{FreeBytes: 4*least - 1}, least),
		"the disk of the store is filling up: 2.0 GiB are free, and below 512 MiB (freeBytesMin) writes are refused: free some space")

	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	waiting, counted := int64(2), 0
	count := func() (*pending.Counts, error) {
		counted++
		return &pending.Counts{Pending: map[string]int64{"webhook": waiting, "mail": 1}}, nil
	}
	require.NoError(t, stuck(outbox.Metrics{Failed: 7}, noon, count))
	failing := outbox.Metrics{FailingSince: noon}
	require.NoError(t, stuck(failing, noon.Add(stuckAfter-1), count))
	assert.Zero(t, counted)
	require.EqualError(t, stuck(failing, noon.Add(stuckAfter), count),
		"the outbox is stuck: every attempt has failed since 2026-11-30T12:00:00Z; deliveries that wait: 3; see troupe outbox list")

	c := &clockWatch{began: noon}
	require.NoError(t, c.look(noon.Add(time.Minute), time.Minute))
	require.NoError(t, c.look(noon.Add(2*time.Minute+jumpMin), 2*time.Minute), "small steps")
	require.EqualError(t, c.look(noon.Add(3*time.Hour), 3*time.Minute),
		"the clock jumped 2h56m59s ahead, as was seen at 2026-11-30T15:00:00Z: timers and schedules go by it, so check how it is set (NTP), or whether the machine was asleep")
	require.Error(t, c.look(noon.Add(3*time.Hour+jumpShown), 3*time.Minute+jumpShown), "it is shown for an hour")
	require.NoError(t, c.look(noon.Add(3*time.Hour+2*jumpShown), 3*time.Minute+2*jumpShown))
	require.ErrorContains(t, c.look(noon, 4*time.Minute+2*jumpShown), "back")
}
