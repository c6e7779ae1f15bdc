package form

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// CreatorRow is what the actor of an instance that is no form remembers of its row in the lists of whoever created it.
// The row is written when the instance is created, and again when it gets into another category; no other commit reads
// or writes anything for it.
type CreatorRow struct {
	by     string // who created it; empty: it is in nobody's list
	doneAt int64  // Form.DoneAt of the row
	left   bool   // Form.left of the row
	has    bool   // false: it has no row yet, since it is new
	known  bool
}

// NB: it is made when it is needed. An awake instance is one of a million.
func (c *CreatorRow) form() *Form {
	if !c.has {
		return nil
	}
	return &Form{Kind: KindInstance, By: c.by, DoneAt: c.doneAt, left: c.left}
}

// Begin is for an instance that is being created. by is the user of the first entry of its history.
func (c *CreatorRow) Begin(by string) {
	*c = CreatorRow{known: true, by: by}
	if by == statemachine.System {
		c.by = ""
	}
}

// IsMoved reports whether a step may bring an instance into another category. of is its definition before the step, and
// next behind it.
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
		row, err := loadRow(from, at, found.by)
		if err != nil {
			return err
		}
		if row != nil {
			found.has, found.left, found.doneAt = true, row.left, row.DoneAt
		}
	}
	*c = *found
	return nil
}

// creatorOf is the user of an instance's first history entry, and the service itself where that cannot be read.
func creatorOf(from query.Loader, at Spot) (string, error) {
	stored, err := from.Load(key.Entry(nil, at.Shard, at.ID, 1))
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

func loadRow(from query.Loader, at Spot, by string) (*Form, error) {
	lists := listsOf[KindInstance]
	for _, list := range []byte{lists.underWay, lists.current, lists.done} {
		value, err := from.Load(key.List(nil, at.Shard, list, by, at.Made, at.ID))
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

// Put writes the row as it is for an instance that is there now, if it has changed. One that was not looked up writes
// none.
func (c *CreatorRow) Put(w *persistence.Writes, at Spot, of *statemachine.Definition, in *statemachine.Instance) {
	if c.by == "" {
		return
	}
	initial, over := of.IsInitial(in), of.IsOver(in)
	if c.has && (c.left || initial) && over == (c.doneAt != 0) {
		return
	}
	before := c.form()
	c.has = true
	c.left = c.left || !initial // NB: once, also when it comes back there: what goes round would write its row with every event
	switch {
	case !over:
		c.doneAt = 0
	case c.doneAt == 0:
		c.doneAt = in.UpdatedAt.UnixMilli()
	}
	row := Row{Form: *c.form(), WorkflowID: string(of.ID)}
	row.Name = of.Name
	row.Put(w, at, before)
}

// RemoveInstance removes the row of an instance that is no form and is deleted. s has all that the instance has
// written.
func RemoveInstance(w *persistence.Writes, s *persistence.Store, at Spot) error {
	c := &CreatorRow{}
	if err := c.Look(func() (*persistence.Store, error) { return s, nil }, at); err != nil || !c.has {
		return err
	}
	c.form().Remove(w, at)
	return nil
}
