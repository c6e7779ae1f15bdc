package workflow

import (
	"context"
	"errors"
	"time"

	"troupe/actors/identity"
	"troupe/statemachine/filter"
)

// lightBytes is how large an instance may be so that the filter of a watch looks
// at it at once. What is larger, or takes longer than some milliseconds, is done
// with a slot of the user among the queries: watches are many, and each entry
// concerns all.
const lightBytes = 16 << 10

// wants asks rights and filter. next is the place behind the item.
func (w *watcher) wants(item *feedItem, next uint64) (bool, error) {
	if !w.mayRead(&item.state, item.of) {
		return false, nil
	}
	if w.req.Filter == "" {
		return true, nil
	}
	d := filter.Document{
		ID: item.name, WorkflowID: w.req.WorkflowID, States: item.states,
		Public: item.state.Public, Private: item.state.Private,
	}
	if len(d.States)+len(d.Public)+len(d.Private) <= lightBytes {
		long := false
		d.Ended = func() bool { long = true; return true }
		if ok := w.filter.Match(d); !long {
			return ok, nil
		}
	}
	return w.wantsWithSlot(d, next)
}

// verdict is the end of a look that took long.
type verdict struct {
	match    bool
	err      error
	panicked any
}

// wantsWithSlot is the filter's part of wants for what takes long. A look that
// takes longer than a query may loses the entry. The caller hears beats meanwhile.
func (w *watcher) wantsWithSlot(d filter.Document, next uint64) (bool, error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan verdict, 1)
	go func() {
		var v verdict
		defer func() {
			v.panicked = recover()
			done <- v
		}()
		v.match, v.err = w.router.matchWithSlot(ctx, w.req.Caller.ID, w.filter, d)
	}()
	var told error
	for {
		select {
		case v := <-done:
			switch {
			case v.panicked != nil:
				panic(v.panicked) // whoever called Watch catches it
			case told != nil:
				return false, told
			case errors.Is(v.err, context.DeadlineExceeded) && w.ctx.Err() == nil:
				return false, w.lose(next)
			case v.err != nil && w.router.watching.Err() != nil:
				return false, errStopping
			}
			return v.match, v.err
		case <-w.beat.C:
			// NB: the look holds a slot, and does not wait for a slow reader.
			if told = w.tell(WatchEvent{Kind: WatchBeat}); told != nil {
				cancel()
			}
		}
	}
}

// matchWithSlot waits for a slot, and matches in it like a query.
func (r *Router) matchWithSlot(ctx context.Context, user identity.UserID, f *filter.Filter, d filter.Document) (bool, error) {
	s := &slots{of: r.queries, user: user, busy: r.queries.busy.Slot(user)}
	if err := s.resume(ctx); err != nil {
		return false, err
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, r.o.QueryTimeMax)
	defer cancel()
	p := pace{router: r, ctx: ctx, slots: s, resumed: time.Now()}
	var ended error
	d.Ended = func() bool {
		if ended == nil {
			ended = p.look()
		}
		return ended != nil
	}
	match := f.Match(d)
	return match, ended
}
