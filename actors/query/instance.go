package query

import (
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Loader is what a row is read from: a snapshot, a Reader, or the store.
type Loader interface {
	Load(key []byte) ([]byte, error)
}

// Instance is an instance as the store has it.
type Instance struct {
	Of    *statemachine.Definition // its own
	State statemachine.Instance
}

// LoadInstance reads an instance: failure.ErrNotFound when there is none, failure.ErrExecution when it cannot be read.
// It asks for no right.
func LoadInstance(from Loader, c *catalog.Catalog, sh key.Shard, workflow string, id key.ID) (*Instance, error) {
	stored, err := from.Load(key.Record(nil, sh, workflow, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	in := &Instance{}
	name := instanceid.Text(id)
	record, err := statemachine.ParseRecord(stored)
	if err == nil {
		if in.Of, err = c.Version(workflow, record.Version); err == nil {
			in.State, err = in.Of.Restore(name, record)
		}
	}
	if err != nil {
		return nil, failure.Errorf(failure.ErrExecution, "instance %s: %w", name, err)
	}
	return in, nil
}
