package statemachine

import (
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// due is when a timer ends that begins now. A time that is past is now.
func (m *macrostep) due(d chart.Delay) (time.Time, error) {
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
