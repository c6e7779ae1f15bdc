package statemachine

import (
	"cmp"
	"fmt"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

// beginChildren begins those of the nodes that were entered, and their jobs. It comes after everything else of the step, so that a node
// which is left again in it has none (W3C SCXML, section 6.4).
func (m *macrostep) beginChildren() {
	begun := m.toInvoke
	m.toInvoke = nil
	slices.SortStableFunc(begun, func(a, b *chart.Invoke) int { return cmp.Compare(a.Node.Index, b.Node.Index) })
	for _, inv := range begun {
		switch {
		case m.failure != nil:
		case inv.Job != nil:
			m.beginJob(inv)
		default:
			m.beginChild(inv)
		}
	}
}

func (m *macrostep) beginChild(inv *chart.Invoke) {
	depth := 1
	if m.in.State.Parent != nil {
		depth = m.in.State.Parent.Depth + 1
	}
	start := ChildStart{Begun: m.scope.Now, Workflow: inv.Workflow, Version: inv.Version, Depth: depth}
	var of record.Invoked
	var err error
	switch {
	case depth > MaxDepth:
		err = fault.ErrTooDeep
	case m.tooManyChildren():
		return
	case inv.SCXMLInvoke != nil:
		start.ID = m.nextPart()
		of, err = m.invocation(inv, &start)
	default:
		if start.Public, err = childData(&m.scope, inv.Public); err == nil {
			start.Private, err = childData(&m.scope, inv.Private)
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
	m.putDelivery(Delivery{Start: &start}, len(start.Public)+len(start.Private))
}

func (m *macrostep) endChildren(n *chart.Node) {
	if len(n.Invoke) == 0 {
		return
	}
	m.toInvoke = slices.DeleteFunc(m.toInvoke, func(inv *chart.Invoke) bool { return inv.Node == n })
	m.cancelChildren(func(c *record.ChildState) bool { return c.Invoke.Node == n })
	m.endJobs(n)
	m.end(func(t record.TimerState) bool { return t.Child != nil && t.Child.Invoke.Node == n })
}

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
		m.putDelivery(Delivery{End: c.Cancellation()}, 0)
	}
	if cloned {
		m.in.State.Children = record.ForgetEnded(m.in.State.Children)
	}
}

// noticeParent has the parent know what happened to the instance, when that is the end of it.
func (m *macrostep) noticeParent(before *Instance) {
	if m.in.State.Parent == nil || m.in.State.Ended || !m.d.IsDone(&m.in) || before.State.At != nil && m.d.IsDone(before) {
		return
	}
	notice := ParentNotice{Parent: *m.in.State.Parent}
	outputs := []byte{'{'}
	for i, machine := range m.d.Machines {
		at := chart.ActiveChild(machine, m.Active)
		output := data.Value("null")
		if at != nil && at.Kind == Final {
			notice.Failed = notice.Failed || at.Failed
			if v := m.outputAt(at); len(v) > 0 {
				output = v
			}
		}
		if notice.Output = output; len(m.d.Machines) == 1 {
			break
		}
		if i > 0 {
			outputs = append(outputs, ',')
		}
		outputs = append(data.AppendString(outputs, string(machine.ID)), ':')
		outputs = append(outputs, output...)
	}
	if len(m.d.Machines) > 1 {
		notice.Output = append(outputs, '}')
	}
	m.putDelivery(Delivery{Notice: &notice}, len(notice.Output))
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

func childData(s *expr.Scope, t *chart.Template) (data.Value, error) {
	if t == nil {
		return nil, nil
	}
	v, err := t.Eval(s)
	if err == nil && v.Kind() != data.Object {
		err = fault.ErrChildData
	}
	return v, err
}

// invocation evaluates an invoke. start has an ID.
func (m *macrostep) invocation(inv *chart.Invoke, start *ChildStart) (of record.Invoked, err error) {
	if of.Name = inv.ID; of.Name == "" {
		of.Name = fmt.Sprintf("%s.%d.%d", inv.Node.ID, start.ID.Sequence, start.ID.Number)
	}
	if inv.IDTo != nil {
		if err := m.setPlace(inv.IDTo, data.AppendString(nil, of.Name)); err != nil {
			return of, err
		}
	}
	if inv.Kind != nil {
		kind, err := inv.Kind.Eval(&m.scope)
		if err != nil {
			return of, err
		}
		if kind.Kind() != data.String || !slices.Contains(signal.Processors[1:4], kind.Text()) {
			return of, fmt.Errorf("invoke: type %s is not supported", data.Shorten(string(kind)))
		}
	}
	if inv.SCXMLInvoke.Workflow != nil {
		v, err := inv.SCXMLInvoke.Workflow.Eval(&m.scope)
		if err != nil {
			return of, err
		}
		if v.Kind() != data.String || !IsIdentifier(v.Text()) {
			return of, fmt.Errorf("invoke: %s cannot be the id of a workflow", data.Shorten(string(v)))
		}
		of.Workflow = v.Text()
		start.Workflow = of.Workflow
	}
	if start.Public, err = inv.Payload.Eval(&m.scope, m.raiseError); err == nil && len(start.Public) > 0 && start.Public.Kind() != data.Object {
		err = fault.ErrChildData
	}
	if err == nil {
		start.Private, err = childData(&m.scope, inv.Private)
	}
	return of, err
}
