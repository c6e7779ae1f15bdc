package quota

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
)

// TestIdleBucketsAreDropped: their number is bounded by who is there now.
func TestIdleBucketsAreDropped(t *testing.T) {
	b, now := NewBuckets("event", 0.5), time.Unix(1_700_000_000, 0)
	for n := range 1000 {
		require.NoError(t, b.Take(identity.UserID(fmt.Sprint(n)), now))
	}
	if b.Sweep(now.Add(time.Second)); len(b.byUser) != 1000 {
		t.Errorf("%d buckets are kept that are half full, want 1000", len(b.byUser))
	}
	assert.Error(t, b.Take("7", now.Add(time.Second)), "a bucket that is half full gave a token")
	if b.Sweep(now.Add(2 * time.Second)); len(b.byUser) != 0 {
		t.Errorf("%d buckets are kept that are full, want none", len(b.byUser))
	}
}

func TestQuotasThatCannotBe(t *testing.T) {
	for _, q := range []Limits{{EventsPerSecond: -1}, {CreatesPerSecond: math.NaN()}, {EventsPerSecond: math.Inf(1)}, {HistoryEntries: -1}} {
		assert.Error(t, q.Validate(), "is taken")
	}
	assert.NoError(t, (&Limits{EventsPerSecond: 0.1, HistoryEntries: 1}).Validate())
}
