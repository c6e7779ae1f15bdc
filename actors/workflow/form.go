package workflow

import (
	"cmp"
	"context"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// FormOf returns what an instance's form was made from, which never changes. It asks
// for no right. An instance that is no form is failure.ErrNotFound.
func (r *Router) FormOf(workflowID, instanceID string) (*form.Form, error) {
	id, ok := instanceid.Parse(instanceID)
	if !ok {
		return nil, failure.ErrNotFound
	}
	epoch, err := r.epochOf(r.store.ShardOf(id))
	if err != nil {
		return nil, err
	}
	stored, err := r.loadLed(workflowID, id, epoch)
	if err != nil {
		return nil, err
	}
	record, err := statemachine.ParseRecord(stored)
	if err == nil && len(record.Attachment) == 0 {
		return nil, failure.ErrNotFound
	}
	var f *form.Form
	if err == nil {
		f, err = form.Parse(record.Attachment)
	}
	if err != nil {
		return nil, failure.Errorf(failure.ErrExecution, "form %s/%s: %w", workflowID, instanceID, err)
	}
	return f, nil
}

// Form returns an instance as a form. The errors are those of Load; an instance
// that is no form is failure.ErrNotFound.
func (r *Router) Form(ctx context.Context, req *form.Request) (*form.View, error) {
	var out *form.View
	load := &message.Load{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID}
	err := r.look(ctx, load, func(i *instance) (err error) {
		out, err = i.formView(req)
		return err
	})
	return out, failure.In("form", req.WorkflowID+"/"+req.InstanceID, err)
}

func (i *instance) formView(req *form.Request) (*form.View, error) {
	if i.form == nil {
		return nil, failure.ErrNotFound
	}
	draft, err := i.loadDraft(i.formDraft(req.Caller.ID))
	if err != nil {
		return nil, err
	}
	return &form.View{
		Form: i.form, Sequence: i.state.Sequence, When: i.state.CreatedAt.UnixMilli(), Public: i.state.Public,
		States: i.of.States(&i.state), Nodes: statemachine.NodeNames(i.of.Positions(&i.state)), Draft: draft,
		Editable: i.mayWriteForms(req) == nil && i.maySubmit(req) == nil,
	}, nil
}

// draftPlace is where a draft is kept.
type draftPlace struct {
	key []byte
	// after is a time in Unix milliseconds: older drafts do not count any more.
	after int64
}

// formDraft is the place of a user's draft for the instance as a form. One from before the form left its start does not count:
// what was submitted since is newer.
func (i *instance) formDraft(user identity.UserID) draftPlace {
	return draftPlace{key.Draft(nil, i.shard, i.id, string(user)), i.form.LeftAt}
}

// loadDraft returns a draft, nil without one.
func (i *instance) loadDraft(at draftPlace) (*form.Draft, error) {
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	return form.LoadDraft(store, at.key, at.after)
}

// mayWrite asks whether the caller sees the form, has the privilege to write it, and
// has a right to send events of the workflow: failure.ErrNotFound or
// failure.ErrForbidden if not.
func (i *instance) mayWrite(req *form.Request) error {
	if err := i.maySee(req.Caller); err != nil {
		return err
	}
	return i.mayWriteForms(req)
}

// maySee asks whether the instance is a form that the caller sees.
func (i *instance) maySee(caller *identity.Principal) error {
	if err := i.mayRead(caller); err != nil {
		return err
	}
	if i.form == nil {
		return failure.ErrNotFound
	}
	return nil
}

// mayWriteForms makes the checks of mayWrite without visibility: for a caller who is
// known to see the form, and for a repeated submission after which the caller no longer
// does.
func (i *instance) mayWriteForms(req *form.Request) error {
	newest, err := i.router.catalog.Newest(i.workflowID)
	if err != nil {
		return err
	}
	if req.Privilege != "" && !req.Caller.Has(req.Privilege) {
		return failure.Needs(req.Privilege)
	}
	if newest.SendRight(catalog.CallerOf(req.Caller), i.router.o.Clock()) == statemachine.Denied {
		return failure.ErrForbidden
	}
	return nil
}

// maySubmit asks whether the event that submits the form would be taken now:
// failure.ErrNotAllowed, failure.ErrForbidden or req.Refusal if not.
func (i *instance) maySubmit(req *form.Request) error {
	caller := catalog.CallerOf(req.Caller)
	if err := i.mayReceive(&message.Event{}, caller, i.router.o.Clock()); err != nil {
		return err
	}
	if req.Refusal != nil {
		return req.Refusal
	}
	for _, e := range i.view().Available(caller, i.router.o.Clock()) {
		if string(e.Name) == req.Event && e.Guard != statemachine.GuardFalse && len(e.Transitions) > 0 {
			return nil
		}
	}
	return failure.ErrNotAllowed
}

// mayDraft asks what SaveDraft demands. Whoever sees the form can drop a draft that is
// left over.
func (i *instance) mayDraft(req *message.Draft) error {
	if req.Data == nil {
		return i.maySee(req.Caller)
	}
	if err := i.mayWrite(&req.Request); err != nil {
		return err
	}
	return i.maySubmit(&req.Request)
}

// SaveDraft keeps or drops the caller's draft; it is durable when SaveDraft
// returns. Besides the errors of Send: failure.ErrPrecondition, and failure.ErrNotAllowed when
// there is something to keep and the caller may not submit the form now.
func (r *Router) SaveDraft(_ context.Context, req *message.Draft) (form.Draft, error) {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(req.WorkflowID, req.InstanceID, saveDraft{req})
	}
	if err != nil {
		return form.Draft{}, failure.In("draft for", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return req.Saved, nil
}

// Submit sends the event that submits the form, and removes the caller's draft in the
// same commit. An event that no transition takes is failure.ErrNotAllowed, whatever the
// definition says about it. The other errors are those of Send, but whoever does not
// see the form gets failure.ErrNotFound alone, unless it repeats a submission of the
// caller's.
func (r *Router) Submit(_ context.Context, req *message.Submit) (reply *message.Reply, err error) {
	if err = r.accepting(); err == nil {
		reply, err = r.ask(req.WorkflowID, req.InstanceID, submitForm{req})
	}
	return reply, failure.In("submit", req.WorkflowID+"/"+req.InstanceID, err)
}

// submitForm is the request of Submit.
type submitForm struct{ *message.Submit }

func (req submitForm) run(i *instance, c *call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, WithHistory: req.WithHistory,
		As: catalog.CallerOf(req.Caller),
	}
	return i.take(c, event, submittedForm{&req.Request})
}

// submission is what an event submits.
type submission interface {
	// mayRepeat asks who repeats one that has its answer.
	mayRepeat(*instance) error
	// may asks about a new one.
	may(*instance) error
	// draft is the key of the draft that goes with it.
	draft(*instance) []byte
}

// submittedForm is a form.
type submittedForm struct{ *form.Request }

func (f submittedForm) mayRepeat(i *instance) error { return i.mayWriteForms(f.Request) }

func (f submittedForm) may(i *instance) error {
	if err := i.mayWrite(f.Request); err != nil {
		return err
	}
	return f.Refusal
}

func (f submittedForm) draft(i *instance) []byte { return i.formDraft(f.Caller.ID).key }

// saveDraft is the request of SaveDraft.
type saveDraft struct{ *message.Draft }

func (req saveDraft) run(i *instance, c *call) error {
	if err := i.mayDraft(req.Draft); err != nil {
		return err
	}
	return i.keepDraft(c, i.formDraft(req.Caller.ID), req.Draft)
}

// keepDraft keeps or drops a draft, if the one that there is allows it.
func (i *instance) keepDraft(c *call, at draftPlace, req *message.Draft) error {
	before := &form.Draft{}
	if req.Data != nil || req.Demands() { // what cannot be read can be dropped
		present, err := i.loadDraft(at)
		if err != nil {
			return err
		}
		if !req.Holds(present) {
			return failure.ErrPrecondition
		}
		if present != nil {
			before = present
		}
	}
	now := i.router.o.Clock().UnixMilli()
	w := i.writes()
	if req.Data == nil {
		w.Delete(at.key)
	} else {
		// NB: the clock keeps revisions apart that have a submission in between, and
		// a draft from being older than the move that it follows.
		i.revision = max(before.Revision+1, i.revision+1, uint64(now))
		req.Saved = form.Draft{Revision: i.revision, SavedAt: max(now, at.after+1), Template: req.Template, Data: req.Data}
		w.Set(at.key, req.Saved.Append(nil))
	}
	i.handOver(w, c, &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: i.state.Sequence})
	return nil
}

