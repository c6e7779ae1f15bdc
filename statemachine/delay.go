package statemachine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// delayMax is the longest delay: what comes later is a slip.
const delayMax = 36_500 * 24 * time.Hour

// isoDuration is a duration of ISO 8601 without years and months, which have no fixed length: weeks, days, hours,
// minutes and seconds, the last with a fraction.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:[.,](\d{1,9}))?S)?)?$`)

var (
	errNegativeDelay = errors.New("a delay cannot be negative")
	errLongDelay     = errors.New("a delay is at most 36,500 days")
	errDelay         = errors.New("a delay is a duration such as P2D, PT30M or 48h, or a number of milliseconds")
	errCalendar      = errors.New("years and months have no fixed length: say days")
)

// ParseDelay reads a constant delay as a definition writes it (statemachine/DEFINITION.md, "Delays").
func ParseDelay(text string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return boundedDelay(ms, time.Millisecond)
	}
	if strings.HasPrefix(text, "P") {
		return parseISODuration(text)
	}
	if iso, negative := strings.CutPrefix(text, "-P"); negative && isoDuration.MatchString("P"+iso) {
		return 0, errNegativeDelay
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDelay
	}
	return boundedDelay(int64(d), 1)
}

func parseISODuration(text string) (time.Duration, error) {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "T") || text == "P" {
		if date, _, _ := strings.Cut(text, "T"); strings.ContainsAny(date, "YM") {
			return 0, errCalendar
		}
		return 0, errDelay
	}
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.ParseInt(parts[i+1], 10, 64) // "" is 0
		part, err := boundedDelay(n, unit)
		if err != nil {
			return 0, err
		}
		sum += part
	}
	if fraction := parts[6]; fraction != "" {
		n, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		sum += time.Duration(n)
	}
	return boundedDelay(int64(sum), 1)
}

// boundedDelay is n units, when that is a delay.
func boundedDelay(n int64, unit time.Duration) (time.Duration, error) {
	switch {
	case n < 0:
		return 0, errNegativeDelay
	case n > int64(delayMax/unit):
		return 0, errLongDelay
	}
	return time.Duration(n) * unit, nil
}

// delay is how long a timer runs. Exactly one of its forms counts: value when it is set.
type delay struct {
	constant time.Duration
	value    *template // a duration, a number of milliseconds, or a time
	text     string    // as it stands in the file, without ${ }
}

// due is when a timer ends that begins now. A time that is past is now.
func (d delay) due(m *move) (time.Time, error) {
	now := m.scope.Now
	if d.value == nil {
		return now.Add(d.constant), nil
	}
	v, err := d.value.eval(&m.scope)
	if err != nil {
		return now, err
	}
	wait := time.Duration(0)
	switch v.Kind() {
	case data.Number:
		ms, ok := v.Truncate()
		if !ok {
			return now, errLongDelay
		}
		wait, err = boundedDelay(ms, time.Millisecond)
	case data.String:
		text := v.Text()
		if at, notTime := time.Parse(time.RFC3339Nano, text); notTime == nil {
			if wait = at.Sub(now); wait < 0 {
				return now, nil
			}
			wait, err = boundedDelay(int64(wait), 1)
		} else {
			wait, err = ParseDelay(text)
		}
	default:
		err = errDelay
	}
	if err != nil {
		return now, fmt.Errorf("%w, not %s", err, data.Shorten(string(v)))
	}
	return now.Add(wait), nil
}

// delay reads a delay: a constant, or an expression.
func (b *builder) delay(n *document.Node) delay {
	b.byItself(n)
	if n.Kind == document.String {
		if text, ok := expression(n.Text); ok {
			before := len(b.programs)
			d := delay{value: b.template(n), text: text}
			b.timed = append(b.timed, b.programs[before:]...)
			return d
		}
	}
	if n.Kind != document.String && n.Kind != document.Number {
		b.Add(n, "%v", errDelay)
		return delay{}
	}
	d, err := ParseDelay(n.Text)
	if err != nil {
		switch f := b.Add(n, "%q: %v", data.Shorten(n.Text), err); {
		case errors.Is(err, errNegativeDelay):
			f.Suggestion = "0 is at once"
		case pathOfData.MatchString(n.Text):
			f.Suggestion = "an expression is written '${" + n.Text + "}'"
		}
	}
	return delay{constant: d, text: n.Text}
}

// pathOfData is a text that was meant as an expression.
var pathOfData = regexp.MustCompile(`^(svcPublic|svcPrivate|event|const|now|instance)\b[\w.]*$`)

// byItself notes that an instance does something by itself, or has something else that programs of a cluster's first level do not know.
func (b *builder) byItself(n *document.Node) { b.d.ownLine = cmp.Or(b.d.ownLine, n.Line) }

// constantDelay reads a delay that no expression gives.
func (b *builder) constantDelay(n *document.Node) time.Duration {
	d := b.delay(n)
	if d.value != nil {
		b.Add(n, "must be a constant: it is the same for all instances")
	}
	return d.constant
}
