package simulation

import (
	"errors"
	"fmt"
	"slices"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/invoke"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// carry has a message between instances arrive.
func (w *World) carry(d *Delivery) {
	w.waiting = slices.DeleteFunc(w.waiting, func(other *Delivery) bool { return other == d })
	m, err := child.Parse(d.Body)
	if err != nil {
		panic(err) // child.Of has written it
	}
	m.From = child.Ref{Workflow: d.Workflow, Instance: nameOf(d.key.ID)}
	m.SetMark(d.key)
	if m.Start != nil {
		w.startChild(w.at(d.key.ID), &m)
		return
	}
	id, _ := instanceid.Parse(m.To().Instance)
	if to := w.at(id); to != nil && !to.gone {
		to.hear(&m)
	}
}

// hear takes a message of the parent or a child.
func (in *Instance) hear(m *child.Message) {
	now := in.world.now
	switch {
	case m.News != nil:
		output, _ := child.Value(m.News.Output) // Parse has looked at it
		in.hearNotice(m.ElementID(), m.News.Failed, child.Brought(m.From, "output", output))
	case !m.IsFor(&in.state): // it is nobody's, or another one's
	case m.Event != nil:
		h := m.Heard()
		result, err := in.of.Hear(&in.state, h, now)
		in.take(result, err, func() (statemachine.Instance, error) { return in.of.FailHear(&in.state, h, now) })
	default:
		result, err := in.of.Cancel(&in.state, m.End.By, now)
		if err == nil && result.Outcome != statemachine.Ignored {
			in.adopt(&result, 0)
		}
	}
}

// hearNotice takes what happened to a child.
func (in *Instance) hearNotice(part statemachine.ElementID, failed bool, brought data.Value) {
	now := in.world.now
	result, err := in.of.Callback(&in.state, part, failed, brought, now)
	in.take(result, err, func() (statemachine.Instance, error) {
		return in.of.FailCallback(&in.state, part, failed, brought, now)
	})
}

// startChild creates the child that a parent has asked for, or tells the parent why there is none.
func (w *World) startChild(parent *Instance, m *child.Message) {
	if parent.gone || !parent.waitsFor(m.ElementID()) { // its node was left meanwhile
		return
	}
	if err := w.createChild(m); err != nil {
		refused := failure.In("invoke", m.Start.To, err).Error()
		brought := child.Brought(child.Ref{Workflow: m.Start.To, Instance: m.Start.Child}, "message", data.AppendString(nil, refused))
		parent.hearNotice(m.ElementID(), true, brought)
	}
}

func (w *World) createChild(m *child.Message) error {
	running := 0
	for _, in := range w.instances {
		if !in.IsDone() {
			running++
		}
	}
	if running >= instancesMax {
		m.Start.Full = fmt.Sprintf("%d instances of its tree run, which is the limit (treeInstancesMax)", instancesMax)
	}
	public, private, err := m.Start.Data()
	if err != nil {
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	of := statemachine.Creation{
		ID: m.Start.Child, Public: public, Private: private, Now: w.now, Internal: true,
		Parent: &statemachine.Parent{Workflow: m.From.Workflow, Instance: m.From.Instance, Child: m.ElementID(), Depth: m.Start.Depth},
	}
	if err := invoke.May(m, of, w.principal, w.Definition); err != nil {
		return err
	}
	d, err := w.Definition(m.Start.To, m.Start.Version)
	if err != nil {
		return err
	}
	id, _ := instanceid.Parse(m.Start.Child)
	in := w.newInstance(id, d, statemachine.System)
	result, err := d.Create(of)
	if err != nil {
		return failure.OfStep(err)
	}
	w.instances = append(w.instances, in)
	in.adopt(&result, 0)
	return nil
}

func (w *World) principal(user identity.UserID) *identity.Principal {
	p, err := w.o.User(string(user))
	if err != nil {
		return nil
	}
	return p
}

func (in *Instance) waitsFor(part statemachine.ElementID) bool {
	return slices.ContainsFunc(in.state.Children(), func(c statemachine.Child) bool { return c.ID == part && c.Status == statemachine.ChildRuns })
}

func (in *Instance) childOf(c *statemachine.Child) *Instance {
	return in.world.at(child.ID(in.id, c.ID, c.Begun))
}

// vanish takes an instance out of the world, with all that it has invoked.
func (in *Instance) vanish() {
	for _, c := range in.Children() {
		c.vanish()
	}
	in.gone = true
}

var errNoChild = errors.New("no child of the workflow runs")

// EndChild ends the first child of a workflow that runs for an instance, as if it had come to its end on its own, or, with failed, to one
// that says so. What the child itself would do then does not happen: it is gone. output is what it tells its parent; absent: nothing.
// failure.ErrNotFound: there is no such child.
func (w *World) EndChild(in *Instance, workflow string, failed bool, output data.Value) error {
	for _, c := range in.state.Children() {
		if c.Workflow != workflow || c.Status != statemachine.ChildRuns {
			continue
		}
		if of := in.childOf(&c); of != nil {
			of.vanish()
		}
		in.hearNotice(c.ID, failed, child.Brought(child.Ref{Workflow: workflow, Instance: nameOf(child.ID(in.id, c.ID, c.Begun))}, "output", output))
		return w.settle()
	}
	return failure.Refuse(failure.ErrNotFound, "%w: %s", errNoChild, workflow)
}
