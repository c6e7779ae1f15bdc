package watch

import (
	"context"
	"errors"

	"troupe/statemachine/filter"
)

// lightBytes is how large an instance may be to be matched at once. Larger ones take a slot of the user among the
// queries.
const lightBytes = 16 << 10

func (w *watcher) matches(item *Item) (bool, error) {
	if !w.mayRead(&item.State, item.Of) {
		return false, nil
	}
	if w.req.Filter == "" {
		return true, nil
	}
	d := filter.Document{
		ID: item.Name, WorkflowID: w.req.WorkflowID, States: item.States,
		Public: item.State.Public, Private: item.State.Private,
	}
	if len(d.States)+len(d.Public)+len(d.Private) <= lightBytes {
		long := false
		d.Ended = func() bool { long = true; return true }
		if ok := w.filter.Match(d); !long {
			return ok, nil
		}
	}
	return w.matchesSlowly(d)
}

type verdict struct {
	match    bool
	err      error
	panicked any
}

// What takes longer than a query may loses the entry. The caller gets heartbeats meanwhile.
func (w *watcher) matchesSlowly(d filter.Document) (bool, error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan verdict, 1)
	go func() {
		var v verdict
		defer func() {
			v.panicked = recover()
			done <- v
		}()
		v.match, v.err = w.service.o.Queries.Match(ctx, w.req.Caller.ID, w.filter, d)
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
				return false, w.lose()
			case v.err != nil && w.service.stopped.Err() != nil:
				return false, errStopped
			}
			return v.match, v.err
		case <-w.heartbeat.C:
			// NB: the match holds a slot, and does not wait for a slow reader.
			if told = w.tell(Event{Kind: Heartbeat}); told != nil {
				cancel()
			}
		}
	}
}
