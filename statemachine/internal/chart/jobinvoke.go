package chart

import (
	"fmt"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// JobPriorityDefault is the priority of a job that says none, and JobPriorityMax the highest.
const (
	JobPriorityDefault = 50
	JobPriorityMax     = 100
)

// JobInvoke is an invoke that has a job done instead of a child.
type JobInvoke struct {
	Type           string
	Data, Priority *Template // nil: none, and JobPriorityDefault
}

// Eval returns the data and the priority of a job that begins.
func (inv *JobInvoke) Eval(s *expr.Scope) (v data.Value, priority int, err error) {
	priority = JobPriorityDefault
	if inv.Data != nil {
		v, err = inv.Data.Eval(s)
	}
	if inv.Priority != nil && err == nil {
		var p data.Value
		if p, err = inv.Priority.Eval(s); err == nil {
			priority, err = JobPriority(p)
		}
	}
	return v, priority, err
}

var errJobPriority = fmt.Errorf("priority must be a whole number from 0 to %d", JobPriorityMax)

// JobPriority reads a priority.
func JobPriority(v data.Value) (int, error) {
	i, ok := v.Truncate()
	if v.Kind() != data.Number || !ok || i < 0 || i > JobPriorityMax || float64(i) != v.Float64() {
		return 0, errJobPriority
	}
	return int(i), nil
}
