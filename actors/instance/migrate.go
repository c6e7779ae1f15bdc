package instance

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/statemachine"
)

// Migrate is the request of Migrate. Had is written before the answer. Done is called when it is known what became of it.
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
	a, err := i.access(nil, req.Caller, nil)
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
	return i.commit(c, &change{next: result.Instance, entry: result.Entry, hasEntry: true, out: result.Deliveries, caller: req.Caller.ID, of: req.Plan.Target()}, false)
}

func (req Migrate) traits() traits { return traits{done: req.Done} }
