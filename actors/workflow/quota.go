package workflow

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"troupe/actors/identity"
)

// Quotas bound what may be asked over time. They are no limits of capacity: those
// hold in any case. Zero values mean no quota. Requests with NoQuota pass them.
type Quotas struct {
	// EventsPerSecond and CreatesPerSecond are how many each user may send. One
	// second's worth may come at once.
	EventsPerSecond, CreatesPerSecond float64
	// HistoryEntries is how many each instance may have. An event that would leave
	// one more is refused.
	HistoryEntries int
}

// Validate reports everything that is wrong at once.
func (q *Quotas) Validate() error {
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
			faults = append(faults, fmt.Errorf("%s: %v is not a number from 0 on", quota.name, quota.value))
		}
	}
	return errors.Join(faults...)
}

// QuotaError is the error of a request that a quota refuses. It wraps ErrQuota, and
// its text behind that is meant for the caller.
type QuotaError struct {
	// Quota is what the quota is, for people.
	Quota string
	// Wait is the time until a request of the kind passes, or fullWait.
	Wait time.Duration
}

// fullWait is the wait for a quota that time does not give back. It is longer than
// clients wait by themselves, so that they give up and show the reason.
const fullWait = time.Hour

func (e *QuotaError) Error() string {
	return fmt.Sprintf("%v: %s; nothing was done", ErrQuota, e.Quota)
}

func (e *QuotaError) Unwrap() error { return ErrQuota }

// buckets hold each user to a rate. A nil one lets everything pass. Its methods are
// safe for concurrent use.
type buckets struct {
	what      string // of what so many a second; one of them
	perSecond float64
	burst     int

	mu     sync.Mutex
	byUser map[identity.UserID]*rate.Limiter // guarded by mu; a user without one has a full bucket
}

func newBuckets(what string, perSecond float64) *buckets {
	if perSecond == 0 {
		return nil
	}
	return &buckets{
		what: what, perSecond: perSecond, burst: int(min(max(1, math.Ceil(perSecond)), math.MaxInt32)),
		byUser: map[identity.UserID]*rate.Limiter{},
	}
}

// take takes a token of the user's, or says that there is none.
func (b *buckets) take(user identity.UserID, now time.Time) error {
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
	return &QuotaError{Quota: fmt.Sprintf("a user may send %s a second", counted(b.perSecond, b.what, b.what+"s")), Wait: wait}
}

// sweep forgets full buckets: what is left is bounded by who sent something since
// a bucket takes to fill.
func (b *buckets) sweep(now time.Time) {
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

// mayAdd asks the quota of history entries.
func (r *Router) mayAdd(entries uint64) error {
	most := r.o.Quotas.HistoryEntries
	if most == 0 || entries < uint64(most) {
		return nil
	}
	return &QuotaError{Quota: fmt.Sprintf("an instance may have %s, and this one has as many", counted(most, "history entry", "history entries")), Wait: fullWait}
}

// counted writes a number with its noun.
func counted[N int | float64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%v %s", n, many)
}

// countRefusal counts the refusals of quotas among errors.
func (r *Router) countRefusal(err error) error {
	if err != nil {
		r.metrics.overQuota.Add(1)
	}
	return err
}
