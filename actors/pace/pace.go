// Package pace bounds what workflows do on their own. Steps counts the steps that instances cause themselves, and says how long what such a
// step causes has to wait. Work has a workflow rest behind dear pieces of work that no caller waits for (actors/workflow/DESIGN.md).
//
//	own step ─► Steps.Step: 0, or after too many without a caller the delay of the next own steps
//	event of a caller ─► Steps.Calm
//	message between instances ─► Work.Begin ─► the actor, Work.Took ─► end
//
// A step is an instance's own when its event was sent on its own, a timer, a child, the parent, or the answer to a
// webhook. The counts are in memory. What was delayed has its time in the store, so a restart or another leader lets an
// instance make a hundred more steps at most.
package pace

import (
	"sync"
	"time"

	"troupe/persistence/key"
)

const (
	// stepsMax is how many own steps within window are made at once.
	stepsMax = 100
	window   = time.Minute
	// A step counts once more for each dearStep units that it costs, some 10 ms.
	dearStep = 200_000
	// The delay doubles with each further step, from delayMin to delayMax.
	delayMin = time.Second
	delayMax = time.Minute
)

// Endless says what is wrong with an instance whose steps wait.
const Endless = "the instance causes its own steps without end; each waits longer, up to a minute"

// Steps has the counts. Its methods are safe for concurrent use; the zero value has none.
type Steps struct {
	mu    sync.Mutex
	of    map[key.ID]*count // guarded by mu
	swept time.Time         // guarded by mu
}

type count struct {
	begun, last time.Time
	steps       int
	delay       time.Duration
}

// isOver reports whether an instance was at rest for longer than its delay accounts for.
func (c *count) isOver(now time.Time) bool { return now.Sub(c.last) > c.delay+window }

// Step counts an own step of an instance, which has cost so many units of expressions, and returns how long what it causes is to wait.
func (s *Steps) Step(id key.ID, cost uint64, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked(now)
	c := s.of[id]
	if c == nil || c.isOver(now) || c.delay == 0 && now.Sub(c.begun) >= window {
		c = &count{begun: now}
		s.of[id] = c
	}
	c.last = now
	if c.steps += 1 + int(cost/dearStep); c.steps > stepsMax { //nolint:gosec // a step costs 10,000,000 at most
		c.delay = min(max(2*c.delay, delayMin), delayMax)
	}
	return c.delay
}

// Has reports whether steps of an instance are counted.
func (s *Steps) Has(id key.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.of[id]
	return has
}

// Calm forgets the steps of an instance.
func (s *Steps) Calm(id key.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// sweepLocked forgets instances that are at rest, once in a while.
func (s *Steps) sweepLocked(now time.Time) {
	if s.of != nil && now.Sub(s.swept) < window {
		return
	}
	if s.swept = now; s.of == nil {
		s.of = map[key.ID]*count{}
	}
	for id, c := range s.of {
		if c.isOver(now) {
			delete(s.of, id)
		}
	}
}
