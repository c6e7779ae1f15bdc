package statemachine

import (
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
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
	return d.CheckCreation(c.Public, c.Private)
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
		return d.CheckCreation(c.Public, c.Private) // NB: the condition may look at the parent
	}
	return d.MayInvoke(by, c)
}

// Creation is what Create needs to know.
type Creation struct {
	ID     string // the new instance's
	Key    string // what KeyOf makes of Public; "" also for one that no caller creates
	Caller *Caller
	// Public and Private overlay the defaults of context; absent is empty. They
	// must be what the definition's create block lets callers set.
	Public, Private data.Value
	Now             time.Time
	// Parent invokes the instance; nil: nobody does. Internal: no caller asked for it, so that the create block binds nobody, and
	// without a Caller neither does allow: then it is the service itself.
	Parent   *Parent
	Internal bool
}

// Create enters the workflow's initial nodes (statemachine/DEFINITION.md, "Create"). It returns ErrForbidden when the caller may not create
// this instance, ErrInvalidData, ErrNotSettable, ErrTooLarge or ErrExecution.
func (d *Definition) Create(c Creation) (Result, error) {
	r, err := d.create(c, false)
	of := record.Input{Kind: record.ByCreation, Version: d.Version, Given: [2]data.Value{c.Public, c.Private}}
	if d.ReadsUser {
		of.Caller = c.Caller
	}
	return d.kept(r, err, nil, of)
}

// create is Create. past: rights were asked then.
func (d *Definition) create(c Creation, past bool) (Result, error) {
	now := c.Now.UTC().Truncate(time.Millisecond)
	in := Instance{
		ID:        c.ID,
		Named:     record.NamedBy(c.Key),
		CreatedAt: now,
		UpdatedAt: now,
		Public:    data.Overlay(d.DefaultPublic, c.Public),
		Private:   data.Overlay(d.DefaultPrivate, c.Private),
	}
	in.State.Parent = c.Parent
	asked := c.Caller != nil
	if !asked {
		c.Caller = chart.SystemCaller
	}
	m := d.newMacrostep(&in, chart.NewNodeSet(len(d.Nodes)), c.Caller, now)
	defer m.release()
	if len(in.Public)+len(in.Private) > MaxDataBytes {
		return Result{}, ErrTooLarge
	}
	if asked && !past && !d.CreateRule.Admits(c.Caller, &m.scope) {
		return Result{}, ErrForbidden
	}
	if !c.Internal {
		if err := d.CheckCreation(c.Public, c.Private); err != nil {
			return Result{}, err
		}
	}
	if err := d.CheckData(in.Public, in.Private); err != nil {
		return Result{}, err
	}
	m.enter = m.enter.EmptyFor(len(d.Nodes))
	m.PlanRegions(m.enter, d.Nodes[0], d.Nodes[0])
	m.enterAll(m.enter)
	m.runToCompletion()
	start := make([]NodeID, len(d.Machines))
	for i := range start {
		start[i] = startNode
	}
	return m.result(Moved, start, "", &in)
}

// startNode stands in startState of the first entry, once for each state machine.
const startNode NodeID = "Start"
