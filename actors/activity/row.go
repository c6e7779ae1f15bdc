package activity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/packed"
)

// Kind is what a Row is. Its numbers are part of the on-disk format.
type Kind byte

const (
	Comment  Kind = iota + 1 // somebody has written Text
	Claimed                  // somebody has taken a task over
	Released                 // a task is nobody's again
	Assigned                 // a task belongs to To
	kinds
)

// String is the action of a task's activity.
func (k Kind) String() string {
	return [kinds]string{Comment: "comment", Claimed: "claim", Released: "release", Assigned: "assign"}[k]
}

// Row is something that happened to an instance and is no history entry.
type Row struct {
	Kind     Kind
	At       time.Time
	User     string
	Text     string                 // of a comment
	Task     statemachine.ElementID // Task and its node are those that was claimed, released or assigned; To has it now
	Node     statemachine.Position
	To       string
	Sequence uint64 // that of the last history entry before it, and Number counts those behind that entry
	Number   uint32
}

const rowFormat = 1

// ErrDamaged: a row cannot be read.
var ErrDamaged = errors.New("an activity cannot be read")

// Append appends the stored form, which is without Sequence and Number: format(1) kind(1) time user text task node to.
func (r *Row) Append(dst []byte) []byte {
	dst = packed.AppendTime(append(dst, rowFormat, byte(r.Kind)), r.At)
	dst = packed.AppendText(packed.AppendText(dst, r.User), r.Text)
	if r.Kind == Comment {
		return dst
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, r.Task.Sequence), uint64(r.Task.Number))
	dst = packed.AppendText(packed.AppendText(dst, r.Node.Machine), r.Node.Node)
	return packed.AppendText(dst, r.To)
}

// Parse reads a row.
func Parse(k, stored []byte) (a Row, err error) {
	sequence, number, ok := key.ParseActivity(k)
	r := packed.NewReader(stored)
	format := r.Byte()
	a = Row{Kind: Kind(r.Byte()), At: r.Time(), User: string(r.Text()), Text: string(r.Text()), Sequence: sequence, Number: number}
	if a.Kind != Comment {
		a.Task.Sequence = r.Uvarint()
		a.Task.Number = uint32(r.Uvarint()) //nolint:gosec // what does not fit is no number of a task
		a.Node = statemachine.Position{Machine: statemachine.MachineID(r.Text()), Node: statemachine.NodeID(r.Text())}
		a.To = string(r.Text())
	}
	if !ok || format != rowFormat || a.Kind == 0 || a.Kind >= kinds || !r.Whole() {
		return Row{}, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return a, nil
}

// Next is the number of the next row behind a history entry. The store has all rows of the instance.
func Next(store *persistence.Store, sh key.Shard, id key.ID, sequence uint64) (uint32, error) {
	prefix := binary.BigEndian.AppendUint64(key.ActivityPrefix(nil, sh, id), sequence)
	snapshot := store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	c := snapshot.Backward(prefix, key.PrefixEnd(prefix))
	next := uint32(0)
	if c.Next() {
		_, last, ok := key.ParseActivity(c.Key())
		if !ok {
			return 0, failure.OfStore(errors.Join(persistence.ErrCorrupt, c.Close()))
		}
		next = last + 1
	}
	return next, failure.OfStore(errors.Join(c.Err(), c.Close()))
}
