package instance

import (
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// StopTree is the request of that. The commit that ends the instance has what cancels its children, so that nothing is
// left to remember: a child that was not created yet never will be.
type StopTree struct {
	User string
	Part bool // also of an instance with a parent, which was told
}

func (req StopTree) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if p := i.state.Parent(); p != nil && !req.Part {
		return failure.Refuse(failure.ErrConflict, "it was invoked by %s/%s: stop that one", p.Workflow, p.Instance)
	}
	result, err := i.of.Cancel(&i.state, req.User, i.env.Clock())
	if errors.Is(err, statemachine.ErrEnded) || err == nil && result.Outcome == statemachine.Ignored {
		i.deliver(c, nil)
		return nil
	}
	if err != nil {
		return failure.OfStep(err)
	}
	i.env.Log.Info().Str("workflow", i.workflowID).Str("instance", i.name).Str("user", req.User).Msg("a tree of instances is stopped")
	return i.commitResult(c, &result, nil, 0)
}

// Migrate is the request of Migrate. Had is written before the answer. Done is called when it is known what happened to it.
type Migrate struct {
	*message.Migration
	Had  *bool
	Done func()
}

func (req Migrate) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if i.of.Version != req.Plan.From() || i.of.IsOver(&i.state) {
		i.deliver(c, nil)
		return nil
	}
	a, err := i.access(nil, nil, req.Caller)
	if err != nil {
		return err
	}
	blind := a.mayRead() != nil
	var result statemachine.Result
	switch {
	case blind && req.Plan.ReadsData():
		return failure.Refuse(failure.ErrNotAllowed, "the plan assigns what it reads in the instance, and you may not read that")
	case blind && req.DryRun: // NB: what the data would decide is not told by trying
		err = req.Plan.TryBlind(&i.state, req.Caller, i.env.Clock())
	default:
		result, err = req.Plan.Migrate(&i.state, req.Caller, i.env.Clock())
	}
	if errors.Is(err, statemachine.ErrNotMigrated) {
		if blind {
			return failure.Refuse(failure.ErrNotAllowed, "%s", statemachine.BriefReason(err))
		}
		return failure.Refuse(failure.ErrNotAllowed, "%w", err)
	}
	if err != nil {
		return failure.OfStep(err)
	}
	if err := i.mayAdd(&result); err != nil {
		return err
	}
	if *req.Had = true; req.DryRun {
		i.deliver(c, nil)
		return nil
	}
	i.log(result.Logs)
	i.env.Counts.Events.Add(1)
	return i.commit(c, &change{outcome: outcomeOf(&result), cause: cause{caller: req.Caller.ID}, of: req.Plan.Target()}, false)
}

func (req Migrate) traits() traits { return traits{done: req.Done} }

// EnterIndex is the request of EnterIndex. It needs no definition, which may be unreadable.
type EnterIndex struct{ Index *catalog.Index }

func (m EnterIndex) run(i *Actor, c *Call) (err error) {
	stored := &filter.Document{Key: i.state.Key(), Public: i.state.Public, Private: i.state.Private}
	if !i.loaded {
		if _, err = i.rows(); err != nil {
			return err
		}
		if stored, err = i.env.storedDocument(i.shard, i.workflowID, i.id); err != nil {
			return failure.OfStore(err)
		}
	}
	c.commit = i.env.Catalog.BeginCommit(i.shard)
	if stored == nil || !i.env.Catalog.Maintains(i.workflowID, m.Index) {
		c.endCommit()
		i.deliver(c, &message.Reply{})
		return nil
	}
	w := i.writes()
	i.scratch = m.Index.Enter(w, i.scratch, i.shard, i.id, *stored)
	i.enqueue(w, c, &message.Reply{})
	return nil
}

// Look is a question about the instance, of a caller who may see it.
type Look struct {
	caller *message.Load
	see    func(access) error
}

func (m Look) run(i *Actor, c *Call) error {
	a, err := i.visible(m.caller)
	if err == nil {
		err = m.see(a)
	}
	if err != nil {
		return err
	}
	i.deliver(c, &message.Reply{})
	return nil
}

// See calls f inside the actor.
func See(req *message.Load, f func(message.View)) Look {
	return Look{req, func(a access) error {
		f(message.View{ID: a.id, Of: a.of, Instance: &a.state, Form: a.form})
		return nil
	}}
}

// SeeEvents finds out what the caller may send now. out is written before the answer.
func SeeEvents(req *message.Load, out *message.Events) Look {
	return Look{req, func(a access) error {
		out.Sequence, out.Of, out.Events = a.state.Sequence, a.of, a.available()
		return nil
	}}
}

// SeeForm finds out what the instance is as a form. out is written before the answer.
func SeeForm(load *message.Load, req *form.Request, out **form.View) Look {
	return Look{load, func(a access) (err error) {
		*out, err = a.formView(req)
		return err
	}}
}

// SeeTaskForm finds out what a task is with its form. out is written before the answer.
func SeeTaskForm(req *message.TaskForm, out **message.TaskView) Look {
	return Look{&message.Load{Caller: req.Caller}, func(a access) (err error) {
		*out, err = a.taskView(req)
		return err
	}}
}

// Load is the request of Load.
type Load struct{ *message.Load }

func (req Load) run(i *Actor, c *Call) error {
	if _, err := i.visible(req.Load); err != nil {
		return err
	}
	reply, err := i.reply(req.WithHistory)
	if err != nil {
		return err
	}
	i.deliver(c, reply)
	return nil
}

func (Load) traits() traits { return traits{reads: true} }

func (Look) traits() traits { return traits{reads: true} }
