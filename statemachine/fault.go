package statemachine

import (
	"cmp"
	"errors"
	"strconv"

	"troupe/statemachine/expr"
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

type placed struct {
	*Fault
	cause error
}

func (e *placed) Error() string { return e.cause.Error() }

func (e *placed) Unwrap() error { return e.cause }

type dispatchError struct {
	event  EventName
	sendID string
	cause  error
}

func (e *dispatchError) Error() string { return "send: " + e.cause.Error() }

func (e *dispatchError) Unwrap() error { return e.cause }

// errUnreachable: there is nobody at the target; error.communication then.
var errUnreachable = errors.New("nobody is there")

// executionError is an error.execution that no transition took.
type executionError struct {
	reason string
	fault  *Fault // nil: the step as a whole failed
}

func (e executionError) Error() string { return ErrExecution.Error() + ": " + e.reason }

func (e executionError) Unwrap() error { return ErrExecution }
