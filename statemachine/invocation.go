package statemachine

import (
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/schema"
)

// MayInvoke asks for a child whether a user could create it: ErrMayNotCreate, ErrNotSettable, ErrInvalidData, or nil. c is what the child begins
// with. A user without an id is nobody, whom only a workflow without a rule admits (statemachine/DEFINITION.md, "Who may invoke").
func (d *Definition) MayInvoke(by *Caller, c Creation) error {
	now := c.Now.UTC().Truncate(time.Millisecond)
	in := Instance{ID: c.ID, CreatedAt: now, UpdatedAt: now, Public: data.Overlay(d.DefaultPublic, c.Public), Private: data.Overlay(d.DefaultPrivate, c.Private)}
	in.State.Parent = c.Parent
	m := d.newMacrostep(&in, chart.NewNodeSet(len(d.Nodes)), by, now)
	defer m.release()
	if d.CreateRule != nil && (by.ID == "" || !d.CreateRule.Admits(by, &m.scope)) {
		return ErrMayNotCreate
	}
	return d.checkCreation(&c)
}

// ForeseeInvoke is MayInvoke before there is a child: it refuses what can never be.
func (d *Definition) ForeseeInvoke(by *Caller, inv Invocation, now time.Time) error {
	if d.CreateRight(by, now) == Denied {
		return ErrMayNotCreate
	}
	if inv.Invoke.SCXMLInvoke != nil {
		return nil // what it brings is computed
	}
	var c Creation
	open := false
	for _, part := range []struct {
		name   string
		given  *chart.Template
		to     *data.Value
		schema *schema.Schema
	}{{"svcPublic", inv.Invoke.Public, &c.Public, d.CreatePublic}, {"svcPrivate", inv.Invoke.Private, &c.Private, d.CreatePrivate}} {
		switch t := part.given; {
		case t == nil:
		case t.Constant != nil:
			*part.to = t.Constant
		case t.Object && len(t.Keys) > 0 && part.schema.IsNothing():
			return fmt.Errorf("on create %s: %w", part.name, ErrNotSettable)
		default:
			open = true
		}
	}
	if open {
		return nil
	}
	c.Now = now
	if d.CreateRight(by, now) == ByInstance {
		return d.checkCreation(&c) // NB: the condition may look at the parent
	}
	return d.MayInvoke(by, c)
}
