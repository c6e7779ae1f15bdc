package statemachine

import (
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// inputOf is what an entry keeps of an event that a caller has sent to an instance.
func (d *Definition) inputOf(caller *Caller, id string, shut []*chart.Transition, before *Instance) []byte {
	of := record.InputOfSender(&d.Definition, caller, id, shut)
	return d.keep(&of, before)
}

func (d *Definition) keep(of *record.Input, before *Instance) []byte {
	if before != nil && before.State.Aside {
		of.State = record.Bare(&d.Definition, before)
	}
	return of.Append(nil)
}

// kept sets the input of the entry of a step that was made of an instance.
func (d *Definition) kept(r Result, err error, before *Instance, of record.Input) (Result, error) {
	if err == nil && r.Outcome != Ignored {
		r.Entry.Input = d.keep(&of, before)
	}
	return r, err
}
