package statemachine

import (
	"errors"
	"fmt"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// ErrNotKept: a history does not have all that made an entry. The text says what is missing.
var ErrNotKept = errors.New("not all that made the entry was kept")

// Unborn is what Replay knows of an instance before its creation.
func Unborn(id, key string, parent *Parent) Instance {
	in := Instance{ID: id, Named: record.NamedBy(key)}
	in.State.Parent = parent
	return in
}

// ReplayVersion is the version that the instance has behind an entry with that input, if the entry gives it one, else 0. whole: the entry has all
// that the instance is then, whatever was before.
func ReplayVersion(input []byte) (version uint64, whole bool, err error) {
	of, err := record.ParseInput(input)
	return of.Version, of.Kind == record.ByMigration && of.Given[0] != nil, err
}

// Replay makes the step of an entry once more, without asking for rights, which were asked then. The entry is as the history has it: Start and End
// are not read, Data is what the event brought, and without whole that was too long. The definition is that of the instance behind the entry;
// before its creation the instance is Unborn. It returns ErrNotKept, or the error of a step.
func (d *Definition) Replay(in *Instance, e *Entry, whole bool) (Result, error) {
	of, err := record.ParseInput(e.Input)
	if err != nil {
		return Result{}, err
	}
	if of.Kind != record.ByTimer && of.Kind != record.ByMigration { // of these it is elsewhere
		if declared := d.Events[e.Event]; declared != nil && declared.Unkept {
			return Result{}, fmt.Errorf("%w: histories do not keep the data of %s", ErrNotKept, e.Event)
		}
		if !whole {
			return Result{}, fmt.Errorf("%w: the event brought too much data to be kept", ErrNotKept)
		}
	}
	if len(of.State) > 0 && of.Kind != record.ByMigration {
		aside, err := record.Dressed(&d.Definition, of.State, in)
		if err != nil {
			return Result{}, err
		}
		in = &aside
	}
	caller := chart.SystemCaller
	if e.User != System {
		caller = &Caller{ID: e.User}
		if of.Caller != nil {
			caller = of.Caller
			caller.ID = e.User
		}
	}
	event := &Event{Name: e.Event, ID: of.Text, Data: e.Data, Caller: chart.SystemCaller, Now: e.At}
	switch of.Kind {
	case record.BySender:
		event.Caller = caller
		return d.step(in, event, trigger{name: e.Event, shut: of.ShutIn(&d.Definition)})
	case record.ByCreation:
		return d.create(Creation{ID: in.ID, Key: in.Key(), Caller: caller, Public: of.Given[0], Private: of.Given[1], Now: e.At, Parent: in.State.Parent, Internal: true}, true)
	case record.ByService:
		return d.receive(in, event)
	case record.ByCancel:
		by := e.User
		if by == System {
			by = ""
		}
		return d.Cancel(in, by, e.At)
	case record.ByMigration:
		next, err := of.Moved(&d.Definition, in)
		return Result{Outcome: Moved, Instance: next}, err
	}
	switch {
	case of.Kind == record.ByTimer && of.Part != nil:
		return d.Fire(in, *of.Part, e.At)
	case of.Kind == record.ByCallback && of.Part != nil:
		return d.callback(in, *of.Part, of.Failed, event)
	case of.Kind == record.ByKin && of.From != nil:
		return d.Hear(in, Heard{Child: of.Part, Event: e.Event, Data: e.Data, SendID: of.Text, From: *of.From}, e.At)
	}
	return Result{}, record.ErrRecord
}
