package workflow

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/instance"
)

// DeleteForm deletes the form of an instance with the instance, for its creator and while it was never submitted:
// failure.ErrNotFound for everybody else, failure.ErrNotAllowed afterwards, failure.ErrInUse when the instance
// has a parent or children. The other errors are those of Send. It returns when that is durable.
func (r *Router) DeleteForm(_ context.Context, caller *identity.Principal, workflowID, instanceID string) error {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(workflowID, instanceID, instance.DeleteForm(caller))
	}
	return failure.In("delete form", workflowID+"/"+instanceID, err)
}
