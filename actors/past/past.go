// Package past goes through the history of an instance once more: it makes each step again of what the entry keeps, and so knows the
// instance after any entry. It reads the store beside the instance's actor, which goes on meanwhile.
package past

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// ErrNotKept: the history does not have all that made an entry. The text says which one, and what is missing.
var ErrNotKept = statemachine.ErrNotKept

// ErrDiffers is ErrNotKept of an entry that has all of it and, made again, comes to something else than it says.
var ErrDiffers = fmt.Errorf("%w: made again it comes to something else", ErrNotKept)

// Moment is an instance after one of its entries.
type Moment struct {
	Instance statemachine.Instance
	Of       *statemachine.Definition
}

// Replay goes through the history of one instance, the first entry first.
type Replay struct {
	Moment
	versions func(number uint64) (*statemachine.Definition, error)
	n        uint64 // the entries so far
	err      error  // of the first entry that could not be made again
}

// New begins before the first entry of an instance, of which the id, the key and the parent are known. versions are those of its workflow.
func New(id key.ID, businessKey string, parent *statemachine.Parent, versions func(number uint64) (*statemachine.Definition, error)) *Replay {
	in := statemachine.Unborn(instanceid.Text(id), businessKey, parent)
	return &Replay{Moment: Moment{Instance: in}, versions: versions}
}

// Next makes the step of the next entry again. Behind an entry that was not kept the error stays, up to a migration or a reset that has the
// whole instance. That of an entry that differs stays for good.
func (r *Replay) Next(e *history.Stored) error {
	r.n++
	if _, whole, _ := statemachine.ReplayVersion(e.Input); e.Kept && whole && !errors.Is(r.err, ErrDiffers) {
		r.err = nil
	}
	if r.err == nil {
		if err := r.next(e); err != nil {
			r.err = fmt.Errorf("entry %d: %w", r.n, err)
		}
	}
	return r.err
}

// Err says why the last step could not be made again; nil when it could.
func (r *Replay) Err() error { return r.err }

func (r *Replay) next(e *history.Stored) error {
	if !e.Kept {
		return fmt.Errorf("%w: the entry is older than what keeps it, or more than %d KiB made it", ErrNotKept, history.DataBytesMax>>10)
	}
	version, _, err := statemachine.ReplayVersion(e.Input)
	if err == nil && version != 0 {
		if r.Of, err = r.versions(version); errors.Is(err, failure.ErrNotFound) {
			return fmt.Errorf("%w: version %d is not here any more", ErrNotKept, version)
		}
	}
	if err != nil {
		return err
	}
	if r.Of == nil {
		return fmt.Errorf("%w: nothing says which version it began with", ErrNotKept)
	}
	entry, err := entryOf(e)
	if err != nil {
		return err
	}
	result, err := r.Of.Replay(&r.Instance, entry, !e.Digest)
	if errors.Is(err, ErrNotKept) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	// NB: a service of another version may take another way, and then nothing is said rather than something wrong.
	end, _ := e.Entry.Lookup("endState")
	if result.Outcome == statemachine.Ignored || string(statemachine.AppendNodes(nil, result.Instance.Ends())) != string(end) || history.SumOf(&result.Instance) != e.Sum {
		return ErrDiffers
	}
	r.Instance = result.Instance
	return nil
}

func entryOf(e *history.Stored) (*statemachine.Entry, error) {
	user, _ := e.Entry.Lookup("user")
	event, _ := e.Entry.Lookup("transitionEvent")
	ts, _ := e.Entry.Lookup("ts")
	at, err := time.Parse(time.RFC3339, ts.Text())
	entry := &statemachine.Entry{User: user.Text(), Event: statemachine.EventName(event.Text()), At: at, Input: slices.Clone(e.Input)}
	if !e.Digest {
		entry.Data = slices.Clone(e.Brought) // NB: the instance may keep it
	}
	return entry, err
}

// Source is where a history is read.
type Source struct {
	Store    *persistence.Store
	Catalog  *catalog.Catalog
	Workflow string
	ID       key.ID
}

// checkEvery is how many entries At makes again between two checks: about half a millisecond.
const checkEvery = 16

// At returns the instance after entry n. It returns ErrNotKept, failure.ErrNotFound when there is no such entry, or the error of check, which
// is called again and again. What it reads must be durable.
func (s *Source) At(check func() error, n uint64) (Moment, error) {
	sh := s.Store.ShardOf(s.ID)
	stored, err := s.Store.Load(key.Record(nil, sh, s.Workflow, s.ID))
	if errors.Is(err, persistence.ErrNotFound) {
		return Moment{}, failure.ErrNotFound
	}
	if err != nil {
		return Moment{}, failure.OfStore(err)
	}
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return Moment{}, failure.Errorf(failure.ErrExecution, "%w", err)
	}
	if n == 0 || n > record.Sequence {
		return Moment{}, failure.ErrNotFound
	}
	replay := New(s.ID, record.Key, record.Parent(), func(number uint64) (*statemachine.Definition, error) {
		return s.Catalog.Version(s.Workflow, number)
	})
	walk := history.NewWalker(s.Store, sh, s.ID)
	for k := uint64(1); k <= n; k++ {
		if k%checkEvery == 0 {
			if err := check(); err != nil {
				return Moment{}, err
			}
		}
		stored, err := s.Store.Load(key.Entry(nil, sh, s.ID, k))
		if errors.Is(err, persistence.ErrNotFound) { // it was deleted meanwhile
			return Moment{}, failure.ErrNotFound
		}
		if err != nil {
			return Moment{}, failure.OfStore(err)
		}
		e, err := walk.Next(k, stored)
		if err != nil {
			return Moment{}, failure.Errorf(failure.ErrExecution, "%w", err)
		}
		_ = replay.Next(&e) // a later entry may have it all
	}
	return replay.Moment, replay.Err()
}
