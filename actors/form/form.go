// Package form is what makes a workflow instance a form or a checklist: a small record beside the instance's own, and
// the row that a list of its owner shows. The row is in the list of what is current, under way or done, and moves when
// a commit changes that, so a list costs what it shows. An instance that is not a form has a row, too (CreatorRow).
// Record, row and drafts are values, which the commits of the instance write: a list never disagrees with the instance.
// Nothing here reads a clock.
package form

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Kind says which of the portal's lists a form is in. The letters are part of the on-disk format.
type Kind byte

const (
	KindForm      Kind = 'f' // forms, with a workflow and without
	KindChecklist Kind = 'c'
	KindInstance  Kind = 'i' // an instance that is not a form
)

// String returns the word for logs.
func (k Kind) String() string {
	switch k {
	case KindForm:
		return "form"
	case KindChecklist:
		return "checklist"
	case KindInstance:
		return "instance"
	}
	return fmt.Sprintf("kind %q", byte(k))
}

// Form is the record beside an instance.
type Form struct {
	Kind             Kind
	TemplateID, Name string // TemplateID and Name are the template's, when the form was created
	By, Role         string // the user who created it, and Role the role that showed the template
	// SubmissionID is a ULID, given when the form first left its start. SubmittedAt is when, DoneAt when every machine
	// came to its end, LeftAt when it left its start last, in Unix milliseconds and 0 before.
	SubmissionID                string
	SubmittedAt, DoneAt, LeftAt int64

	// Stored is what Append has made of it, for who keeps both. Package form neither sets nor reads it.
	Stored []byte

	start []byte // the states that the creation led to, as JSON
	left  bool   // the states are others now
}

// Moved reports whether the form has left its start: the workflow's machines are not all in the nodes in which the
// creation left them, or all have ended (gateway/INTERFACE.md, "Categories").
func (f *Form) Moved() bool { return f.left || f.DoneAt != 0 }

// Begin returns f as it is right after its creation, which led to states.
func (f Form) Begin(states []byte, done bool, at time.Time, newID func() string) Form {
	f.start = bytes.Clone(states)
	return f.Next(states, done, at, newID)
}

// Next returns f as it is after a step that led to states, in which done says that every machine is at its end. newID
// draws a ULID.
func (f Form) Next(states []byte, done bool, at time.Time, newID func() string) Form {
	moved := f.Moved()
	f.left = !bytes.Equal(states, f.start)
	switch {
	case !done:
		f.DoneAt = 0
	case f.DoneAt == 0:
		f.DoneAt = at.UnixMilli()
	}
	if f.Moved() && !moved {
		f.LeftAt = at.UnixMilli()
	}
	if f.Moved() && f.SubmissionID == "" {
		f.SubmissionID, f.SubmittedAt = newID(), at.UnixMilli()
	}
	return f
}

// ErrDamaged: the bytes are neither a form nor a row.
var ErrDamaged = errors.New("form cannot be read")

const formatVersion = 1

const leftFlag = 1

// Append appends the stored form:
//
//	version(1) kind(1) flags(1)
//	template, name, by, role, submission, start  (each with its length)
//	submitted, done, left                        (varints, ms)
func (f *Form) Append(dst []byte) []byte {
	flags := byte(0)
	if f.left {
		flags = leftFlag
	}
	dst = append(dst, formatVersion, byte(f.Kind), flags)
	for _, text := range f.texts() {
		dst = packed.AppendText(dst, *text)
	}
	dst = packed.AppendText(dst, f.start)
	dst = binary.AppendVarint(dst, f.SubmittedAt)
	dst = binary.AppendVarint(dst, f.DoneAt)
	return binary.AppendVarint(dst, f.LeftAt)
}

func (f *Form) texts() []*string {
	return []*string{&f.TemplateID, &f.Name, &f.By, &f.Role, &f.SubmissionID}
}

// Parse reads what Append wrote, and all of it; else ErrDamaged.
func Parse(b []byte) (*Form, error) {
	r := packed.NewReader(b)
	f := takeForm(&r)
	if !r.Whole() {
		return nil, ErrDamaged
	}
	return f, nil
}

func takeForm(r *packed.Reader) *Form {
	version, kind, flags := r.Byte(), Kind(r.Byte()), r.Byte()
	f := &Form{Kind: kind, left: flags == leftFlag}
	if _, known := listsOf[kind]; version != formatVersion || flags&^leftFlag != 0 || !known {
		r.Fail()
	}
	for _, text := range f.texts() {
		*text = string(r.Text())
	}
	f.start = bytes.Clone(r.Text())
	f.SubmittedAt, f.DoneAt, f.LeftAt = r.Varint(), r.Varint(), r.Varint()
	return f
}

// Row is one line of a list.
type Row struct {
	Form
	WorkflowID string // the instance's workflow
	Nodes      string // the present nodes, joined with ", "
}

// Append appends the stored row: the form, then workflow and nodes, each with its length.
func (r *Row) Append(dst []byte) []byte {
	return packed.AppendText(packed.AppendText(r.Form.Append(dst), r.WorkflowID), r.Nodes)
}

// ParseRow reads what Row.Append wrote, and all of it; else ErrDamaged.
func ParseRow(b []byte) (*Row, error) {
	r := packed.NewReader(b)
	row := &Row{Form: *takeForm(&r), WorkflowID: string(r.Text()), Nodes: string(r.Text())}
	if !r.Whole() {
		return nil, ErrDamaged
	}
	return row, nil
}

// Category is one of the three lists that a form can be in, or Every.
type Category uint8

const (
	Current   Category = iota // not submitted yet, or sent back to the start
	Submitted                 // on its way, or completed not long ago
	Archived                  // completed longer ago
	// Every is all of them together. No form has it.
	Every
)

