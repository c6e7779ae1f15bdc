package form

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"troupe/statemachine/packed"
)

// Kind says which of the portal's lists a form is in. The letters are part of the on-disk format.
type Kind byte

const (
	KindForm      Kind = 'f' // forms, with a workflow and without
	KindChecklist Kind = 'c'
	KindInstance  Kind = 'i' // an instance that is no form (instance.go)
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

// ErrDamaged: the bytes are no form and no row.
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
