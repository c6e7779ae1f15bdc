package query

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/persistence/clocktest"
)

const (
	workFor = time.Minute
	saved   = 50 * time.Millisecond // by each user
	share   = workFor * 2 * 2 / 100 // a fiftieth of two processors
)

// onTwoProcessors has queries share two, however many there are, beside so many events.
func onTwoProcessors(t *testing.T, queries int, events int64) *Service {
	s := New(Options{InFlight: new(atomic.Int64), QueriesMax: queries, QueriesOpenMax: max(32, 2*queries)})
	s.queries.shares.processors = func(int) int { return 2 }
	s.o.InFlight.Store(events)
	t.Cleanup(s.Stop)
	return s
}

// TestAMinuteOfQueries: what queries work in a minute in which events keep two
// processors busy.
func TestAMinuteOfQueries(t *testing.T) {
	for name, c := range map[string]struct {
		users, queries int           // queries of each user
		chunk          time.Duration // of work between two checks; 1 ms
		short          bool          // each query makes one look, and another one comes
		turns          bool          // of another user
		pauses         bool          // what was read is handed over after each look
		least, most    time.Duration // of work, of all together
	}{
		"one query":            {users: 1, queries: 1, least: share, most: share + saved},
		"one that looks often": {users: 1, queries: 1, chunk: 100 * time.Microsecond, least: share, most: share + saved},
		"four of one user":     {users: 1, queries: 4, least: share, most: share + saved},
		"those of four users":  {users: 4, queries: 2, least: share, most: share + 4*saved},
		"those of forty users": {users: 40, queries: 1, least: share, most: 2*share + 4*saved},
		"short ones":           {users: 1, queries: 1, short: true, least: share, most: share + saved},
		"one that hands over":  {users: 1, queries: 1, pauses: true, least: share, most: share + saved},
		"always somebody new":  {users: 1, queries: 1, short: true, turns: true, least: share, most: 2*share + 4*saved},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := onTwoProcessors(t, 100, 64)
				chunk := cmp.Or(c.chunk, time.Millisecond)
				end := time.Now().Add(workFor)
				var all sync.WaitGroup
				chunks := make([]int, c.users*c.queries)
				for n := range chunks {
					all.Go(func() {
						user := identity.UserID(fmt.Sprint(n / c.queries))
						got := s.queries.slots(user)
						err := s.enter(t.Context(), got, time.Second)
						for err == nil && time.Now().Before(end) {
							if err = (&throttle{ctx: t.Context(), slots: got}).check(); err != nil {
								break
							}
							<-time.After(chunk) // it works
							chunks[n]++
							if c.turns {
								user = identity.UserID(fmt.Sprint("new", chunks[n]))
							}
							switch {
							case c.short:
								got.leave()
								got = s.queries.slots(user)
								err = s.enter(t.Context(), got, time.Second)
							case c.pauses:
								got.pause()
								err = got.resume(t.Context())
							}
						}
						if got.leave(); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				var worked time.Duration
				for _, n := range chunks {
					worked += time.Duration(n) * chunk
				}
				slack := time.Duration(2*len(chunks)) * chunk // the first of each, and what it is in the middle of
				assert.True(t, worked >= c.least-slack && worked <= c.most+slack, "worked %s of %s, want %s to %s", worked, workFor, c.least, c.most)
			})
		})
	}
}

// TestUsersShareTheRestOfTheMachine: a user's queries rest as if others had one
// each, once what the user has saved up is spent.
func TestUsersShareTheRestOfTheMachine(t *testing.T) {
	synctest.Test(t, usersShare)
}

func usersShare(t *testing.T) {
	s := onTwoProcessors(t, 8, 1<<20) // events keep the machine busy
	enter := func(who identity.UserID) *slots {
		got := s.queries.slots(who)
		require.NoError(t, s.enter(t.Context(), got, time.Second))
		t.Cleanup(got.leave)
		return got
	}
	hers, his, other := enter("mary"), enter("john"), enter("mary")
	enter("john")
	// works is how long one rests after a millisecond of work.
	works := func(s *slots) (rest time.Duration) {
		s.pause()
		require.NoError(t, s.resume(t.Context()))
		clocktest.Advance(time.Millisecond)
		begun := time.Now()
		require.NoError(t, (&throttle{ctx: t.Context(), slots: s}).check())
		rest = time.Since(begun)
		s.pause()
		return rest
	}
	// spend works until it has to rest, and says how many milliseconds.
	spend := func(s *slots) (n int) {
		for works(s) == 0 {
			n++
		}
		return n
	}
	for name, s := range map[string]*slots{"mary": hers, "john": his} {
		if n := spend(s); n < 50 || n > 52 { // of which 20 µs come back in each
			t.Errorf("%s worked %d ms without rest, want 50", name, n)
		}
	}
	spend(hers)
	about := func(what string, got, want time.Duration) {
		t.Helper()
		assert.True(t, got >= want-want/10 && got <= want+want/10, "%s: rests %s, want about %s", what, got, want)
	}
	about("mary beside one", works(hers), 50*time.Millisecond)
	for range 3 {
		enter("john")
	}
	about("mary beside four of john's", works(hers), 50*time.Millisecond)
	other.pause()
	spend(his)
	about("john while mary waits for her reader", works(his), 25*time.Millisecond)
	clocktest.Advance(time.Second) // in which his share is 40 ms
	n := spend(his)
	assert.True(t, n >= 39 && n <= 44, "john worked %d ms after a second, want 40", n)
	s.o.InFlight.Store(1)
	clocktest.Advance(time.Second)
	for range 200 {
		require.Zero(t, works(his), "john rests")
	}
}
