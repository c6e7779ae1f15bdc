package statemachine

import (
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/transit"
)

func (m *macrostep) putDelivery(out Delivery, bytes int) {
	m.outBytes += bytes
	switch {
	case len(m.out) >= fault.MaxDeliveries:
		m.fail(fault.ErrTooManyDeliveries)
	case m.outBytes > fault.MaxDeliveryBytes:
		m.fail(fault.ErrDeliveriesLarge)
	default:
		m.out = append(m.out, out)
	}
}

func (m *macrostep) forward(f *Forward) { m.putDelivery(Delivery{Forward: f}, len(f.Data)) }

// beginTask begins the task of a node that was entered, behind its entry actions. An expression that fails gives no assignee
// and no due time: the work is there all the same.
func (m *macrostep) beginTask(n *chart.Node) {
	r := n.Task
	t := record.TaskState{ID: m.nextPart(), Node: n, Created: m.scope.Now}
	if r.Assignee != nil {
		if v, err := r.Assignee.Eval(&m.scope); err == nil && v.Kind() == data.String && isUser(v.Text()) {
			t.Assignee = v.Text()
		}
	}
	if r.HasDue {
		if due, err := r.Due.Due(&m.scope); err == nil {
			t.Due = due.UTC().Truncate(time.Millisecond)
		}
	}
	m.in.State.Tasks = append(own(m.in.State.Tasks, &m.ownsTasks), t)
	if !t.Due.IsZero() && m.d.RaisesOverdue {
		m.begin(record.TimerState{Due: t.Due, Event: chart.TaskOverdue, Send: t.OverdueName(), Data: t.OverdueData(m.in.ID)})
	}
}

// isUser reports whether a user can have the name. A task of anybody else would keep all others from it.
func isUser(name string) bool { return IsIdentifier(name) && name != System }

func (m *macrostep) endTask(n *chart.Node) {
	m.Look(len(m.in.State.Tasks))
	i := slices.IndexFunc(m.in.State.Tasks, func(t record.TaskState) bool { return t.Node == n })
	if i < 0 {
		return
	}
	t := m.in.State.Tasks[i]
	if m.decides(n) {
		m.decided = append(m.decided, t.Task())
	}
	m.in.State.Tasks = slices.Delete(own(m.in.State.Tasks, &m.ownsTasks), i, i+1)
	if !t.Due.IsZero() && m.d.RaisesOverdue {
		name := t.OverdueName()
		m.end(func(other record.TimerState) bool { return other.Send == name })
	}
}

func (m *macrostep) decides(n *chart.Node) bool {
	return m.deciding != nil && slices.ContainsFunc(m.deciding, func(t *chart.Transition) bool { return t.Source == n })
}

// begin starts a timer. The instance's own list is never changed in place.
func (m *macrostep) begin(t record.TimerState) {
	if len(m.in.State.Timers) >= fault.MaxTimers {
		m.fail(fault.ErrTooManyTimers)
		return
	}
	bytes := len(t.Data)
	m.Look(len(m.in.State.Timers))
	for i := range m.in.State.Timers {
		bytes += len(m.in.State.Timers[i].Data)
	}
	if bytes > fault.MaxTimerBytes {
		m.fail(fault.ErrTimersLarge)
		return
	}
	t.ID, t.Due = m.nextPart(), t.Due.Truncate(time.Millisecond)
	m.in.State.Timers = append(own(m.in.State.Timers, &m.ownsTimers), t)
}

// nextPart is the id of a timer or child that begins now.
func (m *macrostep) nextPart() ElementID {
	m.parts++
	return ElementID{Sequence: m.in.Sequence + 1, Number: m.parts - 1}
}

func (m *macrostep) end(matches func(record.TimerState) bool) {
	m.Look(len(m.in.State.Timers))
	if first := slices.IndexFunc(m.in.State.Timers, matches); first >= 0 {
		m.Look(transit.LooksPerUnit * len(m.in.State.Timers)) // those behind it move up
		timers := own(m.in.State.Timers, &m.ownsTimers)
		m.in.State.Timers = timers[:first+len(slices.DeleteFunc(timers[first:], matches))]
	}
}

// own returns a list of the instance that the macrostep may change in place: a copy, the first time.
func own[T any](list []T, owns *bool) []T {
	if !*owns {
		list, *owns = slices.Clone(list), true
	}
	return list
}

// beginAfter starts the timers of a node that was entered, behind its entry actions.
func (m *macrostep) beginAfter(n *chart.Node) {
	for _, a := range n.After {
		m.beginTimer(a)
	}
}

func (m *macrostep) beginTimer(a *chart.After) {
	if m.failure != nil {
		return
	}
	due, err := a.Delay.Due(&m.scope)
	if err != nil {
		m.raiseError(fmt.Errorf("after: %w", err))
		return
	}
	m.begin(record.TimerState{Due: due, After: a})
}

func (m *macrostep) endAfter(n *chart.Node) {
	if len(n.After) > 0 {
		m.end(func(t record.TimerState) bool { return t.After != nil && t.After.Node == n })
	}
}

// beginAt begins what an active node waits for.
func (m *macrostep) beginAt(n *chart.Node) {
	m.beginAfter(n)
	if n.Task != nil {
		m.beginTask(n)
	}
	m.toInvoke = append(m.toInvoke, n.Invoke...)
}
