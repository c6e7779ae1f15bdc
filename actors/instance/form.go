package instance

import (
	"cmp"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/persistence/key"
	"troupe/statemachine"
)

func (a *access) formView(req *form.Request) (*form.View, error) {
	i := a.Actor
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
		Editable: a.mayWrite(req.Privilege) == nil && a.maySubmit(req) == nil,
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
func (i *Actor) formDraft(user identity.UserID) draftPlace {
	return draftPlace{key.Draft(nil, i.shard, i.id, string(user)), i.form.LeftAt}
}

// loadDraft returns a draft, nil without one.
func (i *Actor) loadDraft(at draftPlace) (*form.Draft, error) {
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	return form.LoadDraft(store, at.key, at.after)
}

// SubmitForm is the request of Submit.
type SubmitForm struct{ *message.Submit }

func (req SubmitForm) run(i *Actor, c *Call) error {
	event := &message.Event{
		Caller: req.Caller, Name: req.Event, Data: req.Data, Retry: req.Retry, WithHistory: req.WithHistory,
	}
	return i.take(c, event, submittedForm{&req.Request})
}

// submittedForm is a form.
type submittedForm struct{ *form.Request }

func (f submittedForm) mayRepeat(a access) error { return a.mayWrite(f.Privilege) }

func (f submittedForm) may(a access) error {
	return cmp.Or(a.maySee(), a.mayWrite(f.Privilege), f.Refusal)
}

func (f submittedForm) draft(i *Actor) []byte { return i.formDraft(f.Caller.ID).key }

// SaveDraft is the request of SaveDraft.
type SaveDraft struct{ *message.Draft }

func (req SaveDraft) run(i *Actor, c *Call) error {
	a, err := i.access(req.Caller, nil, nil)
	if err == nil {
		err = a.mayDraft(req.Draft)
	}
	if err != nil {
		return err
	}
	return i.keepDraft(c, i.formDraft(req.Caller.ID), req.Draft)
}

// keepDraft keeps or drops a draft, if the one that there is allows it.
func (i *Actor) keepDraft(c *Call, at draftPlace, req *message.Draft) error {
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
	now := i.env.Clock().UnixMilli()
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
