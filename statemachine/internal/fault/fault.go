// Package fault says why a step fails: what was wrong and where, and the bounds of one event.
package fault

import (
	"errors"
	"strconv"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// Fault says where and why a step failed.
type Fault struct {
	// File is that of the definition, as it was published. Line is where the expression, the action or, of a step that never
	// ends, the transition stands; 0: the step as a whole failed, or that is unknown.
	File string
	Line int
	// Expression is its text; "" when it was no expression that failed.
	Expression string
	// Read are the values that the expression names, private ones included.
	Read []expr.Read
	// Message is the reason. It may quote data of the instance.
	Message string
}

// Error is the place and the message.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.Message
	}
	return f.File + ":" + strconv.Itoa(f.Line) + ": " + f.Message
}

// ErrExecution: see statemachine.ErrExecution.
var ErrExecution = errors.New("execution error")

// ErrUnreachable: there is nobody at the target; error.communication then.
var ErrUnreachable = errors.New("nobody is there")

// Execution is an error.execution that no transition took.
type Execution struct {
	Reason string
	Fault  *Fault // nil: the step as a whole failed
}

// Error has the reason.
func (e Execution) Error() string { return ErrExecution.Error() + ": " + e.Reason }

// Unwrap is ErrExecution.
func (e Execution) Unwrap() error { return ErrExecution }

// Placed is an error whose origin is known.
type Placed struct {
	*Fault
	Cause error
}

// Error is the text of the cause.
func (e *Placed) Error() string { return e.Cause.Error() }

// Unwrap is the cause.
func (e *Placed) Unwrap() error { return e.Cause }

// Place notes the origin of an error, while the scope is that of its origin. at is the action; nil: it was none. more reports whether the
// fault shall have the values that its expression names.
func Place(err error, places *chart.Places, at *chart.Action, s *expr.Scope, more func() bool) error {
	var known *Placed
	if errors.As(err, &known) {
		return err
	}
	f := &Fault{File: places.File, Message: err.Error()}
	var failed *expr.Failure
	switch {
	case errors.As(err, &failed):
		f.Line, f.Expression = places.Programs[failed.Program], failed.Program.Source()
		if more() {
			f.Read = failed.Program.Read(s)
		}
	case at != nil:
		f.Line = places.Actions[at]
	}
	return &Placed{f, err}
}

// PlaceBound returns an error with the line of the action or the transition with which the step has passed a bound; of those that stand
// inside each other the innermost counts. 0: it is not known.
func PlaceBound(err error, places *chart.Places, line int) error {
	var of Execution
	if line > 0 && errors.As(err, &of) && of.Fault == nil {
		of.Fault = &Fault{File: places.File, Line: line, Message: of.Reason}
		return of
	}
	return err
}

// Dispatch is an event that could not be sent. Event is how the instance hears of it.
type Dispatch struct {
	Event  chart.EventName
	SendID string
	Cause  error
}

// Error says what went wrong.
func (e *Dispatch) Error() string { return "send: " + e.Cause.Error() }

// Unwrap is the cause.
func (e *Dispatch) Unwrap() error { return e.Cause }
