package clause

import (
	"errors"
	"regexp"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// Delay reads a delay: a constant, or an expression.
func (b *Reader) Delay(n *document.Node) chart.Delay {
	if n.Kind == document.String {
		if text, ok := chart.Expression(n.Text); ok {
			before := len(b.Programs)
			d := chart.Delay{Value: b.Template(n), Text: text}
			b.Timed = append(b.Timed, b.Programs[before:]...)
			return d
		}
	}
	if n.Kind != document.String && n.Kind != document.Number {
		b.Add(n, "%v", chart.ErrDelay)
		return chart.Delay{}
	}
	d, err := chart.ParseDelay(n.Text)
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

var pathOfData = regexp.MustCompile(`^(svcPublic|svcPrivate|event|const|now|instance)\b[\w.]*$`)

func (b *Reader) constantDelay(n *document.Node) time.Duration {
	d := b.Delay(n)
	if d.Value != nil {
		b.Add(n, "must be a constant: it is the same for all instances")
	}
	return d.Constant
}
