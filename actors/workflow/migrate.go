package workflow

import (
	"troupe/actors/instance"
	"troupe/actors/message"
)

// Migrate carries out a plan for one instance, in one commit. It is false when the instance has ended or does not have the
// version Plan.From, and failure.ErrNotAllowed says why it cannot be migrated. The other errors are those of Send.
func (r *Router) Migrate(workflowID, instanceID string, m *message.Migration) (bool, error) {
	if err := r.accepting(); err != nil {
		return false, err
	}
	pin, err := r.o.Catalog.PinVersion(workflowID, m.Plan.To())
	if err != nil {
		return false, err
	}
	had := false
	var c *instance.Call
	at, err := r.shards.Find(instanceID)
	if err == nil {
		c, err = r.post(at, workflowID, instance.Migrate{Migration: m, Had: &had, Done: pin.Release}, nil)
	}
	if err != nil {
		pin.Release()
		return false, err
	}
	_, err = r.shards.Wait(c)
	return err == nil && had, err // NB: without an answer the actor may be writing had
}
