package statemachine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// Bounds of the children of one instance (statemachine/DEFINITION.md, "Children").
const (
	maxChildren = 100 // that run
)

var (
	errTooManyChildren error = executionError{reason: fmt.Sprintf("more than %d children", maxChildren)}
	errTooDeep               = fmt.Errorf("invoke: more than %d instances would stand above the child", MaxDepth)
	errChildData             = errors.New("invoke: svcPublic and svcPrivate must be objects")
)

// ErrNoChild: the instance does not wait for such a child any more.
var ErrNoChild = errors.New("there is no such child")

// ErrEnded: the instance was stopped, or cancelled by its parent, and takes nothing more.
var ErrEnded = errors.New("the instance was stopped, or cancelled by its parent")

// ChildStart has a child created. The instance's own ElementID and Begun make the id of the child, so that it is the same
// however often it is asked for.
type ChildStart struct {
	ID              ElementID
	Begun           time.Time
	Workflow        string
	Version         uint64 // 0: the newest
	Public, Private data.Value
	Depth           int // how many instances stand above it
}

// ChildEnd has a child cancelled.
type ChildEnd struct {
	ID       ElementID
	Begun    time.Time
	Workflow string
	By       string // who has stopped the whole tree; "": nobody
}

// ParentNews tells the parent what has become of its child.
type ParentNews struct {
	Parent Parent
	Failed bool
	Output data.Value // null without one
}

// beginChildren begins those of the nodes that were entered. It comes behind everything else of the step, so that a node
// which is left again in it has none (W3C SCXML, section 6.4).
func (m *macrostep) beginChildren() {
	entered := m.toInvoke
	m.toInvoke = nil
	slices.SortFunc(entered, func(a, b *chart.Node) int { return cmp.Compare(a.Index, b.Index) })
	for _, n := range entered {
		for _, inv := range n.Invoke {
			if m.failure == nil {
				m.beginChild(inv)
			}
		}
	}
}

func (m *macrostep) beginChild(inv *chart.Invoke) {
	depth := 1
	if m.in.State.Parent != nil {
		depth = m.in.State.Parent.Depth + 1
	}
	running := 0
	for i := range m.in.State.Children {
		if m.in.State.Children[i].Status == ChildRuns {
			running++
		}
	}
	start := ChildStart{Begun: m.scope.Now, Workflow: inv.Workflow, Version: inv.Version, Depth: depth}
	var of record.Invoked
	var err error
	switch {
	case depth > MaxDepth:
		err = errTooDeep
	case running >= maxChildren:
		m.fail(errTooManyChildren)
		return
	case inv.SCXMLInvoke != nil:
		start.ID = m.nextPart()
		of, err = m.invocation(inv, &start)
	default:
		if start.Public, err = m.childData(inv.Public); err == nil {
			start.Private, err = m.childData(inv.Private)
		}
	}
	if err != nil {
		m.raiseError(err)
		return
	}
	if inv.SCXMLInvoke == nil {
		start.ID = m.nextPart()
	}
	m.in.State.Children = append(slices.Clip(m.in.State.Children), record.ChildState{ID: start.ID, Invoke: inv, Begun: start.Begun, Status: ChildRuns, Invoked: of})
	m.putDelivery(Out{Start: &start}, len(start.Public)+len(start.Private))
}

func (m *macrostep) childData(t *chart.Template) (data.Value, error) {
	if t == nil {
		return nil, nil
	}
	v, err := t.Eval(&m.scope)
	if err == nil && v.Kind() != data.Object {
		err = errChildData
	}
	return v, err
}

// endChildren cancels those of a node that is left.
func (m *macrostep) endChildren(n *chart.Node) {
	if len(n.Invoke) == 0 {
		return
	}
	m.toInvoke = slices.DeleteFunc(m.toInvoke, func(other *chart.Node) bool { return other == n })
	m.cancelChildren(func(c *record.ChildState) bool { return c.Invoke.Node == n })
	m.end(func(t *record.TimerState) bool { return t.Child != nil && t.Child.Invoke.Node == n })
}

// cancelChildren cancels those that run and match.
func (m *macrostep) cancelChildren(matches func(*record.ChildState) bool) {
	cloned := false
	for i := range m.in.State.Children {
		c := &m.in.State.Children[i]
		if c.Status != ChildRuns || !matches(c) {
			continue
		}
		if !cloned {
			m.in.State.Children, cloned = slices.Clone(m.in.State.Children), true
			c = &m.in.State.Children[i]
		}
		c.Status = ChildCancelled
		m.putDelivery(Out{End: endOf(c)}, 0)
	}
	if cloned {
		m.in.State.Children = record.ForgetEnded(m.in.State.Children)
	}
}

