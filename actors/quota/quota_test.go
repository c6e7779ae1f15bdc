package quota

import (
	"fmt"
	"math"
	"testing"
	"time"

	"troupe/actors/identity"
)

// TestIdleBucketsAreDropped: their number is bounded by who is there now.
func TestIdleBucketsAreDropped(t *testing.T) {
	b, now := NewBuckets("event", 0.5), time.Unix(1_700_000_000, 0)
	for n := range 1000 {
		if err := b.Take(identity.UserID(fmt.Sprint(n)), now); err != nil {
			t.Fatal(err)
		}
	}
	if b.Sweep(now.Add(time.Second)); len(b.byUser) != 1000 {
		t.Errorf("%d buckets are kept that are half full, want 1000", len(b.byUser))
	}
	if err := b.Take("7", now.Add(time.Second)); err == nil {
		t.Error("a bucket that is half full gave a token")
	}
	if b.Sweep(now.Add(2 * time.Second)); len(b.byUser) != 0 {
		t.Errorf("%d buckets are kept that are full, want none", len(b.byUser))
	}
}

func TestQuotasThatCannotBe(t *testing.T) {
	for _, q := range []Limits{{EventsPerSecond: -1}, {CreatesPerSecond: math.NaN()}, {EventsPerSecond: math.Inf(1)}, {HistoryEntries: -1}} {
		if q.Validate() == nil {
			t.Errorf("%+v is taken", q)
		}
	}
	if err := (&Limits{EventsPerSecond: 0.1, HistoryEntries: 1}).Validate(); err != nil {
		t.Error(err)
	}
}
