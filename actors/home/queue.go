package home

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/semaphore"
	"troupe/statemachine"
)

// Queue lets definitions that somebody sends be read and checked one after the other, fairly between users: that takes
// seconds for a file at its limits (statemachine/DEFINITION.md, "Limits"), and must leave a processor to the events.
type Queue struct {
	ctx   context.Context //nolint:containedctx // the life of the queue
	slots *semaphore.Semaphore[identity.UserID]
}

// checkFree is how long a definition is checked without a break.
const checkFree = 20 * time.Millisecond

// NewQueue returns a queue that ends with ctx.
func NewQueue(ctx context.Context) *Queue {
	// NB: one of two processors, else two.
	return &Queue{ctx, semaphore.New[identity.UserID](max(1, min(2, runtime.GOMAXPROCS(0)-1)))}
}

// Do calls check when it is the user's turn. parser is parser until ctx or the queue ends: then check is not called, or
// its parser gives up between two expressions.
func (q *Queue) Do(ctx context.Context, user identity.UserID, parser *statemachine.Parser, check func(parser *statemachine.Parser) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)()
	pauses := breaks.New(checkFree, 1, 1)
	ended := func() error { return cmp.Or(q.ctx.Err(), ctx.Err()) } // NB: AfterFunc cancels a little later
	asked := func() error {
		pauses.Take(ctx.Done())
		return ended()
	}
	slot := q.slots.Slot(user)
	err := cmp.Or(ended(), slot.Acquire(ctx))
	defer slot.Release()
	if err == nil {
		pauses.Begin()
		err = check(parser.Until(asked))
	}
	if why := ended(); why != nil && err != nil {
		return failure.Errorf(failure.ErrUnavailable, "check a definition: %w", why)
	}
	return err
}
