package statemachine

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
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

// setPath sets a path of svcPublic or svcPrivate.
func (m *macrostep) setPath(r chart.Document, path data.Path, v data.Value) error {
	doc := m.in.Public
	if r == chart.Private {
		doc = m.in.Private
	}
	switch {
	case len(path) > 0:
		var err error
		if v, err = data.Set(doc, path, v); err != nil {
			return err
		}
	case v.Kind() != data.Object:
		return errors.New("assign: a document must be an object")
	}
	return m.setDocument(r, v)
}

func (m *macrostep) runRaise(a *chart.Raise) error {
	var v data.Value
	if a.Data != nil {
		var err error
		if v, err = a.Data.Eval(&m.scope); err != nil {
			return err
		}
	}
	m.enqueue(internalEvent{name: a.Event, data: v, signal: signal{kind: internalSignal}})
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
		if err := checkRedirect(to); err != nil {
			return err
		}
		m.in.Redirect = to
		return nil
	}
	return errors.New("redirect: the target is not a string")
}

// checkRedirect refuses targets that a client must not navigate to: schemes
// that run code, and control characters (statemachine/DEFINITION.md, "Redirect").
func checkRedirect(to string) error {
	if len(to) > 2048 {
		return errors.New("redirect: the target is longer than 2048 bytes")
	}
	u, err := url.Parse(to)
	if err != nil {
		return fmt.Errorf("redirect: %q is not a URL", data.Shorten(to))
	}
	if s := strings.ToLower(u.Scheme); s != "" && s != "http" && s != "https" {
		return fmt.Errorf("redirect: scheme %q is not allowed", data.Shorten(s))
	}
	return nil
}

func (m *macrostep) runLogLine(a *chart.LogLine) error {
	if a.Text != nil {
		text, err := a.Text.Text(&m.scope)
		if err == nil {
			m.logs = append(m.logs, data.Clip(text, maxLogBytes))
		}
		return err
	}
	v, err := a.Message.Eval(&m.scope)
	if err != nil {
		return err
	}
	m.logs = append(m.logs, logText(v))
	return nil
}

// logText returns the text of a log line, cut to maxLogBytes. It copies no more of v
// than it needs.
func logText(v data.Value) string {
	most := maxLogBytes + utf8.UTFMax
	text := ""
	if v.Kind() == data.String {
		n := most + 1
		if bytes.IndexByte(v[:min(len(v), n)], '\\') >= 0 {
			n *= 6 // the longest escape, \u0000
		}
		if len(v) > n {
			v = append(v[:n:n], '"')
		}
		text = v.Text()
	} else {
		text = string(v[:min(len(v), most)])
	}
	return data.Clip(text, maxLogBytes)
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
			if !ok {
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
	if list.Kind() != data.Array {
		return errors.New("foreach: not a list")
	}
	outer := m.scope.Locals
	defer func() { m.scope.Locals = outer }()
	locals := make(map[string]data.Value, len(outer)+2)
	for k, v := range outer {
		locals[k] = v
	}
	m.scope.Locals = locals
	for i, v := range list.Elements() {
		if m.budget.Charge(1); m.isSpent() { // the body may be empty
			return m.failure
		}
		locals[a.Item] = v
		if a.Index != "" {
			locals[a.Index] = data.Value(fmt.Append(nil, i))
		}
		if err := m.runAll(a.Body); err != nil {
			return err
		}
	}
	return nil
}
