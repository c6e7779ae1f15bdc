package catalog

import (
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/statemachine"
)

// MayNotSend is failure.ErrForbidden for an event that its sender has no right to now, which it tells: the one to send events
// at all, or, with a name, the one to this event in the state where it is. It is hidden for who may not read the instance.
func (c *Catalog) MayNotSend(workflowID string, v statemachine.View, caller *statemachine.Caller, event string, now time.Time, hidden error) error {
	newest, err := c.Newest(workflowID)
	if err != nil {
		return err
	}
	if newest.ReadRight(caller, now) == statemachine.Denied || !newest.MayRead(v, caller, now) {
		return hidden
	}
	if event == "" {
		return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send events to this instance (allow.send)")
	}
	var states []string
	for _, p := range v.Of.Positions(v.Instance) {
		states = append(states, string(p.Node))
	}
	return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send %q in state %s", event, strings.Join(states, ", "))
}
