package statemachine

import (
	"strconv"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/record"
)

// ResetEvent is the event in the history entry of a reset.
const ResetEvent = "reset"

// Reset is what an instance is to become once more: Then is what it was after entry To of its history.
type Reset struct {
	Then   *Instance
	To     uint64
	Reason string
	Caller *Caller
	Now    time.Time
}

// Reset makes an instance what it was, in an entry of its own (statemachine/DEFINITION.md, "Reset"). d is the definition that it had then. It
// is pure as Step is, and in is not changed. It returns ErrExecution when something cannot be begun once more, or ErrTooLarge.
func (d *Definition) Reset(in *Instance, to Reset) (Result, error) {
	next, then := *in, to.Then
	next.Public, next.Private, next.Redirect = then.Public, then.Private, then.Redirect
	next.State.Memory, next.State.Ended = then.State.Memory, then.State.Ended
	next.State.Timers, next.State.Tasks, next.State.Jobs = nil, nil, nil
	m := d.newMacrostep(&next, then.State.At.Active, to.Caller, in.NextTime(to.Now))
	defer m.release()
	m.eventData = strconv.AppendUint(data.Value(`{"to":`), to.To, 10)
	m.eventData = append(data.AppendString(append(m.eventData, `,"reason":`...), to.Reason), '}')
	m.setEvent(expr.Event{Name: ResetEvent, Data: m.eventData})
	m.cancelChildren(func(*record.ChildState) bool { return true })
	m.in.State.Children = record.Left(&d.Definition, m.in.State.Children)
	if !then.State.IsOver() {
		for i := m.Active.Next(1); i >= 0; i = m.Active.Next(i + 1) {
			m.beginAt(d.Nodes[i])
		}
		m.beginChildren()
	}
	if !m.queue.IsEmpty() { // an expression has failed: nobody takes that, for the instance is to be where it was
		m.failUntaken(m.queue.Take())
	}
	before := next
	if in.State.IsOver() {
		before.State.At = then.State.At // NB: its parent was told when it ended, or has ended it
	}
	r, err := m.result(Moved, in.State.At.End, ResetEvent, &before)
	if err != nil {
		return Result{}, err
	}
	return d.kept(r, nil, nil, record.InputOfMove(&d.Definition, in, &r.Instance))
}
