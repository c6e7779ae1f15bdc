package chart

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// delayMax is the longest delay: what comes later is a slip.
const delayMax = 36_500 * 24 * time.Hour

// isoDuration is a duration of ISO 8601 without years and months, which have no fixed length: weeks, days, hours,
// minutes and seconds, the last with a fraction.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:[.,](\d{1,9}))?S)?)?$`)

var (
	ErrNegativeDelay = errors.New("a delay cannot be negative")
	ErrLongDelay     = errors.New("a delay is at most 36,500 days")
	ErrDelay         = errors.New("a delay is a duration such as P2D, PT30M or 48h, or a number of milliseconds")
	errCalendar      = errors.New("years and months have no fixed length: say days")
)

// ParseDelay reads a constant delay as a definition writes it (statemachine/DEFINITION.md, "Delays").
func ParseDelay(text string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return BoundedDelay(ms, time.Millisecond)
	}
	if strings.HasPrefix(text, "P") {
		return parseISODuration(text)
	}
	if iso, negative := strings.CutPrefix(text, "-P"); negative && isoDuration.MatchString("P"+iso) {
		return 0, ErrNegativeDelay
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, ErrDelay
	}
	return BoundedDelay(int64(d), 1)
}

func parseISODuration(text string) (time.Duration, error) {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "T") || text == "P" {
		if date, _, _ := strings.Cut(text, "T"); strings.ContainsAny(date, "YM") {
			return 0, errCalendar
		}
		return 0, ErrDelay
	}
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.ParseInt(parts[i+1], 10, 64) // "" is 0
		part, err := BoundedDelay(n, unit)
		if err != nil {
			return 0, err
		}
		sum += part
	}
	if fraction := parts[6]; fraction != "" {
		n, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		sum += time.Duration(n)
	}
	return BoundedDelay(int64(sum), 1)
}

// BoundedDelay is n units, when that is a delay.
func BoundedDelay(n int64, unit time.Duration) (time.Duration, error) {
	switch {
	case n < 0:
		return 0, ErrNegativeDelay
	case n > int64(delayMax/unit):
		return 0, ErrLongDelay
	}
	return time.Duration(n) * unit, nil
}

// Delay is how long a timer runs. Exactly one of its forms counts: value when it is set.
type Delay struct {
	Constant time.Duration
	Value    *Template // a duration, a number of milliseconds, or a time
	Text     string    // as it stands in the file, without ${ }
}

// Due is when a timer ends that begins now. A time that is past is now.
func (d *Delay) Due(scope *expr.Scope) (time.Time, error) {
	now := scope.Now
	if d.Value == nil {
		return now.Add(d.Constant), nil
	}
	v, err := d.Value.Eval(scope)
	if err != nil {
		return now, err
	}
	wait := time.Duration(0)
	switch v.Kind() {
	case data.Number:
		ms, ok := v.Truncate()
		if !ok {
			return now, ErrLongDelay
		}
		wait, err = BoundedDelay(ms, time.Millisecond)
	case data.String:
		text := v.Text()
		if at, notTime := time.Parse(time.RFC3339Nano, text); notTime == nil {
			if wait = at.Sub(now); wait < 0 {
				return now, nil
			}
			wait, err = BoundedDelay(int64(wait), 1)
		} else {
			wait, err = ParseDelay(text)
		}
	default:
		err = ErrDelay
	}
	if err != nil {
		return now, fmt.Errorf("%w, not %s", err, data.Shorten(string(v)))
	}
	return now.Add(wait), nil
}
