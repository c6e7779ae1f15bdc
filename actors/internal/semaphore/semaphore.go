// Package semaphore shares slots fairly between users, whatever names them. The next free slot goes to the waiting user
// with the fewest slots; among equals, to the one who was served least recently; the waiters of one user are served in
// their order. A semaphore of New gives a user who is alone all slots: it suits work that gives its slot back soon, or
// yields. One of NewReserving keeps slots for users who come later: it suits slots that nobody can take back. Callers
// bound how many wait, or for how long.
package semaphore

import (
	"container/list"
	"context"
	"sync"
)

// Semaphore is a number of slots.
//
// Invariant: a slot that a waiting user may take is given to that user before mu is unlocked. So TryAcquire takes only
// slots that no waiting user could have had.
type Semaphore[U comparable] struct {
	size      int
	reserving bool

	mu struct {
		sync.Mutex
		held  int
		users map[U]*user[U] // who hold slots or wait for one
		queue list.List      // of *user: who wait, served least recently first
	}
}

type user[U comparable] struct {
	id      U
	held    int
	waiters list.List     // of *waiter, oldest first
	queued  *list.Element // in the queue; nil without waiters
}

type waiter[U comparable] struct {
	user    *user[U]
	place   *list.Element // among the user's waiters; nil once it was granted a slot
	granted chan struct{} // closed then
}

// New makes a semaphore in which a user may take every free slot.
func New[U comparable](size int) *Semaphore[U] {
	s := &Semaphore[U]{size: size}
	s.mu.users = map[U]*user[U]{}
	return s
}

// NewReserving makes a semaphore in which a user may take a second slot, and further ones, only while at least as many
// stay free as the user then holds.
func NewReserving[U comparable](size int) *Semaphore[U] {
	s := New[U](size)
	s.reserving = true
	return s
}

// Held is how many slots are held.
func (s *Semaphore[U]) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.held
}

// Waiting is how many callers wait.
func (s *Semaphore[U]) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for e := s.mu.queue.Front(); e != nil; e = e.Next() {
		n += userAt[U](e).waiters.Len()
	}
	return n
}

// Slot is a place for one slot of a user's. One goroutine uses it at a time.
type Slot[U comparable] struct {
	semaphore *Semaphore[U]
	user      U
	held      bool
}

// Slot returns a place for a slot. It holds none yet.
func (s *Semaphore[U]) Slot(user U) *Slot[U] { return &Slot[U]{semaphore: s, user: user} }

// TryAcquire takes a slot if there is one that the user may take now. A slot that is held stays held.
func (l *Slot[U]) TryAcquire() bool {
	s := l.semaphore
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.held {
		return true
	}
	u := s.userLocked(l.user)
	if l.held = s.mayTakeLocked(u); l.held {
		u.held++
		s.mu.held++
	}
	s.dropLocked(u)
	return l.held
}

// Acquire waits for a slot, and takes it. The only error is that of ctx: then no slot is held.
func (l *Slot[U]) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !l.held {
		return err
	}
	if l.TryAcquire() {
		return nil
	}
	s := l.semaphore
	s.mu.Lock()
	w := s.joinLocked(s.userLocked(l.user))
	s.serveLocked() // NB: a slot may have come free since TryAcquire
	s.mu.Unlock()
	return l.wait(ctx, w)
}

// Release gives the slot back, if it is held.
func (l *Slot[U]) Release() {
	if !l.held {
		return
	}
	l.held = false
	s := l.semaphore
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.mu.users[l.user]
	u.held--
	s.mu.held--
	s.serveLocked()
	s.dropLocked(u)
}

// Yield gives the slot to somebody who waits and has no more slots than the user would have left, another of the user's
// own included, and then waits for the next. Otherwise it returns at once.
func (l *Slot[U]) Yield(ctx context.Context) error {
	s := l.semaphore
	s.mu.Lock()
	u := s.mu.users[l.user]
	if !l.held || s.mu.queue.Len() == 0 {
		s.mu.Unlock()
		return nil
	}
	u.held--
	s.mu.held--
	next := s.nextLocked()
	if next == nil || next.held > u.held {
		u.held++
		s.mu.held++
		s.mu.Unlock()
		return nil
	}
	l.held = false
	s.grantLocked(next)
	w := s.joinLocked(u)
	s.mu.Unlock()
	return l.wait(ctx, w)
}

func (l *Slot[U]) wait(ctx context.Context, w *waiter[U]) error {
	select {
	case <-w.granted:
		l.held = true
		return nil
	case <-ctx.Done():
	}
	if l.held = !l.semaphore.leave(w); l.held { // the slot came at the same time
		l.Release()
	}
	return ctx.Err()
}

// leave is false when the waiter was granted a slot.
func (s *Semaphore[U]) leave(w *waiter[U]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.place == nil {
		return false
	}
	s.unqueueLocked(w)
	s.dropLocked(w.user)
	return true
}

// userLocked returns the part of a user; dropLocked must follow when it gets nothing.
func (s *Semaphore[U]) userLocked(id U) *user[U] {
	u := s.mu.users[id]
	if u == nil {
		u = &user[U]{id: id}
		s.mu.users[id] = u
	}
	return u
}

// dropLocked forgets a user who neither holds nor waits.
func (s *Semaphore[U]) dropLocked(u *user[U]) {
	if u.held == 0 && u.queued == nil {
		delete(s.mu.users, u.id)
	}
}

func (s *Semaphore[U]) mayTakeLocked(u *user[U]) bool {
	free := s.size - s.mu.held
	if !s.reserving || u.held == 0 {
		return free > 0
	}
	return u.held+1 <= free-1
}

func (s *Semaphore[U]) joinLocked(u *user[U]) *waiter[U] {
	w := &waiter[U]{user: u, granted: make(chan struct{})}
	w.place = u.waiters.PushBack(w)
	if u.queued == nil {
		u.queued = s.mu.queue.PushBack(u)
	}
	return w
}

func (s *Semaphore[U]) unqueueLocked(w *waiter[U]) {
	u := w.user
	u.waiters.Remove(w.place)
	w.place = nil
	if u.waiters.Len() == 0 {
		s.mu.queue.Remove(u.queued)
		u.queued = nil
	}
}

func (s *Semaphore[U]) nextLocked() *user[U] {
	var next *user[U]
	for e := s.mu.queue.Front(); e != nil; e = e.Next() {
		if u := userAt[U](e); next == nil || u.held < next.held {
			next = u
		}
	}
	if next == nil || !s.mayTakeLocked(next) { // NB: whoever has more may take none either
		return nil
	}
	return next
}

func (s *Semaphore[U]) serveLocked() {
	for u := s.nextLocked(); u != nil; u = s.nextLocked() {
		s.grantLocked(u)
	}
}

// grantLocked gives a slot to the first of a user's waiters. The user then follows all others.
func (s *Semaphore[U]) grantLocked(u *user[U]) {
	w, _ := u.waiters.Front().Value.(*waiter[U])
	s.unqueueLocked(w)
	if u.queued != nil {
		s.mu.queue.MoveToBack(u.queued)
	}
	u.held++
	s.mu.held++
	close(w.granted)
}

func userAt[U comparable](e *list.Element) *user[U] {
	u, _ := e.Value.(*user[U])
	return u
}
