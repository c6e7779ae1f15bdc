package instance

import (
	"errors"

	"troupe/actors/failure"
	"troupe/statemachine"
)

// StopTree is the request of that. The commit that ends the instance has what cancels its children, so that nothing is left to
// remember: a child that was not created yet never will be.
type StopTree struct{ User string }

func (req StopTree) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if p := i.state.Parent(); p != nil {
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
