package workflow

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/statemachine"
)

// Migrate carries out a plan for one instance, in one commit. It is false when the instance has ended or does not have the
// version Plan.From, and failure.ErrNotAllowed says why it cannot be migrated. The other errors are those of Send.
func (r *Router) Migrate(workflowID, instanceID string, m *message.Migration) (bool, error) {
	if err := r.accepting(); err != nil {
		return false, err
	}
	pin, err := r.catalog.PinVersion(workflowID, m.Plan.To())
	if err != nil {
		return false, err
	}
	had := false
	c, err := r.post(workflowID, instanceID, migrateInstance{m, &had, pin.Release}, nil)
	if err != nil {
		pin.Release()
		return false, err
	}
	_, err = r.wait(c)
	return err == nil && had, err // NB: without an answer the actor may be writing had
}

// migrateInstance is the request of Migrate. had is written before the answer. done is called when it is known what became of it.
type migrateInstance struct {
	*message.Migration
	had  *bool
	done func()
}

func (req migrateInstance) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if i.of.Version != req.Plan.From() || i.of.IsOver(&i.state) {
		i.deliver(c, nil)
		return nil
	}
	whole, err := i.whole()
	if err != nil {
		return err
	}
	blind := !whole.MayRead(req.Caller, i.router.o.Clock())
	var result statemachine.Result
	switch {
	case blind && req.Plan.ReadsData():
		return failure.Refuse(failure.ErrNotAllowed, "the plan assigns what it reads in the instance, and you may not read that")
	case blind && req.DryRun: // NB: what the data would decide is not told by trying
		err = req.Plan.TryBlind(&i.state, req.Caller, i.router.o.Clock())
	default:
		result, err = req.Plan.Migrate(&i.state, req.Caller, i.router.o.Clock())
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
	if *req.had = true; req.DryRun {
		i.deliver(c, nil)
		return nil
	}
	i.log(result.Logs)
	i.router.metrics.events.Add(1)
	return i.commit(c, &change{next: result.Instance, entry: result.Entry, hasEntry: true, out: result.Out, caller: req.Caller.ID, of: req.Plan.Target()}, false)
}
