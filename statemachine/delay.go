package statemachine

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// due is when a timer ends that begins now. A time that is past is now.
func (m *move) due(d chart.Delay) (time.Time, error) {
	now := m.scope.Now
	if d.Value == nil {
		return now.Add(d.Constant), nil
	}
	v, err := d.Value.Eval(&m.scope)
	if err != nil {
		return now, err
	}
	wait := time.Duration(0)
	switch v.Kind() {
	case data.Number:
		ms, ok := v.Truncate()
		if !ok {
			return now, chart.ErrLongDelay
		}
		wait, err = chart.BoundedDelay(ms, time.Millisecond)
	case data.String:
		text := v.Text()
		if at, notTime := time.Parse(time.RFC3339Nano, text); notTime == nil {
			if wait = at.Sub(now); wait < 0 {
				return now, nil
			}
			wait, err = chart.BoundedDelay(int64(wait), 1)
		} else {
			wait, err = ParseDelay(text)
		}
	default:
		err = chart.ErrDelay
	}
	if err != nil {
		return now, fmt.Errorf("%w, not %s", err, data.Shorten(string(v)))
	}
	return now.Add(wait), nil
}

// delay reads a delay: a constant, or an expression.
func (b *builder) delay(n *document.Node) chart.Delay {
	if n.Kind == document.String {
		if text, ok := chart.Expression(n.Text); ok {
			before := len(b.programs)
			d := chart.Delay{Value: b.template(n), Text: text}
			b.timed = append(b.timed, b.programs[before:]...)
			return d
		}
	}
	if n.Kind != document.String && n.Kind != document.Number {
		b.Add(n, "%v", chart.ErrDelay)
		return chart.Delay{}
	}
	d, err := ParseDelay(n.Text)
	if err != nil {
		switch f := b.Add(n, "%q: %v", data.Shorten(n.Text), err); {
		case errors.Is(err, chart.ErrNegativeDelay):
			f.Suggestion = "0 is at once"
		case pathOfData.MatchString(n.Text):
			f.Suggestion = "an expression is written '${" + n.Text + "}'"
		}
	}
	return chart.Delay{Constant: d, Text: n.Text}
}

// pathOfData is a text that was meant as an expression.
var pathOfData = regexp.MustCompile(`^(svcPublic|svcPrivate|event|const|now|instance)\b[\w.]*$`)

// constantDelay reads a delay that no expression gives.
func (b *builder) constantDelay(n *document.Node) time.Duration {
	d := b.delay(n)
	if d.Value != nil {
		b.Add(n, "must be a constant: it is the same for all instances")
	}
	return d.Constant
}
