package form

import (
	"errors"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// CreatorRow is what the actor of an instance that is no form remembers of its row in the lists of whoever created it. The row is written when
// the instance is created, and again when it gets into another category; no other commit reads or writes anything for it. The zero value
// knows nothing.
type CreatorRow struct {
	known bool
	by    string // who created it; empty: it is in nobody's list
	row   *Form  // nil: an earlier program has created it, and it has none yet
}

// Begin is for an instance that is being created. by is the user of the first entry of its history.
func (c *CreatorRow) Begin(by string) {
	*c = CreatorRow{known: true, by: by}
	if by == statemachine.System {
		c.by = ""
	}
}

// IsLacking reports whether the instance is in a list and has no row. It is for one that was looked up.
func (c *CreatorRow) IsLacking() bool { return c.by != "" && c.row == nil }

// IsMoved reports whether a step may bring an instance into another category. of is its definition before the step, and next behind it.
func IsMoved(of, next *statemachine.Definition, before, after *statemachine.Instance) bool {
	return of.IsInitial(before) && !next.IsInitial(after) || of.IsOver(before) != next.IsOver(after)
}

// Look finds out what Put has to know, unless it is known. rows returns what has all that the instance has written.
func (c *CreatorRow) Look(rows func() (*persistence.Store, error), at Spot) error {
	if c.known {
		return nil
	}
	from, err := rows()
	if err != nil {
		return err
	}
	by, err := creatorOf(from, at)
	if err != nil {
		return err
	}
	found := &CreatorRow{}
	if found.Begin(by); found.by != "" {
		if found.row, err = loadRow(from, at, found.by); err != nil {
			return err
		}
	}
	*c = *found
	return nil
}

// creatorOf is the user of an instance's first history entry, and the service itself where that cannot be read.
func creatorOf(from query.Loader, at Spot) (string, error) {
	stored, err := from.Load(persistence.EntryKey(nil, at.Shard, at.ID, 1))
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		return "", failure.OfStore(err)
	}
	entry, err := history.NewReader(from, at.Shard, at.ID).Entry(1, stored)
	user, has := entry.Lookup("user")
	if err != nil || !has || user.Kind() != data.String {
		return statemachine.System, nil // NB: what is damaged shows where the history is read, and holds up no event
	}
	return user.Text(), nil
}

// loadRow is the row of an instance, nil without one.
func loadRow(from query.Loader, at Spot, by string) (*Form, error) {
	lists := listsOf[KindInstance]
	for _, list := range []byte{lists.underWay, lists.current, lists.done} {
		value, err := from.Load(persistence.ListKey(nil, at.Shard, list, by, at.Made, at.ID))
		if errors.Is(err, persistence.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, failure.OfStore(err)
		}
		row, err := ParseRow(value)
		if err != nil {
			return nil, failure.Errorf(failure.ErrExecution, "list row: %w", err)
		}
		return &row.Form, nil
	}
	return nil, nil
}

// Put writes the row as it is for an instance that is there now, if it has changed. One that was not looked up writes none.
func (c *CreatorRow) Put(w *persistence.Writes, at Spot, of *statemachine.Definition, in *statemachine.Instance) {
	if c.by == "" {
		return
	}
	over := of.IsOver(in)
	if c.row != nil && (c.row.left || of.IsInitial(in)) && over == (c.row.DoneAt != 0) {
		return
	}
	next := &Form{Kind: KindInstance, Name: of.Name, By: c.by}
	if c.row != nil {
		*next = *c.row
	}
	*next = next.nextInstance(of.IsInitial(in), over, in.UpdatedAt)
	row := Row{Form: *next, WorkflowID: string(of.ID)}
	row.Put(w, at, c.row)
	c.row = next
}

// nextInstance returns f, of an instance that is no form, as it is after a step. Once it has left its initial nodes it is on its way, also
// when it comes back there: what goes round would write its row with every event.
func (f Form) nextInstance(initial, over bool, at time.Time) Form {
	f.left = f.left || !initial
	switch {
	case !over:
		f.DoneAt = 0
	case f.DoneAt == 0:
		f.DoneAt = at.UnixMilli()
	}
	return f
}

// RemoveInstance removes the row of an instance that is no form and is deleted. s has all that the instance has written.
func RemoveInstance(w *persistence.Writes, s *persistence.Store, at Spot) error {
	c := &CreatorRow{}
	if err := c.Look(func() (*persistence.Store, error) { return s, nil }, at); err != nil || c.row == nil {
		return err
	}
	c.row.Remove(w, at)
	return nil
}
