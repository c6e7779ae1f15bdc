package statemachine

import (
	"slices"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// inputOf is what an entry keeps of an event that a caller has sent to an instance.
func (d *Definition) inputOf(caller *Caller, id string, shut []*chart.Transition, before *Instance) []byte {
	var of record.Input
	if d.ReadsUser {
		of.Caller = caller
	}
	if d.ReadsEventID {
		of.Text = id
	}
	for _, t := range shut {
		of.Shut = append(of.Shut, [2]uint64{uint64(t.Source.Index), uint64(slices.Index(t.Source.On, t))}) //nolint:gosec // not negative
	}
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
