package changefeed

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Entry is what a row leads to.
type Entry struct {
	*Row
	Name   string // the id as text
	Text   data.Value
	States []byte // that the entry led to
	// Instance is as it is now, under the definition Of. Newest says that this is how the entry left it.
	Instance statemachine.Instance
	Of       *statemachine.Definition
	Newest   bool
}

// Load reads what a row leads to, in the snapshot in which the row was read. It is nil when the instance is gone.
func (s *Service) Load(sn *persistence.Snapshot, row *Row) (*Entry, error) {
	in, err := query.LoadInstance(sn, s.o.Catalog, row.Shard, row.Workflow, row.ID)
	if errors.Is(err, failure.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Entry{Row: row, Name: instanceid.Text(row.ID), Instance: in.State, Of: in.Of}, nil
}

// LoadText reads the entry itself, which Load has left out: it comes behind the rights.
func (s *Service) LoadText(sn *persistence.Snapshot, e *Entry) error {
	value, err := sn.Load(key.Entry(nil, e.Shard, e.ID, e.Sequence))
	if err != nil {
		return failure.OfStore(err)
	}
	if e.Text, err = history.NewReader(sn, e.Shard, e.ID).Entry(e.Sequence, value); err != nil {
		return failure.Errorf(failure.ErrExecution, "entry of %s: %w", e.Name, err)
	}
	if e.Newest = e.Sequence == e.Instance.Sequence; e.Newest {
		e.States = e.Of.States(&e.Instance)
	} else {
		e.States = e.Of.StatesOf(e.Text)
	}
	return nil
}
