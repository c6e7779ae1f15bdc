package statemachine

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
)

// run makes one action. An error ends the block of actions around it (statemachine/DEFINITION.md, "Errors").
func (m *macrostep) run(a chart.Action) error {
	switch a := a.(type) {
	case *chart.Assign:
		return m.runAssign(a)
	case *chart.Raise:
		return m.runRaise(a)
	case *chart.Choose:
		return m.runChoose(a)
	case *chart.Send:
		return m.runSend(a)
	case *chart.Cancel:
		return m.runCancel(a)
	case *chart.SendOut:
		return m.runSendOut(a)
	case *chart.SendMail:
		return m.runSendMail(a)
	case *chart.Redirect:
		return m.runRedirect(a)
	case *chart.LogLine:
		return m.runLogLine(a)
	case *chart.ForEach:
		return m.runForEach(a)
	case *chart.SetPlaces:
		return m.runSetPlaces(a)
	case *chart.Dispatch:
		return m.runDispatch(a)
	case *chart.ForEachPlace:
		return m.runForEachPlace(a)
	case *chart.Block:
		m.runBlock(a.Actions)
		return nil
	}
	panic(fmt.Sprintf("statemachine: no action of type %T", a))
}

func (m *macrostep) runAssign(a *chart.Assign) error {
	for _, s := range a.Settings {
		v, err := s.Value.Eval(&m.scope)
		if err != nil {
			return err
		}
		if err := m.setPath(s.Root, s.Path, v); err != nil {
			return err
		}
	}
	return nil
}

func (m *macrostep) runRedirect(a *chart.Redirect) error {
	v, err := a.To.Eval(&m.scope)
	if err != nil {
		return err
	}
	switch v.Kind() {
	case data.Null:
		m.in.Redirect = ""
		return nil
	case data.String:
		to := v.Text()
		if err := chart.CheckRedirect(to); err != nil {
			return err
		}
		m.in.Redirect = to
		return nil
	}
	return errors.New("redirect: the target is not a string")
}

func (m *macrostep) runLogLine(a *chart.LogLine) error {
	if a.Text != nil {
		text, err := a.Text.Text(&m.scope)
		if err == nil {
			m.logs = append(m.logs, data.Clip(text, chart.MaxLogBytes))
		}
		return err
	}
	v, err := a.Message.Eval(&m.scope)
	if err != nil {
		return err
	}
	m.logs = append(m.logs, chart.LogText(v))
	return nil
}

func (m *macrostep) runChoose(a *chart.Choose) error {
	for _, b := range a.Branches {
		if b.Guard != nil {
			ok, err := b.Guard.Bool(&m.scope)
			if err != nil && a.Lenient {
				m.raiseError(err)
				continue
			}
			if err != nil {
				return err
			}
			if m.d.coverage.Decide(b.Guard, ok); !ok {
				continue
			}
		}
		return m.runAll(b.Actions)
	}
	return nil
}

func (m *macrostep) runForEach(a *chart.ForEach) error {
	list, err := a.List.Value(&m.scope)
	if err != nil {
		return err
	}
	outer := m.scope.Locals
	defer func() { m.scope.Locals = outer }()
	locals := make(map[string]data.Value, len(outer)+2)
	maps.Copy(locals, outer)
	m.scope.Locals = locals
	return m.loop(list, a.Body, func(i int, v data.Value) error {
		if locals[a.Item] = v; a.Index != "" {
			locals[a.Index] = data.Value(strconv.Itoa(i))
		}
		return nil
	})
}

// loop runs a body for each element of a list, after what sets the variables.
func (m *macrostep) loop(list data.Value, body []chart.Action, set func(i int, v data.Value) error) error {
	if list.Kind() != data.Array {
		return errors.New("foreach: not a list")
	}
	for i, v := range list.Elements() {
		if m.budget.Charge(1); m.isSpent() { // the body may be empty
			return m.failure
		}
		if err := set(i, v); err != nil {
			return err
		}
		if err := m.runAll(body); err != nil {
			return err
		}
	}
	return nil
}

// runBlock runs one block of actions; an error ends the block and is raised.
func (m *macrostep) runBlock(actions []chart.Action) {
	if m.failure != nil {
		return
	}
	if err := m.runAll(actions); err != nil && m.failure == nil {
		m.raiseError(err)
	}
}

func (m *macrostep) runAll(actions []chart.Action) error {
	for k := range actions {
		if m.actions++; m.actions > fault.MaxActions {
			m.fail(fault.ErrTooManyActions)
			m.placeBound(m.d.Places.Actions[&actions[k]])
			return m.failure
		}
		m.d.coverage.Run(&actions[k])
		err := m.run(actions[k])
		if m.isSpent() || m.failure != nil {
			m.placeBound(m.d.Places.Actions[&actions[k]])
			return m.failure
		}
		if err != nil {
			return m.place(err, &actions[k])
		}
	}
	return nil
}

func (m *macrostep) runSetPlaces(a *chart.SetPlaces) error {
	for i := range a.Places {
		v, err := a.Values[i].Eval(&m.scope)
		if err == nil {
			err = m.setPlace(&a.Places[i], v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *macrostep) runForEachPlace(a *chart.ForEachPlace) error {
	list, err := a.List.Eval(&m.scope)
	switch {
	case err != nil:
		return err
	case list.Kind() == data.Array && a.Item.Bad != nil:
		return a.Item.Bad
	case list.Kind() == data.Array && a.Index != nil && a.Index.Bad != nil:
		return a.Index.Bad
	}
	return m.loop(list, a.Body, func(i int, v data.Value) error {
		err := m.setPlace(&a.Item, v)
		if err == nil && a.Index != nil {
			err = m.setPlace(a.Index, data.Value(strconv.Itoa(i)))
		}
		return err
	})
}
