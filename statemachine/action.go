package statemachine

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// action is one step of executable content. run changes the move; an error ends
// the block of actions around it (statemachine/DEFINITION.md, "Errors").
type action interface{ run(m *move) error }

// assign sets paths of svcPublic and svcPrivate, in the order of the file.
type assign struct{ settings []setting }

type setting struct {
	root  root
	path  data.Path // below the root; empty: the whole document
	value *template
}

func (a assign) run(m *move) error {
	for _, s := range a.settings {
		v, err := s.value.eval(&m.scope)
		if err != nil {
			return err
		}
		if err := m.setPath(s.root, s.path, v); err != nil {
			return err
		}
	}
	return nil
}

// setPath sets a path of svcPublic or svcPrivate.
func (m *move) setPath(r root, path data.Path, v data.Value) error {
	doc := m.in.Public
	if r == rootPrivate {
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

// raise puts an event on the internal queue.
type raise struct {
	event EventName
	data  *template // nil: none
}

func (a raise) run(m *move) error {
	var v data.Value
	if a.data != nil {
		var err error
		if v, err = a.data.eval(&m.scope); err != nil {
			return err
		}
	}
	m.enqueue(internalEvent{name: a.event, data: v, signal: signal{kind: internalSignal}})
	return nil
}

// redirect sets svcRedirect; null or "" removes it.
type redirect struct{ to *template }

func (a redirect) run(m *move) error {
	v, err := a.to.eval(&m.scope)
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

// logLine adds a line to Result.Logs (statemachine/DEFINITION.md, "Log lines").
type logLine struct {
	message *template // no text: it is written as JSON
	text    *prose
}

func (a logLine) run(m *move) error {
	if a.text != nil {
		text, err := a.text.text(&m.scope)
		if err == nil {
			m.logs = append(m.logs, data.Clip(text, maxLogBytes))
		}
		return err
	}
	v, err := a.message.eval(&m.scope)
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

// choose is if / elseif / else.
type choose struct {
	branches []branch
	// lenient: a condition that fails is false and raises error.execution, as SCXML has it.
	lenient bool
}

type branch struct {
	guard   *expr.Program // nil: else
	actions []action
}

func (a choose) run(m *move) error {
	for _, b := range a.branches {
		if b.guard != nil {
			ok, err := b.guard.Bool(&m.scope)
			if err != nil && a.lenient {
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
		return m.runAll(b.actions)
	}
	return nil
}

// forEach runs its body once for each element that the list had at the start.
type forEach struct {
	list        *expr.Program
	item, index string // index: "" when not wanted
	body        []action
}

func (a forEach) run(m *move) error {
	list, err := a.list.Value(&m.scope)
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
		locals[a.item] = v
		if a.index != "" {
			locals[a.index] = data.Value(fmt.Append(nil, i))
		}
		if err := m.runAll(a.body); err != nil {
			return err
		}
	}
	return nil
}
