package workflow

import (
	"context"
	"encoding/json"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/statemachine"
)

// Summary returns an instance as people see it. The errors are those of Load.
func (r *Router) Summary(ctx context.Context, req *LoadRequest) (*Summary, error) {
	out := &Summary{}
	var id persistence.ID
	err := r.look(ctx, req, func(i *instance) error {
		in := &i.state
		id, out.Sequence, out.Of, out.Form = i.id, in.Sequence, i.of, i.form
		out.Created, out.Updated, out.IsDone, out.IsEnded = in.CreatedAt, in.UpdatedAt, i.of.IsDone(in), in.IsEnded()
		out.Title, out.At = i.of.Title(in), i.of.Positions(in)
		columns := i.of.Columns()
		for k := range columns {
			out.Values = append(out.Values, columns[k].Value(in))
		}
		return nil
	})
	if err == nil {
		out.Requester, err = task.LoadRequester(r.store, r.store.ShardOf(id), id)
	}
	if err != nil {
		return nil, failure.In("summary of", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return out, nil
}

// entry is what is read of an entry of a history.
type entry struct {
	User  string                 `json:"user"`
	Event statemachine.EventName `json:"transitionEvent"`
	Start []statemachine.NodeID  `json:"startState"`
	End   []statemachine.NodeID  `json:"endState"`
}

// entries reads the entries after seen up to last, or fewer where they are large.
func (r *Router) entries(id persistence.ID, seen, last uint64) (out []entry, err error) {
	joined, _, err := history.Page(r.store, r.store.ShardOf(id), id, seen+1, last, false)
	if err != nil {
		return nil, failure.OfStore(err)
	}
	if err := json.Unmarshal(append(append([]byte{'['}, joined...), ']'), &out); err != nil {
		return nil, failure.OfStore(persistence.ErrCorrupt)
	}
	return out, nil
}

// How much of a history is read for the way that an instance came.
const (
	traceEntriesMax = 5_000
	tracePage       = 250
	traceNodesMax   = 200_000
)

// Trace returns where an instance stands and the way that it came: of a long history the newest entries. The
// errors are those of Load.
func (r *Router) Trace(ctx context.Context, req *LoadRequest) (*Trace, error) {
	out := &Trace{}
	var id persistence.ID
	err := r.look(ctx, req, func(i *instance) error {
		id, out.Sequence, out.Of, out.At = i.id, i.state.Sequence, i.of, i.of.Positions(&i.state)
		return nil
	})
	nodes := 0
	for last := out.Sequence; err == nil && last > 0 && len(out.Steps) < traceEntriesMax && nodes < traceNodesMax; {
		seen := last - min(last, tracePage)
		var page []entry
		page, err = r.entries(id, seen, last)
		for _, e := range page {
			out.Steps = append(out.Steps, TraceStep{Event: e.Event, Start: e.Start, End: e.End})
			nodes += len(e.Start) + len(e.End)
		}
		last = seen
	}
	if err != nil {
		return nil, failure.In("way of", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return out, nil
}

// Presented returns a version of a workflow's definition, 0 being the newest, for who may read or create its instances:
// failure.ErrNotFound, ErrForbidden, or ErrExecution when it cannot be read. The rights are those of the newest version.
func (r *Router) Presented(p *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error) {
	d, err := r.presented(p, workflowID, version)
	return d, failure.In("presentation of", workflowID, err)
}

func (r *Router) presented(p *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error) {
	newest, err := r.catalog.Newest(workflowID)
	if err != nil {
		return nil, err
	}
	caller, now := catalog.CallerOf(p), r.o.Clock()
	if _, mayCreate := r.catalog.Choice(workflowID, caller, now); !mayCreate && newest.ReadRight(caller, now) == statemachine.Denied && !p.Has(identity.Workflows) {
		return nil, failure.ErrForbidden
	}
	if version == 0 {
		return newest, nil
	}
	return r.catalog.Find(workflowID, version)
}

// Standing counts how many instances stand where, as query.Service says.
func (r *Router) Standing(ctx context.Context, p *identity.Principal, workflowID string, at []statemachine.Position) ([]query.Standing, error) {
	return r.queries.Standing(ctx, p, workflowID, at)
}
