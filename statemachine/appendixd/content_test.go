package appendixd

import (
	"fmt"
)

// Action is one element of executable content. It reports whether it could be carried out.
type Action interface{ execute(i *interpreter) bool }

// Expression is an integer. It has none when a part of it is missing.
type Expression interface {
	evaluate(i *interpreter) (int, bool)
}

// Condition is true or false. It is neither when a part of it is missing.
type Condition interface {
	match(i *interpreter) (holds, ok bool)
}

type (
	// Number is a constant.
	Number struct{ Value int }
	// Sum is a variable and a constant.
	Sum struct {
		Variable string
		Value    int
	}
	// Brought is the member n of the event's data.
	Brought struct{}
	// Missing is a variable that is not there.
	Missing struct{}
)

func (e Number) evaluate(*interpreter) (int, bool) { return e.Value, true }
func (e Sum) evaluate(i *interpreter) (int, bool)  { return i.datamodel[e.Variable] + e.Value, true }
func (Missing) evaluate(*interpreter) (int, bool)  { return 0, false }
func (Brought) evaluate(i *interpreter) (int, bool) {
	if i.event == nil || i.event.Data == nil {
		return 0, false
	}
	return *i.event.Data, true
}

type (
	// Less holds while a variable is below a constant.
	Less struct {
		Variable string
		Value    int
	}
	// In holds while a state of this name is active: in any machine, or in one; Not: while none is.
	In struct {
		Machine, State string
		Not            bool
	}
	// EventIs holds while the event has this name.
	EventIs struct{ Event string }
	// Unknown is neither true nor false, because it looks at a variable that is not there.
	Unknown struct{}
	// Both holds when both hold. It is false when one of them is, whatever the other one is.
	Both struct{ A, B Condition }
)

func (c Less) match(i *interpreter) (holds, ok bool) { return i.datamodel[c.Variable] < c.Value, true }
func (Unknown) match(*interpreter) (holds, ok bool)  { return false, false }
func (c EventIs) match(i *interpreter) (holds, ok bool) {
	if i.event == nil {
		return false, false
	}
	return i.event.Name == c.Event, true
}

func (c In) match(i *interpreter) (holds, ok bool) {
	for _, s := range i.configuration {
		if s.ID == c.State && (c.Machine == "" || c.Machine == s.Machine().ID) {
			return !c.Not, true
		}
	}
	return c.Not, true
}

func (c Both) match(i *interpreter) (holds, ok bool) {
	a, aOK := c.A.match(i)
	b, bOK := c.B.match(i)
	if aOK && !a || bOK && !b {
		return false, true
	}
	return true, aOK && bOK
}

type (
	// Assign sets a variable.
	Assign struct {
		Variable string
		Value    Expression
	}
	// Raise puts an event on the internal queue. Data: nil for none.
	Raise struct {
		Event string
		Data  Expression
	}
	// Send has an event come later. ID: "" when nobody cancels it.
	Send struct {
		Event string
		Data  Expression
		Delay Delay
		ID    string
	}
	// Cancel removes what was sent under an id.
	Cancel struct{ ID string }
	// Log writes a line: a text, and behind it an integer or the event's name.
	Log struct {
		Text  string
		Value Expression // nil: none
		Event bool
	}
	// If carries out the first branch whose condition holds.
	If struct{ Branches []Branch }
	// Branch is one branch of If. Cond: nil for the last one, that is else.
	Branch struct {
		Cond Condition
		Then []Action
	}
	// Delay is a constant with its text in the file, or an expression of milliseconds.
	Delay struct {
		Text         string
		Milliseconds int
		Value        Expression
	}
)

func (a Assign) execute(i *interpreter) bool {
	value, ok := a.Value.evaluate(i)
	if ok {
		i.datamodel[a.Variable] = value
	}
	return ok
}

func (a Raise) execute(i *interpreter) bool {
	event := Event{Name: a.Event}
	if !event.bring(i, a.Data) {
		return false
	}
	i.count(RaisedEvent)
	i.enqueue(event)
	return true
}

// bring evaluates the data of an event; nil is none.
func (e *Event) bring(i *interpreter, from Expression) bool {
	if from == nil {
		return true
	}
	value, ok := from.evaluate(i)
	if ok {
		e.Data = &value
	}
	return ok
}

func (a Send) execute(i *interpreter) bool {
	event := Event{Name: a.Event}
	if !event.bring(i, a.Data) {
		return false
	}
	delay, ok := a.Delay.evaluate(i)
	if !ok {
		return false
	}
	i.begin(Timer{Event: event, Due: i.now + delay, ID: a.ID})
	return true
}

func (d Delay) evaluate(i *interpreter) (milliseconds int, ok bool) {
	if d.Value == nil {
		return d.Milliseconds, true
	}
	value, ok := d.Value.evaluate(i)
	return value, ok && value >= 0
}

func (a Cancel) execute(i *interpreter) bool {
	if i.chart.Mistake != CancelsNothing {
		i.end(CancelledTimer, func(t Timer) bool { return t.ID == a.ID })
	}
	return true
}

func (a Log) execute(i *interpreter) bool {
	switch {
	case a.Event:
		if i.event == nil {
			return false
		}
		i.log = append(i.log, a.Text+" "+i.event.Name)
	case a.Value != nil:
		value, ok := a.Value.evaluate(i)
		if !ok {
			return false
		}
		i.log = append(i.log, fmt.Sprintf("%s %d", a.Text, value))
	default:
		i.log = append(i.log, a.Text)
	}
	return true
}

func (a If) execute(i *interpreter) bool {
	for _, b := range a.Branches {
		if b.Cond == nil {
			return i.executeAll(b.Then)
		}
		holds, ok := b.Cond.match(i)
		if !ok {
			return false
		}
		if holds {
			return i.executeAll(b.Then)
		}
	}
	return true
}

// executeContent carries out one block. An error ends the block, and error.execution is put on the internal queue
// (section 4.9).
func (i *interpreter) executeContent(block []Action) {
	if !i.executeAll(block) && i.undone == "" {
		i.raiseError()
	}
}

func (i *interpreter) executeAll(block []Action) bool {
	for _, a := range block {
		if !i.boundActions() || !a.execute(i) {
			return false
		}
		if i.undone != "" {
			return false
		}
	}
	return true
}

// conditionMatch evaluates a guard. One that cannot be evaluated is false, and error.execution is put on the internal
// queue (section 5.9.1).
func (i *interpreter) conditionMatch(t *Transition) bool {
	if t.Cond == nil || i.chart.Mistake == IgnoresGuards {
		return true
	}
	holds, ok := t.Cond.match(i)
	if !ok {
		i.count(FailedGuard)
		i.raiseError()
		return false
	}
	return holds
}
