// Package quota limits what each user may ask for over time. The operator sets the quotas; limits of capacity hold
// beside them. Everything here is safe for concurrent use, and nothing of it survives a restart.
package quota

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// Limits are the quotas of a service. Zero values mean no quota.
type Limits struct {
	// EventsPerSecond and CreatesPerSecond are how many each user may send. One second's worth may come at once.
	EventsPerSecond, CreatesPerSecond float64
	// HistoryEntries is how many each instance may have. An event that would leave one more is refused.
	HistoryEntries int
}

// Validate reports everything that is wrong at once.
func (q *Limits) Validate() error {
	var faults []error
	for _, quota := range []struct {
		name  string
		value float64
	}{
		{"events per second", q.EventsPerSecond},
		{"creates per second", q.CreatesPerSecond},
		{"history entries", float64(q.HistoryEntries)},
	} {
		if math.IsNaN(quota.value) || math.IsInf(quota.value, 0) || quota.value < 0 {
			faults = append(faults, fmt.Errorf("%s: %v is not a number of at least 0", quota.name, quota.value))
		}
	}
	return errors.Join(faults...)
}

func exceeded(wait time.Duration, quota string) error {
	return &failure.Error{Kind: failure.ErrQuota, Reason: quota + "; nothing was done", Wait: wait}
}

// FullWait is the wait for a quota that time does not give back.
const FullWait = time.Hour

// MayAdd asks the quota of history entries for an instance that has so many.
func (q *Limits) MayAdd(entries uint64) error {
	most := q.HistoryEntries
	if most == 0 || entries < uint64(most) {
		return nil
	}
	return exceeded(FullWait, fmt.Sprintf("an instance can have at most %s", counted(most, "history entry", "history entries")))
}

// Buckets hold each user to a rate. A nil one lets everything pass. Its methods are safe for concurrent use.
type Buckets struct {
	what      string // what is counted, in the singular
	perSecond float64
	burst     int

	mu     sync.Mutex
	byUser map[identity.UserID]*rate.Limiter // guarded by mu; a user without one has a full bucket
}

// NewBuckets bounds how many of what, such as "event", each user may send a second.
func NewBuckets(what string, perSecond float64) *Buckets {
	if perSecond == 0 {
		return nil
	}
	return &Buckets{
		what: what, perSecond: perSecond, burst: int(min(max(1, math.Ceil(perSecond)), math.MaxInt32)),
		byUser: map[identity.UserID]*rate.Limiter{},
	}
}

// Take takes a token of the user's. Without one it returns failure.ErrQuota.
func (b *Buckets) Take(user identity.UserID, now time.Time) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket := b.byUser[user]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Limit(b.perSecond), b.burst)
		b.byUser[user] = bucket
	}
	token := bucket.ReserveN(now, 1)
	wait := token.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	token.CancelAt(now)
	return exceeded(wait, fmt.Sprintf("a user can send at most %s per second", counted(b.perSecond, b.what, b.what+"s")))
}

// Sweep forgets full buckets. So only users who sent something lately have one.
func (b *Buckets) Sweep(now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for user, bucket := range b.byUser {
		if bucket.TokensAt(now) >= float64(b.burst) {
			delete(b.byUser, user)
		}
	}
}

func counted[N int | float64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%v %s", n, many)
}
