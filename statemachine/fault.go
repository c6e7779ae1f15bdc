package statemachine

import (
	"cmp"
	"errors"

	"troupe/statemachine/internal/fault"
)

// FaultOf returns why a step of an instance of the definition failed; nil for an error that is not ErrExecution.
func (d *Definition) FaultOf(err error) *Fault {
	if !errors.Is(err, ErrExecution) {
		return nil
	}
	var of fault.Execution
	errors.As(err, &of)
	if of.Fault != nil {
		return of.Fault
	}
	return &Fault{File: d.Places.File, Message: cmp.Or(of.Reason, err.Error())}
}
