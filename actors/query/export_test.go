package query

import (
	"context"
	"errors"
	"time"

	"troupe/actors/identity"
	"troupe/persistence/key"
)

// What tests outside the package ask of its inside.

// CheckEvery is how many steps a query makes between two looks at the clock.
const CheckEvery = checkEvery

// Limits are where a plan or a page ends. Tests set them before they ask.
func (s *Service) Limits() *limits { return &s.limits }

// OnTwoProcessors has queries share two, however many there are.
func (s *Service) OnTwoProcessors() {
	s.queries.shares.processors = func(int) int { return 2 }
}

// Slots are what queries or lists hold.
type Slots struct{ *slots }

// Leave gives them back.
func (s Slots) Leave() { s.leave() }

// Pause lets others have them.
func (s Slots) Pause() { s.pause() }

// Resume waits for them again.
func (s Slots) Resume(ctx context.Context) error { return s.resume(ctx) }

// Check is what work does now and then.
func (s Slots) Check(ctx context.Context) error { return (&throttle{ctx: ctx, slots: s.slots}).check() }

// Enter takes slots among the queries, or among the lists.
func (s *Service) Enter(ctx context.Context, lists bool, user identity.UserID) (Slots, error) {
	of := s.queries
	if lists {
		of = s.lists
	}
	got, err := s.enter(ctx, of, user, time.Second)
	return Slots{got}, err
}

// Collected is what a query collects of its first index, of at most so many ids.
func (s *Service) Collected(req *Request, most int) (count int, all bool, err error) {
	err = s.with(context.Background(), req, func(q *query) error {
		ids, whole, err := q.collect(&q.accesses(q.filter)[0], most)
		count, all = len(ids), whole
		return err
	})
	return count, all, err
}

// Choose lets a query choose its plan.
func (s *Service) Choose(ctx context.Context, req *Request) error {
	return s.with(ctx, req, func(q *query) error { _, err := q.choose(); return err })
}

// ReadHistory lets a query read a history when it is about to look whether it must end.
func (s *Service) ReadHistory(ctx context.Context, req *Request, id key.ID) error {
	return s.with(ctx, req, func(q *query) error {
		q.unchecked = checkBytes - 1
		q.history(&candidate{id: id})
		return q.failed
	})
}

// with calls do with a query that is ready to choose its plan.
func (s *Service) with(ctx context.Context, req *Request, do func(q *query) error) error {
	q, err := s.newQuery(req, nil)
	if err != nil {
		return err
	}
	if q.slots, err = s.enter(context.Background(), s.queries, req.Caller.ID, time.Minute); err != nil {
		return err
	}
	defer q.slots.leave()
	q.ctx = ctx
	q.openSnapshot()
	return errors.Join(do(q), q.snapshot.Close())
}
