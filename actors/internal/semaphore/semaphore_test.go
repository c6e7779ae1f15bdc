package semaphore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func take(t *testing.T, s *Semaphore[string], user string) *Slot[string] {
	t.Helper()
	slot := s.Slot(user)
	if !slot.TryAcquire() {
		t.Fatalf("%s gets no slot; %d are held", user, s.Held())
	}
	return slot
}

// queued is a caller who waits.
type queued struct {
	*Slot[string]
	done chan error
}

// await lets a user wait for a slot.
func await(ctx context.Context, s *Semaphore[string], user string) queued {
	q := queued{s.Slot(user), make(chan error, 1)}
	go func() { q.done <- q.Acquire(ctx) }()
	synctest.Wait()
	return q
}

func served(q queued) bool {
	synctest.Wait()
	return len(q.done) > 0
}

func TestAUserAloneMayTakeAll(t *testing.T) {
	s := New[string](3)
	var slots []*Slot[string]
	for range 3 {
		slots = append(slots, take(t, s, "john"))
	}
	assert.False(t, s.Slot("john").TryAcquire(), "a fourth of three")
	for _, slot := range slots {
		slot.Release()
		slot.Release() // does nothing
	}
	if s.Held() != 0 || len(s.mu.users) != 0 {
		t.Errorf("%d slots are held, %d users are known, want none", s.Held(), len(s.mu.users))
	}
}

// TestASlotThatIsYieldedComesBack when the waiter has had it, also one of the same user.
func TestASlotThatIsYieldedComesBack(t *testing.T) {
	for _, other := range []string{"mary", "john"} {
		synctest.Test(t, func(t *testing.T) {
			s := New[string](1)
			john := take(t, s, "john")
			if err := john.Yield(t.Context()); err != nil || s.Held() != 1 {
				t.Fatalf("nobody waits: %v, %d held", err, s.Held())
			}
			next := await(t.Context(), s, other)
			back := make(chan error, 1)
			go func() { back <- john.Yield(t.Context()) }()
			if !served(next) || len(back) != 0 {
				t.Fatalf("%s has a slot: %v; the slot that was yielded is back: %d", other, served(next), len(back))
			}
			next.Release()
			if err := <-back; err != nil || s.Held() != 1 {
				t.Errorf("who yielded: %v, %d held", err, s.Held())
			}
		})
	}
}

// TestWhoHasLessKeepsIt: a user never yields a slot to one who has more.
func TestWhoHasLessKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string](3)
		_, _, mary := take(t, s, "john"), take(t, s, "john"), take(t, s, "mary")
		john := await(t.Context(), s, "john")
		err := mary.Yield(t.Context())
		assert.True(t, err == nil && !served(john), "mary gave her only slot to john, who has two: %v", err)
	})
}

func TestReservingLeavesRoomForOthers(t *testing.T) {
	s := NewReserving[string](32)
	for _, c := range []struct {
		user string
		want int
	}{{"john", 16}, {"mary", 8}, {"eve", 4}, {"ann", 2}, {"bob", 1}, {"tom", 1}, {"late", 0}, {"john", 0}} {
		got := 0
		for s.Slot(c.user).TryAcquire() {
			got++
		}
		assert.Equal(t, c.want, got, c.user)
	}
	assert.True(t, NewReserving[string](1).Slot("john").TryAcquire(), "the only slot cannot be taken")
}

// TestAWaiterWhoLeavesTakesNothing, and nothing of it is kept.
func TestAWaiterWhoLeavesTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string](1)
		john := take(t, s, "john")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mary, eve := await(ctx, s, "mary"), await(t.Context(), s, "eve")
		err := <-mary.done
		assert.ErrorIs(t, err, context.DeadlineExceeded, "mary")
		assert.ErrorIs(t, s.Slot("mary").Acquire(ctx), context.DeadlineExceeded, "with a context that has ended")
		john.Release()
		err = <-eve.done
		assert.NoError(t, err, "eve")
		eve.Release()
		assert.Zero(t, s.Held()+s.Waiting()+len(s.mu.users)+s.mu.queue.Len(), "%v %v %v", s.Held(), s.Waiting(), len(s.mu.users))
	})
}