// String returns the word of the interface.
func (c Category) String() string { return [...]string{"current", "submitted", "archived", "every"}[c] }

// CategoryAt decides the category of a form (gateway/INTERFACE.md, "Categories"). archivedBefore is in Unix
// milliseconds: what was completed before it is archived. So a form becomes archived without any write.
func (f *Form) CategoryAt(archivedBefore int64) Category {
	switch {
	case !f.Moved():
		return Current
	case f.DoneAt != 0 && f.DoneAt < archivedBefore:
		return Archived
	}
	return Submitted
}

// Request asks for an instance as a form, or to write it. What depends on the form's template the caller finds out
// before.
type Request struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	Event                  string             // Event submits the form; empty: nothing does
	Privilege              identity.Privilege // what it takes to write the form besides the workflow's rights; empty: nothing
	Refusal                error              // why nobody can write this now; nil: it can be written
}

// View is an instance as a form, at one moment.
type View struct {
	Form     *Form
	Sequence uint64
	When     int64 // the creation, in Unix milliseconds
	Public   data.Value
	States   []byte // the JSON of the positions, Nodes the names of their nodes, joined with ", "
	Nodes    string
	Editable bool   // the caller may send the event that submits the form now
	Draft    *Draft // the caller's; nil when there is none

	ByPrivilege bool // as of message.Load
}

// lists are the letters of the lists that have the rows of a user's forms of one kind. A commit decides in which of the
// first three a form has its row; whether a completed one is archived depends on the time.
type lists struct {
	current  byte // has not moved; by its creation
	underWay byte // has moved, is not done; by its creation
	done     byte // by its creation
	// ended has a second row for each one that is done, by the time of that; its value is the place that the first has.
	ended byte
}

var listsOf = map[Kind]lists{
	KindForm:      {current: 'f', underWay: 'u', done: 'd', ended: 'e'},
	KindChecklist: {current: 'c', underWay: 'U', done: 'D', ended: 'E'},
	KindInstance:  {current: 'i', underWay: 'j', done: 'k', ended: 'l'},
}

func (l lists) of(f *Form) byte {
	switch {
	case !f.Moved():
		return l.current
	case f.DoneAt == 0:
		return l.underWay
	}
	return l.done
}

// Spot is what the keys of a form's rows have of its instance. Made is the creation, in Unix milliseconds.
type Spot struct {
	Shard key.Shard
	ID    key.ID
	Made  int64
}

// Put writes the rows of a form, and removes those that it had before as another version of itself; nil: it is new.
func (r *Row) Put(w *persistence.Batch, at Spot, before *Form) {
	lists := listsOf[r.Kind]
	key := func(list byte, when int64) []byte { return key.List(nil, at.Shard, list, r.By, when, at.ID) }
	list := lists.of(&r.Form)
	if before != nil {
		if was := lists.of(before); was != list {
			w.Delete(key(was, at.Made))
		}
		if before.DoneAt != 0 && before.DoneAt != r.DoneAt {
			w.Delete(key(lists.ended, before.DoneAt))
		}
	}
	w.Set(key(list, at.Made), r.Append(nil))
	if r.DoneAt != 0 {
		w.Set(key(lists.ended, r.DoneAt), place(at.Made))
	}
}

// Remove removes the rows of a form that is deleted.
func (f *Form) Remove(w *persistence.Batch, at Spot) {
	lists := listsOf[f.Kind]
	w.Delete(key.List(nil, at.Shard, lists.of(f), f.By, at.Made, at.ID))
	if f.DoneAt != 0 {
		w.Delete(key.List(nil, at.Shard, lists.ended, f.By, f.DoneAt, at.ID))
	}
}

const placeBytes = 8

// place is where a time stands in a list: later ones come first.
func place(when int64) []byte { return binary.BigEndian.AppendUint64(nil, ^uint64(when)) }

func behind(place []byte) []byte {
	return append(place, bytes.Repeat([]byte{0xFF}, len(key.ID{})+1)...)
}

// CreatorRow is what the actor of an instance that is not a form remembers of its row in the lists of anyone who created it.
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

// BeginAs is Begin for an instance of another store. row is what it had in the lists there; nil: nothing.
func (c *CreatorRow) BeginAs(by string, row *Row) {
	if c.Begin(by); row != nil {
		c.left, c.doneAt = row.left, row.DoneAt
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

func loadRow(from query.Loader, at Spot, by string) (*Row, error) {
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
		return row, nil
	}
	return nil, nil
}

// IsCreatorList reports whether an instance that is not a form can be in a list: over says whether it has ended.
func IsCreatorList(list byte, over bool) bool {
	lists := listsOf[KindInstance]
	if over {
		return list == lists.done || list == lists.ended
	}
	return list == lists.current || list == lists.underWay
}

// LoadListed returns the row in the lists of anyone who created an instance that is not a form, nil for none.
func LoadListed(from query.Loader, at Spot) (*Row, error) {
	by, err := creatorOf(from, at)
	if err != nil || by == statemachine.System {
		return nil, err
	}
	return loadRow(from, at, by)
}

// Put writes the row as it is for an instance that is there now, if it has changed. One that was not looked up writes
// none.
func (c *CreatorRow) Put(w *persistence.Batch, at Spot, of *statemachine.Definition, in *statemachine.Instance) {
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

// RemoveInstance removes the row of an instance that is not a form and is deleted. s has all that the instance has
// written.
func RemoveInstance(w *persistence.Batch, s *persistence.Store, at Spot) error {
	c := &CreatorRow{}
	if err := c.Look(func() (*persistence.Store, error) { return s, nil }, at); err != nil || !c.has {
		return err
	}
	c.form().Remove(w, at)
	return nil
}
