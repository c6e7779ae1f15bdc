package workflow

import (
	"context"
	"encoding/binary"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/instance"
	"troupe/actors/internal/history"
	"troupe/actors/message"
	"troupe/actors/past"
	"troupe/actors/query"
	"troupe/persistence/key"
)

// pageMax is the most entries of a page.
const pageMax = 1000

// Events lists what the caller may send to an instance now, each with its transitions, the result of its guard and the
// schema of its data. The errors are those of Load.
func (r *Router) Events(req *message.Load) (*message.Events, error) {
	out := &message.Events{}
	_, err := r.askReader(req, instance.SeeEvents(req, out))
	if err != nil {
		return nil, failure.In("events of", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return out, nil
}

// Permission finds out whether the caller may send an event to an instance now, also a caller who may not see it.
// failure.ErrNotFound: there is no such instance.
func (r *Router) Permission(req *message.Load, event string) (p message.Permission, err error) {
	if _, err = r.o.Catalog.Newest(req.WorkflowID); errors.Is(err, failure.ErrNotFound) {
		err = failure.Refuse(failure.ErrNotFound, "there is no workflow %s", req.WorkflowID)
	}
	if err == nil {
		_, err = r.ask(req.WorkflowID, req.InstanceID, instance.Why{Load: req, Event: event, Answer: &p})
		if errors.Is(err, failure.ErrNotFound) {
			err = failure.Refuse(failure.ErrNotFound, "%s has no instance %s", req.WorkflowID, req.InstanceID)
		}
	}
	if err != nil {
		return message.Permission{}, failure.In("permission at", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return p, nil
}

// History returns a part of an instance's history, however long it is. The errors are those of Load, and
// failure.ErrInvalid for a cursor of another list.
func (r *Router) History(req *message.History) (*message.Page, error) {
	page, err := r.history(req)
	return page, failure.In("history of", req.WorkflowID+"/"+req.InstanceID, err)
}

func (r *Router) history(req *message.History) (*message.Page, error) {
	if req.Limit < 1 || req.Limit > pageMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", pageMax)
	}
	entries, begun := query.List{"history", req.WorkflowID, req.InstanceID}, false
	if req.Descending {
		entries = append(entries, "desc")
	}
	var seen uint64 // the last entry of the page before
	if req.Cursor != "" {
		position, err := entries.Position(req.Cursor)
		if err != nil {
			return nil, err
		}
		if len(position) != 8 {
			return nil, query.ErrCursor
		}
		seen, begun = binary.BigEndian.Uint64(position), true
	}
	load := message.Load{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID}
	id, last, err := r.locate(&load) // entries up to last are durable, and may be seen
	if err != nil {
		return nil, err
	}
	req.ByPrivilege = load.ByPrivilege
	if seen > last || req.Descending && begun && seen < 2 {
		return nil, query.ErrCursor
	}
	first, end, final := seen+1, min(last, seen+uint64(req.Limit)), last
	if req.Descending {
		if first, final = last, 1; begun {
			first = seen - 1
		}
		end = first - min(first-1, uint64(req.Limit)-1)
	}
	page := &message.Page{}
	if first > last {
		return page, nil // it came back with the cursor of what was the end
	}
	if page.Entries, end, err = history.Page(r.o.Store, r.o.Store.ShardOf(id), id, first, end, req.WithData); err != nil {
		return nil, failure.OfStore(err)
	}
	if end != final {
		page.Next = entries.Cursor(binary.BigEndian.AppendUint64(nil, end))
	}
	return page, nil
}

func (r *Router) loadAt(ctx context.Context, req *message.Load) (*message.Reply, error) {
	id, last, err := r.locate(req) // entries up to last are durable, and may be seen
	if err != nil {
		return nil, err
	}
	if req.At > last {
		return nil, failure.Refuse(failure.ErrNotFound, "the history has %d entries", last)
	}
	then, err := r.moment(ctx, req, id, req.At)
	if err != nil {
		return nil, err
	}
	reply := instance.Shown(req.WorkflowID, then.Of, &then.Instance, req.WithHistory)
	if req.WithHistory {
		joined, _, err := history.Load(r.o.Store, r.o.Store.ShardOf(id), id, req.At)
		if err != nil {
			return nil, failure.OfStore(err)
		}
		reply.History, reply.HistoryFrom = joined.Text, joined.From
	}
	return reply, nil
}

// moment is an instance after an entry of its history. NB: the last moment of a long one takes seconds of processor time, so it waits its turn
// like a query.
func (r *Router) moment(ctx context.Context, req *message.Load, id key.ID, n uint64) (then past.Moment, err error) {
	var user identity.UserID
	if req.Caller != nil {
		user = req.Caller.ID
	}
	from := past.Source{Store: r.o.Store, Catalog: r.o.Catalog, Workflow: req.WorkflowID, ID: id}
	err = r.Queries.Work(ctx, user, func(check func() error) (err error) {
		then, err = from.At(check, n)
		return err
	})
	if errors.Is(err, past.ErrNotKept) {
		err = failure.Refuse(failure.ErrNotKept, "%w", err)
	}
	return then, err
}

// View calls f inside the instance's actor when the caller may see the instance, and returns when what f saw is durable.
func (r *Router) View(req *message.Load, f func(message.View)) error {
	_, err := r.askReader(req, instance.See(req, f))
	return err
}

// Locate implements watch.Instances.
func (r *Router) Locate(caller *identity.Principal, workflowID, instanceID string) (id key.ID, sequence uint64, err error) {
	return r.locate(&message.Load{Caller: caller, WorkflowID: workflowID, InstanceID: instanceID})
}

func (r *Router) locate(of *message.Load) (id key.ID, sequence uint64, err error) {
	err = r.View(of, func(v message.View) { id, sequence = v.ID, v.Instance.Sequence })
	return id, sequence, err
}
