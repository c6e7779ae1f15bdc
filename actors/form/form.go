package form

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Kind says which of the portal's lists a form is in. The letters are part of
// the on-disk format.
type Kind byte

const (
	Plain     Kind = 'f' // forms, with a workflow and without
	Checklist Kind = 'c'
)

// String returns the word for logs.
func (k Kind) String() string {
	switch k {
	case Plain:
		return "form"
	case Checklist:
		return "checklist"
	}
	return fmt.Sprintf("kind %q", byte(k))
}

// Form is the record beside an instance.
type Form struct {
	Kind Kind
	// TemplateID and Name are the template's, when the form was created.
	TemplateID, Name string
	// By is the user who created it, and Role the role that showed the template.
	By, Role string
	// SubmissionID is a ULID, given when the form first left its start; empty
	// until then. SubmittedAt is when, DoneAt when every machine came to its end,
	// both in Unix milliseconds and 0 before. LeftAt is when it left its start last.
	SubmissionID                string
	SubmittedAt, DoneAt, LeftAt int64

	start []byte // the states that the creation led to, as JSON
	left  bool   // the states are others now
}

// Moved reports whether the form has left its start: the workflow's machines are
// not all in the nodes in which the creation left them, or all have ended
// (gateway/INTERFACE.md, "Categories").
func (f *Form) Moved() bool { return f.left || f.DoneAt != 0 }

// Begin returns f as it is right after its creation, which led to states.
func (f Form) Begin(states []byte, done bool, at time.Time, newID func() string) Form {
	f.start = bytes.Clone(states)
	return f.Next(states, done, at, newID)
}

// Next returns f as it is after a step that led to states, in which done says
// that every machine is at its end. newID draws a ULID.
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

// ErrDamaged: bytes that are no form or row.
var ErrDamaged = errors.New("form cannot be read")

// formatVersion is the first byte of a form and of a row.
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
		dst = appendText(dst, *text)
	}
	dst = appendText(dst, f.start)
	dst = binary.AppendVarint(dst, f.SubmittedAt)
	dst = binary.AppendVarint(dst, f.DoneAt)
	return binary.AppendVarint(dst, f.LeftAt)
}

func (f *Form) texts() []*string {
	return []*string{&f.TemplateID, &f.Name, &f.By, &f.Role, &f.SubmissionID}
}

func appendText[T ~string | ~[]byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// Parse reads what Append wrote, and all of it; else ErrDamaged.
func Parse(b []byte) (*Form, error) {
	r := reader{rest: b}
	f := r.form()
	if r.bad || len(r.rest) > 0 {
		return nil, ErrDamaged
	}
	return f, nil
}

// Row is one line of a list.
type Row struct {
	Form
	// WorkflowID is the instance's workflow.
	WorkflowID string
	// Nodes are the present nodes, joined with ", ".
	Nodes string
}

// Append appends the stored row: the form, then workflow and nodes, each with its
// length.
func (r *Row) Append(dst []byte) []byte {
	return appendText(appendText(r.Form.Append(dst), r.WorkflowID), r.Nodes)
}

// ParseRow reads what Row.Append wrote, and all of it; else ErrDamaged.
func ParseRow(b []byte) (*Row, error) {
	r := reader{rest: b}
	row := &Row{Form: *r.form(), WorkflowID: string(r.text()), Nodes: string(r.text())}
	if r.bad || len(r.rest) > 0 {
		return nil, ErrDamaged
	}
	return row, nil
}

// reader takes values from the front; after one that does not fit it is bad and
// returns zero values.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) form() *Form {
	f := &Form{}
	head := r.take(3)
	if r.bad || head[0] != formatVersion || head[2]&^leftFlag != 0 {
		r.bad = true
		return f
	}
	f.Kind, f.left = Kind(head[1]), head[2] == leftFlag
	if f.Kind != Plain && f.Kind != Checklist {
		r.bad = true
	}
	for _, text := range f.texts() {
		*text = string(r.text())
	}
	f.start = bytes.Clone(r.text())
	f.SubmittedAt, f.DoneAt, f.LeftAt = r.varint(), r.varint(), r.varint()
	return f
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) text() []byte {
	length, n := binary.Uvarint(r.rest)
	if n <= 0 || length > uint64(len(r.rest)-n) {
		r.bad = true
		return nil
	}
	r.rest = r.rest[n:]
	return r.take(int(length))
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