// tellParent has the parent know what has become of the instance, when that is the end of it.
func (m *macrostep) tellParent(before *Instance) {
	if m.in.State.Parent == nil || m.in.State.Ended || !m.d.IsDone(&m.in) || before.State.At != nil && m.d.IsDone(before) {
		return
	}
	news := ParentNews{Parent: *m.in.State.Parent}
	outputs := []byte{'{'}
	for i, machine := range m.d.Machines {
		at := chart.ActiveChild(machine, m.active)
		output := data.Value("null")
		if at != nil && at.Kind == Final {
			news.Failed = news.Failed || at.Failed
			if v := m.outputAt(at); len(v) > 0 {
				output = v
			}
		}
		if news.Output = output; len(m.d.Machines) == 1 {
			break
		}
		if i > 0 {
			outputs = append(outputs, ',')
		}
		outputs = append(data.AppendString(outputs, string(machine.ID)), ':')
		outputs = append(outputs, output...)
	}
	if len(m.d.Machines) > 1 {
		news.Output = append(outputs, '}')
	}
	m.putDelivery(Out{Tell: &news}, len(news.Output))
}

// outputAt is the output of an active final node. It is what it was when the node was entered; of a machine that came to its end in an
// earlier step it is computed again, for nobody has kept it.
func (m *macrostep) outputAt(n *chart.Node) data.Value {
	for _, o := range m.outputs {
		if o.of == n {
			return o.value
		}
	}
	v, err := m.outputOf(n)
	if err != nil {
		return nil
	}
	return v
}

// Told takes what has become of a child, as Receive takes an event. It returns ErrNoChild when nobody waits for it.
func (d *Definition) Told(in *Instance, id ElementID, failed bool, brought data.Value, now time.Time) (Result, error) {
	next, told, ok := in.WithoutChild(id, failed)
	if !ok {
		return Result{}, ErrNoChild
	}
	if d.Semantics == chart.SCXMLSemantics {
		return d.step(&next, toldEvent(in, id, failed, brought, now), trigger{name: toldName(in, id, failed)})
	}
	return d.step(&next, &Event{Name: told.Event(), Data: brought, Caller: chart.SystemCaller, Now: now}, trigger{name: told.Event(), told: told})
}

// FailTold returns the instance with what Told could not take, as a timer that has failed.
func (d *Definition) FailTold(in *Instance, id ElementID, failed bool, brought data.Value, now time.Time) (Instance, error) {
	next, told, ok := in.WithoutChild(id, failed)
	if !ok {
		return next, ErrNoChild
	}
	if d.Semantics == chart.SCXMLSemantics {
		return next.WithIncident(record.TimerState{Due: now, Event: toldName(in, id, failed), Data: toldEvent(in, id, failed, brought, now).Data}), nil
	}
	return next.WithIncident(record.TimerState{Due: now, Child: told, Data: brought}), nil
}

// Cancel takes parent.cancelled, which the instance may handle, and ends it: it takes nothing more, has no timers, and its
// own children are cancelled. Where an action of that fails, it ends all the same. One that is done stays as it is. It returns
// ErrEnded when it has ended already. by is who has stopped the whole tree, and stands in the history of each of its instances; "": nobody.
func (d *Definition) Cancel(in *Instance, by string, now time.Time) (Result, error) {
	if in.State.Ended {
		return Result{}, ErrEnded
	}
	if d.IsDone(in) {
		return Result{Outcome: Ignored, Instance: *in}, nil
	}
	e := &Event{Name: chart.ParentCancelled, Caller: chart.SystemCaller, Now: now}
	of := trigger{name: chart.ParentCancelled, ending: true, exact: true}
	if d.Semantics == chart.SCXMLSemantics { // it knows no such event, and runs its exits
		of.nothing, of.leaving = true, true
	}
	result, err := d.step(in, e, of)
	if err != nil {
		result, err = d.step(in, e, trigger{ending: true, nothing: true})
	}
	if err == nil && by != "" { // NB: for rules and expressions the event is the system's
		result.Entry.User = by
		for k := range result.Out {
			if end := result.Out[k].End; end != nil {
				end.By = by
			}
		}
	}
	return result, err
}

// endInstance is the last of a step that ends the instance.
func (m *macrostep) endInstance(leaving bool) {
	if leaving {
		m.leaveAll()
	}
	m.in.State.Ended, m.in.State.Timers = true, nil
	m.cancelChildren(func(*record.ChildState) bool { return true })
}

// exprParent is the variable parent of expressions.
func exprParent(in *Instance) *expr.Parent {
	if in.State.Parent == nil {
		return nil
	}
	return &expr.Parent{WorkflowID: in.State.Parent.Workflow, InstanceID: in.State.Parent.Instance}
}
