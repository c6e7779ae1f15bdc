package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
	"troupe/statemachine/internal/signal"
)

func (m *macrostep) runRaise(a *chart.Raise) error {
	var v data.Value
	if a.Data != nil {
		var err error
		if v, err = a.Data.Eval(&m.scope); err != nil {
			return err
		}
	}
	m.enqueue(signal.Raised{Name: a.Event, Data: v, Signal: signal.Signal{Kind: signal.Internal}})
	return nil
}

func (m *macrostep) runSendOut(a *chart.SendOut) error {
	var v data.Value
	if a.Body != nil {
		var err error
		if v, err = a.Body.Eval(&m.scope); err != nil {
			return err
		}
	}
	m.putDelivery(Delivery{Webhook: a.To, Body: v}, len(v))
	return nil
}

func (m *macrostep) runSendMail(a *chart.SendMail) error {
	v, err := a.To.Eval(&m.scope)
	if err != nil {
		return err
	}
	to, err := chart.Addressees(v)
	if err != nil {
		return err
	}
	subject, err := a.Subject.Text(&m.scope)
	if err != nil {
		return err
	}
	body, err := a.Body.Text(&m.scope)
	if err != nil {
		return err
	}
	// NB: a line break in a subject would begin another header.
	subject = strings.Join(strings.Fields(subject), " ")
	m.putDelivery(Delivery{To: to, Subject: subject, Text: body}, len(subject)+len(body))
	return nil
}

func (m *macrostep) runDispatch(a *chart.Dispatch) error {
	id := a.ID
	if a.IDTo != nil {
		part := m.nextPart()
		id = fmt.Sprintf("send.%d.%d", part.Sequence, part.Number)
		if err := m.setPlace(a.IDTo, data.AppendString(nil, id)); err != nil {
			return err
		}
	}
	if err := m.sendAs(a, id); err != nil {
		if m.failure != nil {
			return err
		}
		event := errorExecution
		if errors.Is(err, fault.ErrUnreachable) {
			event = errorCommunication
		}
		return &fault.Dispatch{Event: event, SendID: id, Cause: err}
	}
	return nil
}

func (m *macrostep) sendAs(a *chart.Dispatch, id string) error {
	var texts [3]string
	for i, t := range []*chart.Template{a.Event, a.To, a.Kind} {
		if t == nil {
			continue
		}
		v, err := t.Eval(&m.scope)
		if err != nil {
			return err
		}
		if v.Kind() != data.String {
			return fmt.Errorf("%s is not a text", data.Shorten(string(v)))
		}
		texts[i] = v.Text()
	}
	name, ok := ParseEventName(texts[0])
	if !ok {
		return fmt.Errorf("%q is not an event name", data.Shorten(texts[0]))
	}
	if !slices.Contains(signal.Processors, texts[2]) {
		return fmt.Errorf("type %q is not supported", data.Shorten(texts[2]))
	}
	due, err := a.Delay.Due(&m.scope)
	if err != nil {
		return err
	}
	v, err := a.Payload.Eval(&m.scope, m.raiseError)
	if err != nil {
		return err
	}
	return m.dispatch(&record.TimerState{Due: due, Event: name, Send: id, Data: v, To: texts[1]})
}

// dispatch sends an event to where t.To says, now or when it is due.
func (m *macrostep) dispatch(t *record.TimerState) error {
	if t.To == signal.SessionPrefix+m.in.ID {
		t.To = ""
	}
	switch {
	case t.To == "":
		m.begin(*t)
		return m.failure
	case t.To == "#_internal":
		m.enqueue(signal.Raised{Name: t.Event, Data: t.Data, Signal: signal.Signal{Kind: signal.Internal, SendID: t.Send}})
		return m.failure
	}
	f, err := m.aim(t)
	switch {
	case err != nil:
		return err
	case t.Due.After(m.scope.Now):
		m.begin(*t)
	default:
		m.forward(f)
	}
	return m.failure
}

func (m *macrostep) aim(t *record.TimerState) (*Forward, error) {
	f := &Forward{Event: t.Event, Data: t.Data, SendID: t.Send}
	name, ok := strings.CutPrefix(t.To, "#_")
	switch {
	case !ok:
		return nil, fmt.Errorf("target %q is not supported", data.Shorten(t.To))
	case name == "parent", m.in.State.Parent != nil && t.To == signal.SessionPrefix+m.in.State.Parent.Instance:
		if m.in.State.Parent == nil {
			return nil, fault.ErrUnreachable
		}
		f.Parent = m.in.State.Parent
		return f, nil
	}
	for i := range m.in.State.Children {
		if c := &m.in.State.Children[i]; c.Status == ChildRuns && c.Name == name {
			f.Child = c.Cancellation()
			return f, nil
		}
	}
	return nil, fault.ErrUnreachable
}

func (m *macrostep) runSend(a *chart.Send) error {
	var v data.Value
	if a.Data != nil {
		var err error
		if v, err = a.Data.Eval(&m.scope); err != nil {
			return err
		}
	}
	due, err := a.Delay.Due(&m.scope)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	m.begin(record.TimerState{Due: due, Event: a.Event, Send: a.ID, Data: v})
	return nil
}

func (m *macrostep) runCancel(a *chart.Cancel) error {
	v, err := a.ID.Eval(&m.scope)
	if err != nil {
		return err
	}
	if v.Kind() != data.String || v.TextIs("") {
		return errors.New("cancel: the id is not a text")
	}
	m.end(func(t record.TimerState) bool { return t.Send != "" && v.TextIs(t.Send) })
	return nil
}