// setForm takes over what was stored beside the instance.
func (i *instance) setForm(attachment []byte) error {
	i.form, i.attachment = nil, nil
	if len(attachment) == 0 {
		return nil
	}
	f, err := form.Parse(attachment)
	i.form, i.attachment = f, attachment
	return err
}

// putForm brings the form up to date with the present state, and writes the row
// of its owner's list where that changes. statesBefore are the positions that
// there were. It comes before putRecord, which writes the form itself.
func (i *instance) putForm(w *persistence.Writes, ch *change, statesBefore []byte) {
	created := ch.form
	if created == nil && i.form == nil {
		return
	}
	at, done := i.state.UpdatedAt, i.of.IsDone(&i.state)
	newID := func() string { return instanceid.Text(i.router.ids.Draw(at)) }
	var next form.Form
	if created != nil {
		next = created.Begin(i.of.States(&i.state), done, at, newID)
	} else {
		next = i.form.Next(i.of.States(&i.state), done, at, newID)
		if next.Moved() && !i.form.Moved() { // by whatever event: the caller's draft is over
			w.Delete(key.Draft(nil, i.shard, i.id, ch.caller))
		}
	}
	attachment := next.Append(nil)
	changed := string(attachment) != string(i.attachment) || string(i.of.States(&i.state)) != string(statesBefore)
	before := i.form
	i.form, i.attachment = &next, attachment
	if changed {
		row := form.Row{Form: next, WorkflowID: i.workflowID, Nodes: statemachine.NodeNames(i.of.Positions(&i.state))}
		row.Put(w, i.spot(), before)
	}
}

// spot is what the keys of the instance's list rows have of it.
func (i *instance) spot() form.Spot {
	return form.Spot{Shard: i.shard, ID: i.id, Made: i.state.CreatedAt.UnixMilli()}
}

// lookCreatorRow finds out what the row takes that whoever created the instance has of it, if a change may write it.
func (i *instance) lookCreatorRow(ch *change) error {
	switch {
	case ch.form != nil, i.form != nil:
	case ch.created:
		i.creatorRow.Begin(ch.caller)
	case form.IsMoved(i.of, cmp.Or(ch.of, i.of), &i.state, &ch.next):
		return i.creatorRow.Look(i.rows, i.spot())
	}
	return nil
}

// FormPage returns a part of that list, as form.ReadPage says.
func (r *Router) FormPage(ctx context.Context, req *form.PageRequest) (*form.Page, error) {
	return form.ReadPage(ctx, r.queries, req)
}

// Forms calls yield with a user's forms of one kind and category, as form.List says.
func (r *Router) Forms(ctx context.Context, req *form.ListRequest, yield func(form.Listed) error) error {
	return form.List(ctx, r.queries, req, yield)
}
