package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// ErrRecord: see statemachine.ErrRecord.
var ErrRecord = errors.New("stored record is damaged")

// recordFormat is the version of the stored form of an instance. A reader refuses what it does not know.
const recordFormat = 1

// The kinds of sections.
const (
	attachmentSection = 1
	timerSection      = 2
	childSection      = 3
	parentSection     = 4
	taskSection       = 5
	keySection        = 6
	jobSection        = 7
)

// The flags of a timer.
const (
	timerFailed byte = 1 << iota
	timerSent
	timerOfMachine // a node in it can have the same name
	timerChild     // what happened to a child
	timerChildFailed
	timerAimed // it leaves the instance
)

// The flags beside the status of a child.
const (
	childOfMachine = 1 << 7 // a state machine has invoked it
	childNamed     = 1 << 6 // it has a name and perhaps a workflow of its own
	childHeard     = 1 << 5 // it has sent events
)

// The flags of the section of the parent.
const (
	parentThere byte = 1 << iota
	parentEnded      // the instance was cancelled
	parentHeard      // the parent has sent events
	parentAside      // NB: of the instance, as parentEnded is
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Chain is a hash over an instance's history, entry after entry. The state machine keeps it and does not look at it.
type Chain [16]byte

// Record is the part of a stored instance that can be read without its definition. Its slices alias the bytes that were parsed.
type Record struct {
	Version              uint64 // of the definition
	Sequence             uint64
	CreatedAt, UpdatedAt time.Time
	Chain                Chain
	States               data.Value
	Public, Private      data.Value
	Redirect             string
	Key                  string // "" for none
	// Attachment is data that the caller keeps with the instance; nil for none. The state machine does not read it.
	Attachment                       []byte
	memory, timers, children, parent []byte
	tasks, jobs                      []byte
}

// IsEnded reports whether the instance was stopped, or its parent has cancelled it.
func (r *Record) IsEnded() bool { return len(r.parent) > 0 && r.parent[0]&parentEnded != 0 }

// Parse reads the stored form. It returns ErrRecord for anything that Append did not write.
func Parse(b []byte) (Record, error) {
	var r Record
	if len(b) < 5 || b[0] != recordFormat {
		return r, fmt.Errorf("%w: unknown format", ErrRecord)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return r, fmt.Errorf("%w: checksum", ErrRecord)
	}
	rd := packed.NewReader(body[1:])
	r.Version = rd.Uvarint()
	r.Sequence = rd.Uvarint()
	r.CreatedAt = rd.Time()
	r.UpdatedAt = rd.Time()
	copy(r.Chain[:], rd.Take(len(r.Chain)))
	r.States = data.Value(rd.Text())
	r.Redirect = string(rd.Text())
	r.Public = data.Value(rd.Text())
	r.Private = data.Value(rd.Text())
	r.memory = rd.Text()
	r.sections(&rd)
	if !rd.Whole() {
		return Record{}, fmt.Errorf("%w: layout", ErrRecord)
	}
	return r, nil
}

func (r *Record) sections(rd *packed.Reader) {
	for last := byte(0); !rd.Whole() && !rd.Failed(); {
		kind := rd.Byte()
		switch {
		case kind <= last:
			rd.Fail()
		case kind == attachmentSection:
			r.Attachment = notEmpty(rd)
		case kind == timerSection:
			r.timers = notEmpty(rd)
		case kind == childSection:
			r.children = notEmpty(rd)
		case kind == parentSection:
			r.parent = notEmpty(rd)
		case kind == taskSection:
			r.tasks = notEmpty(rd)
		case kind == keySection:
			r.Key = string(notEmpty(rd))
		case kind == jobSection:
			r.jobs = notEmpty(rd)
		default:
			rd.Fail()
		}
		last = kind
	}
}

// notEmpty reads a text that is written only when there is one.
func notEmpty(rd *packed.Reader) []byte {
	text := rd.Text()
	if len(text) == 0 {
		rd.Fail()
	}
	return text
}
