package query

import (
	"sync"
	"time"

	"troupe/actors/identity"
)

// savedMax is the most work that a user can have saved up, and what users have who have
// not asked for a while: fifty queries or more that find a hundred instances each.
const savedMax = 50 * time.Millisecond

// shares counts the queries and looks that have work to do, by user, so that
// each user has the same share of the machine, whatever that is used for. What a user
// leaves of it is saved, up to savedMax.
type shares struct {
	mu      sync.Mutex
	working map[identity.UserID]int   // guarded by mu; none is 0
	saved   map[identity.UserID]saved // guarded by mu; who is not in it has savedMax
}

// saved is work that a user may do without rest.
type saved struct {
	work  time.Duration
	at    time.Time
	whole time.Time // when it will be savedMax again, if nothing is spent
}

func newShares() shares {
	return shares{working: map[identity.UserID]int{}, saved: map[identity.UserID]saved{}}
}

func (t *shares) enter(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working[user]++
}

// leave is the opposite of enter.
func (t *shares) leave(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working[user]--; t.working[user] == 0 {
		delete(t.working, user)
	}
}

// parts returns among how many users the machine is divided, and among how many
// queries the user's part of it.
func (t *shares) parts(user identity.UserID) (users, own int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(1, len(t.working)), max(1, t.working[user])
}

// spend takes work from what the user has saved, to which share is added in each unit
// of time, and returns how much of the work that does not cover.
func (t *shares) spend(user identity.UserID, work time.Duration, share float64, now time.Time) (owed time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, known := t.saved[user]
	if !known {
		s = saved{work: savedMax, at: now}
		for id, other := range t.saved { // NB: so they are no more than users who asked lately
			if other.whole.Before(now) {
				delete(t.saved, id)
			}
		}
	}
	s.work = min(savedMax, s.work+time.Duration(share*float64(now.Sub(s.at))))
	paid := min(s.work, work)
	s.work, s.at = s.work-paid, now
	s.whole = now.Add(time.Duration(float64(savedMax-s.work) / share))
	t.saved[user] = s
	return work - paid
}