// TestASlotThatComesTooLateIsGivenBack: grant and end at the same time.
func TestASlotThatComesTooLateIsGivenBack(t *testing.T) {
	for range 100 {
		s := New[string](1)
		john := take(t, s, "john")
		ctx, cancel := context.WithCancel(t.Context())
		mary, done := s.Slot("mary"), make(chan error, 1)
		go func() { done <- mary.Acquire(ctx) }()
		go cancel()
		john.Release()
		if err := <-done; err == nil {
			mary.Release()
		}
		require.Zero(t, s.Held()+s.Waiting()+len(s.mu.users), "%d held, %d waiting, want nothing", s.Held(), s.Waiting())
		cancel()
	}
}

// model is the obvious version: who holds how many, and who waits since when.
type model struct {
	size      int
	reserving bool
	held      map[string]int
	served    map[string]int // when a user was served last, or began to wait
	waiting   []*modelWaiter // oldest first
	clock     int
}

type modelWaiter struct {
	user string
	w    *waiter[string]
}

func (m *model) free() int {
	n := m.size
	for _, held := range m.held {
		n -= held
	}
	return n
}

func (m *model) mayTake(u string) bool {
	return m.free() > 0 && (!m.reserving || m.held[u] == 0 || m.held[u]+1 <= m.free()-1)
}

// TestLikeTheObviousVersion: whatever is done, the same callers have slots. The next
// slot goes to the user with the fewest, and to each in turn among equals.
func TestLikeTheObviousVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			size: rapid.IntRange(1, 6).Draw(t, "size"), reserving: rapid.Bool().Draw(t, "reserving"),
			held: map[string]int{}, served: map[string]int{},
		}
		s := New[string](m.size)
		s.reserving = m.reserving
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			u := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user")
			if m.held[u] > 0 && rapid.Bool().Draw(t, "release") {
				(&Slot[string]{semaphore: s, user: u, held: true}).Release()
				m.held[u]--
			} else {
				s.mu.Lock()
				w := s.joinLocked(s.userLocked(u))
				s.serveLocked()
				s.mu.Unlock()
				m.join(u, w)
			}
			m.serve(t)
			m.check(t, s)
		}
	})
}

func (m *model) join(u string, w *waiter[string]) {
	m.clock++
	first := true
	for _, other := range m.waiting {
		first = first && other.user != u
	}
	if first {
		m.served[u] = m.clock
	}
	m.waiting = append(m.waiting, &modelWaiter{u, w})
}

func (m *model) serve(t *rapid.T) {
	for {
		best := -1
		for i, w := range m.waiting {
			if !m.mayTake(w.user) {
				continue
			}
			if best < 0 {
				best = i
				continue
			}
			now := m.waiting[best].user
			if w.user != now && (m.held[w.user] < m.held[now] || m.held[w.user] == m.held[now] && m.served[w.user] < m.served[now]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := m.waiting[best]
		m.waiting = append(m.waiting[:best:best], m.waiting[best+1:]...)
		m.held[w.user]++
		m.clock++
		m.served[w.user] = m.clock
		select {
		case <-w.w.granted:
		default:
			t.Fatalf("%s has no slot, want one", w.user)
		}
	}
}

func (m *model) check(t *rapid.T, s *Semaphore[string]) {
	for _, w := range m.waiting {
		select {
		case <-w.w.granted:
			t.Fatalf("%s has a slot too many", w.user)
		default:
		}
	}
	require.Equal(t, fmt.Sprint(m.size-m.free(), len(m.waiting)), fmt.Sprint(s.Held(), s.Waiting()), "held and waiting")
}
