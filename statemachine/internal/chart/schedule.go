package chart

import (
	"errors"
	"time"

	"troupe/statemachine/cron"
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Missed says what happens to runs for which nobody was there.
type Missed byte

// Missed runs are left out, made up for by one, or all made.
const (
	MissedOne Missed = iota
	MissedSkip
	MissedAll
)

// Schedule creates instances at times (statemachine/DEFINITION.md, "Runs of schedules").
type Schedule struct {
	Name string
	// Cron is as the file has it, Spec what it means, and Zone the name of its zone.
	Cron string
	Spec *cron.Spec
	Zone string
	// Missed is for runs of more than a minute ago.
	Missed Missed
	// As is the user who creates the instances; "": the service itself. AsLine is where that stands.
	As     string
	AsLine int

	Public, Private *Template // nil: nothing
}

var errScheduleData = errors.New("svcPublic and svcPrivate must be objects")

// Data is what an instance gets that is created for a time.
func (s *Schedule) Data(at time.Time) (public, private data.Value, err error) {
	scope := &expr.Scope{Now: at}
	if public, err = s.part(s.Public, scope); err == nil {
		private, err = s.part(s.Private, scope)
	}
	return public, private, err
}

func (*Schedule) part(t *Template, scope *expr.Scope) (data.Value, error) {
	if t == nil {
		return nil, nil
	}
	v, err := t.Eval(scope)
	if err == nil && v.Kind() != data.Object {
		err = errScheduleData
	}
	return v, err
}
