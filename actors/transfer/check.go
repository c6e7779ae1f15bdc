package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/internal/history"
	"troupe/statemachine"
)

const (
	rowBytesMax  = 16 << 20       // of a row that comes along
	restBytesMax = 1 << 20        // of a record, without its data
	aheadMax     = 24 * time.Hour // how far the clock can be ahead where the instance was
)

// definition is that of a record, as it is in a line. NB: a record of the store with a version that is not here is damage, which the catalog notes.
func (m *importing) definition(workflow string, record []byte) (*statemachine.Definition, error) {
	var of struct {
		Version uint64 `json:"version"`
	}
	if err := json.Unmarshal(record, &of); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	d, err := m.catalog.Find(workflow, of.Version)
	if errors.Is(err, failure.ErrNotFound) {
		err = fmt.Errorf("%s version %d is not published here", workflow, of.Version)
	}
	return d, err
}

// agrees refuses an instance whose record does not follow from its history, or that the service would not have let become so large.
func (it *arriving) agrees(built *history.Builder) error {
	in := &it.State
	size := len(in.Public) + len(in.Private)
	switch {
	case built.N == 0:
		return errors.New("it has no history")
	case built.N != in.Sequence || !slices.Equal(built.End, in.Ends()):
		return fmt.Errorf("the history has %d entries and ends at %v, and the record speaks of %d and is at %v", built.N, built.End, in.Sequence, in.Ends())
	case built.Misfit != nil:
		return built.Misfit
	case string(it.Record.States) != string(it.Of.States(in)):
		return fmt.Errorf("states of the record must be %s", it.Of.States(in))
	case !in.CreatedAt.Equal(built.Began) || !in.UpdatedAt.Equal(built.At):
		return fmt.Errorf("createdAt and updatedAt of the record, %s and %s, are not the times of the first and the last history entry, %s and %s",
			in.CreatedAt.Format(time.RFC3339Nano), in.UpdatedAt.Format(time.RFC3339Nano), built.Began.Format(time.RFC3339Nano), built.At.Format(time.RFC3339Nano))
	case built.At.After(time.Now().Add(aheadMax)):
		return fmt.Errorf("its last history entry is of %s, which is in the future: check the clocks", built.At.Format(time.RFC3339))
	case size > statemachine.MaxDataBytes:
		return fmt.Errorf("svcPublic and svcPrivate have %d bytes, and may have %d", size, statemachine.MaxDataBytes)
	case len(it.stored)-size > restBytesMax:
		return fmt.Errorf("the record has %d bytes beside its data, and may have %d", len(it.stored)-size, restBytesMax)
	case in.Key() != "" && !statemachine.IsKey(in.Key()):
		return fmt.Errorf("its key must have 1 to %d characters, and no control characters", statemachine.MaxKeyChars)
	}
	return nil
}

// list makes the row in the lists of the creator. It follows from record and history, except when the instance was done, and whether it
// has ever left its start.
func (it *arriving) list(by string, stored []byte) error {
	var row *form.Row
	if len(stored) > 0 {
		var err error
		if row, err = form.ParseRow(stored); err != nil {
			return err
		}
		done := time.UnixMilli(row.DoneAt)
		if row.DoneAt != 0 && (done.Before(it.State.CreatedAt) || done.After(it.State.UpdatedAt)) {
			return fmt.Errorf("it was done at %s, which is not within its history", done.UTC().Format(time.RFC3339))
		}
	}
	it.listed.BeginAs(by, row)
	return nil
}
