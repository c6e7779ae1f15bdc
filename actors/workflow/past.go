package workflow

import (
	"context"
	"time"

	"troupe/actors/failure"
	"troupe/actors/instance"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// past is what an instance was after an entry, for the simplest histories.
func (r *Router) past(_ context.Context, workflow string, id key.ID, to uint64) (*instance.Past, error) {
	d, err := r.o.Catalog.Newest(workflow)
	if err != nil {
		return nil, err
	}
	was := map[uint64]statemachine.Instance{}
	sh := r.o.Store.ShardOf(id)
	w := history.NewWalker(r.o.Store, sh, id)
	var in statemachine.Instance
	for n := uint64(1); n <= to; n++ {
		stored, err := r.o.Store.Load(key.Entry(nil, sh, id, n))
		if err != nil {
			return nil, failure.OfStore(err)
		}
		e, err := w.Next(n, stored)
		if err != nil {
			return nil, err
		}
		user, _ := e.Entry.Lookup("user")
		event, _ := e.Entry.Lookup("transitionEvent")
		ts, _ := e.Entry.Lookup("ts")
		at, _ := time.Parse(time.RFC3339, ts.Text())
		caller := &statemachine.Caller{ID: user.Text()}
		var result statemachine.Result
		kept := !e.Digest
		switch {
		case n == 1:
			result, err = d.Create(statemachine.Creation{ID: instanceid.Text(id), Caller: caller, Now: at, Past: true})
		case event.Text() == statemachine.ResetEvent:
			back, _ := data.Value(e.Brought).Lookup("to")
			reason, _ := data.Value(e.Brought).Lookup("reason")
			number, _ := back.Int64()
			then := was[uint64(number)]
			result, err = d.Reset(&in, statemachine.Reset{Then: &then, To: uint64(number), Reason: reason.Text(), Caller: caller, Now: at})
		default:
			result, kept, err = d.Replay(&in, statemachine.Event{Name: statemachine.EventName(event.Text()), Data: data.Value(e.Brought), Caller: caller, Now: at})
		}
		if err != nil || !kept {
			return nil, failure.Refuse(failure.ErrNotKept, "entry %d has not kept all: %v", n, err)
		}
		in = result.Instance
		was[n] = in
	}
	return &instance.Past{Instance: in, Of: d}, nil
}
