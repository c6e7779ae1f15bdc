package statemachine

import (
	"cmp"
	"errors"
	"strconv"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// Fault says where and why a step failed.
type Fault struct {
	// File is that of the definition, as it was published. Line is where the expression, the action or, of a step that never
	// ends, the transition stands; 0: the step as a whole failed, or nobody knows.
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

// FaultOf returns why a step of an instance of the definition failed; nil for an error that is not ErrExecution.
func (d *Definition) FaultOf(err error) *Fault {
	if !errors.Is(err, ErrExecution) {
		return nil
	}
	var of executionError
	errors.As(err, &of)
	if of.fault != nil {
		return of.fault
	}
	return &Fault{File: d.Places.File, Message: cmp.Or(of.reason, err.Error())}
}

// placeBound notes the line of the action or the transition with which the step has passed a bound; of those that stand inside each other
// the innermost counts. 0: it is not known.
func (m *macrostep) placeBound(line int) {
	var of executionError
	if line > 0 && errors.As(m.failure, &of) && of.fault == nil {
		of.fault = &Fault{File: m.d.Places.File, Line: line, Message: of.reason}
		m.failure = of
	}
}

// faultsRead is how many faults of a macrostep have the values that their expressions name: those that are handled need none.
const faultsRead = 4

// placed is the error of an action or an expression, with what is known of its place.
type placed struct {
	*Fault
	cause error
}

func (e *placed) Error() string { return e.cause.Error() }

func (e *placed) Unwrap() error { return e.cause }

// place notes where an error comes from while the scope is the one that it comes from. at is the action; nil: it was none.
func (m *macrostep) place(err error, at *chart.Action) error {
	var known *placed
	if errors.As(err, &known) {
		return err
	}
	f := &Fault{File: m.d.Places.File, Message: err.Error()}
	var failed *expr.Failure
	switch {
	case errors.As(err, &failed):
		f.Line, f.Expression = m.d.Places.Programs[failed.Program], failed.Program.Source()
		if m.faults++; m.faults <= faultsRead {
			f.Read = failed.Program.Read(&m.scope)
		}
	case at != nil:
		f.Line = m.d.Places.Actions[at]
	}
	return &placed{f, err}
}
