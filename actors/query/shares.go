package query

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/identity"
)

const (
	// queryShare is how much of the machine all long queries may take beside events: with 0.1 a scan slowed those down
	// by a third.
	queryShare = 0.02
	// allShare is how much all queries may take. It is more, or short queries would have to wait for long ones.
	allShare = 2 * queryShare
	// savedMax is the most work that a user can have saved up: fifty queries that find a hundred instances each.
	savedMax    = 50 * time.Millisecond
	allSavedMax = 4 * savedMax // the most that all users together can have
)

// shares counts the queries and looks that have work to do, by user, so that each user has the same share of the
// machine, whatever that is used for. What a user leaves of it is saved, up to savedMax.
type shares struct {
	inFlight *atomic.Int64 // see Options

	mu      sync.Mutex
	working map[identity.UserID]int // guarded by mu; none is 0
	all     balance                 // guarded by mu
	users   map[identity.UserID]own // guarded by mu; who is not in it has savedMax
}

type own struct {
	balance
	whole time.Time // when it will be savedMax again, if nothing is spent
}

func newShares(inFlight *atomic.Int64) *shares {
	return &shares{inFlight: inFlight, working: map[identity.UserID]int{}, users: map[identity.UserID]own{}}
}

func (t *shares) enter(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working[user]++
}

func (t *shares) leave(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working[user]--; t.working[user] == 0 {
		delete(t.working, user)
	}
}

// While fewer calls are open than there are processors, nobody waits for a processor, work costs nothing, and nobody
// rests.
func (t *shares) charge(user identity.UserID, work time.Duration, now time.Time) (rest time.Duration) {
	processors := float64(runtime.GOMAXPROCS(0))
	if float64(t.inFlight.Load()) < processors {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o, known := t.users[user]
	if !known {
		for id, other := range t.users { // NB: so they are no more than users who asked lately
			if other.whole.Before(now) {
				delete(t.users, id)
			}
		}
	}
	share := queryShare * processors / float64(max(1, len(t.working)))
	rest = max(o.spend(work, savedMax, share, now), t.all.spend(work, allSavedMax, allShare*processors, now))
	o.whole = now.Add(time.Duration(float64(savedMax-o.work) / share))
	t.users[user] = o
	return rest
}

// balance is work that may be done without a rest; below zero it is a debt, for work that was done already.
type balance struct {
	work time.Duration
	at   time.Time // of work
}

// spend adds share in each unit of time, up to most, takes work away, and returns after what rest nothing is owed.
func (b *balance) spend(work, most time.Duration, share float64, now time.Time) (rest time.Duration) {
	if passed := now.Sub(b.at); passed > 0 {
		b.work, b.at = min(most, b.work+time.Duration(share*float64(passed))), now
	}
	b.work -= work
	return max(0, time.Duration(float64(-b.work)/share))
}
