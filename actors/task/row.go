package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/packed"
)

// They are part of the on-disk format. Those of candidates have the tasks of each workflow by themselves, so that
// nobody reads past those of a workflow that they may not see.
const (
	listRole      byte = 'R'
	listPrivilege byte = 'P'
	listUser      byte = 'U'
	listEverybody byte = 'E'
	listNobody    byte = 'N' // of what has no candidate that there could be
	listMine      byte = 'm' // of who has it
	listDecided   byte = 'd' // of who has decided it, by the time of that
)

// Order is what a worklist is sorted by. Its letters are part of the on-disk format.
type Order byte

const (
	ByDue      Order = 'd' // without one behind all others
	ByCreated  Order = 'c'
	ByPriority Order = 'p' // those of one priority the other way round by their creation
)

var orders = []Order{ByDue, ByCreated, ByPriority}

func (o Order) value(t *statemachine.Task) uint64 {
	created := milliseconds(t.Created)
	switch o {
	case ByDue:
		if t.Due.IsZero() {
			return math.MaxUint64
		}
		return milliseconds(t.Due)
	case ByPriority:
		const timeBits = 48
		return uint64(t.Priority)<<timeBits | (1<<timeBits - 1 - created&(1<<timeBits-1)) //nolint:gosec // 0 to 100
	}
	return created
}

func milliseconds(at time.Time) uint64 { return uint64(max(at.UnixMilli(), 0)) } //nolint:gosec // not negative

type worklist struct {
	letter byte
	name   string
}

func (l worklist) prefix(dst []byte, sh key.Shard, o Order) []byte {
	return key.WorkPrefix(dst, sh, l.letter, l.name, byte(o))
}

func worklistsOf(of *statemachine.Definition, t *statemachine.Task) (lists []worklist) {
	if t.Assignee != "" {
		return []worklist{{listMine, t.Assignee}}
	}
	c := of.Candidates(t.At)
	if c.Everybody {
		return []worklist{{letter: listEverybody}}
	}
	for _, name := range c.Roles {
		lists = append(lists, worklist{listRole, name})
	}
	for _, name := range c.Privileges {
		lists = append(lists, worklist{listPrivilege, name})
	}
	for _, name := range c.Users {
		if statemachine.IsIdentifier(name) { // nobody else can be a user, and a key has no room for every text
			lists = append(lists, worklist{listUser, name})
		}
	}
	if len(lists) == 0 {
		return []worklist{{letter: listNobody}}
	}
	return lists
}

// Origin is the instance whose commit changes tasks.
type Origin struct {
	Shard      key.Shard
	Workflow   string
	Instance   key.ID
	Before, Of *statemachine.Definition // Before and Of are the definitions under which the old and the new tasks are
	User       string                   // User has decided tasks, at At with Event
	Event      string
	At         time.Time
}

// Put writes what a step changes in the tasks of its instance, into its commit: those that have ended, that have begun, and which of the
// ended ones the user has decided.
func Put(w *persistence.Writes, of *Origin, ended, begun, decided []statemachine.Task, text func(*statemachine.Task) statemachine.TaskText) {
	for i := range ended {
		of.eachRow(of.Before, &ended[i], w.Delete)
		w.Delete(of.key(ended[i].ID))
	}
	for i := range begun {
		of.eachRow(of.Of, &begun[i], func(key []byte) { w.Set(key, []byte(of.Workflow)) })
		w.Set(of.key(begun[i].ID), row{Workflow: of.Workflow}.append(nil))
	}
	for i := range decided {
		t := &decided[i]
		w.Set(of.key(t.ID), row{Workflow: of.Workflow, Decided: &Decided{Task: *t, TaskText: text(t), By: of.User, Event: of.Event, When: of.At}}.append(nil))
		w.Set(of.decidedKey(of.User, of.At, t.ID), nil)
	}
}

// Remove removes the rows of an instance from all worklists: those of its open tasks, and of those that were decided.
func (of *Origin) Remove(w *persistence.Writes, store *persistence.Store, open []statemachine.Task) error {
	for i := range open {
		of.eachRow(of.Before, &open[i], w.Delete)
	}
	err := store.Scan(key.TaskPrefix(nil, of.Shard, of.Instance), func(rowKey, value []byte) error {
		k, ok := key.Parse(rowKey)
		id := statemachine.ElementID{Sequence: k.Number, Number: k.Place}
		r, err := parseRow(id, value)
		if err != nil || !ok {
			return errors.Join(err, persistence.ErrCorrupt)
		}
		if r.Decided != nil {
			w.Delete(of.decidedKey(r.Decided.By, r.Decided.When, id))
		}
		return nil
	})
	return failure.OfStore(err)
}

func (of *Origin) eachRow(d *statemachine.Definition, t *statemachine.Task, visit func(key []byte)) {
	for _, list := range worklistsOf(d, t) {
		for _, o := range orders {
			work := key.Work{
				List: list.letter, Name: list.name, Order: byte(o), Workflow: of.Workflow, Value: o.value(t), ID: of.Instance, Sequence: t.ID.Sequence, Number: t.ID.Number,
			}
			visit(work.Key(nil, of.Shard))
		}
	}
}

func (of *Origin) decidedKey(user string, at time.Time, id statemachine.ElementID) []byte {
	work := key.Work{
		List: listDecided, Name: user, Order: byte(ByCreated), Value: milliseconds(at), ID: of.Instance, Sequence: id.Sequence, Number: id.Number,
	}
	return work.Key(nil, of.Shard)
}

func (of *Origin) key(id statemachine.ElementID) []byte {
	return key.Task(nil, of.Shard, of.Instance, id.Sequence, id.Number)
}

// ErrDamaged: the row of a task cannot be read.
var ErrDamaged = errors.New("a task cannot be read")

type row struct {
	Workflow string
	Decided  *Decided // nil: it is open
}

// Decided is a task that somebody has brought on, as it was then.
type Decided struct {
	statemachine.Task
	statemachine.TaskText
	By, Event string // By has sent Event at When
	When      time.Time
}

const rowFormat = 1

// append appends the stored form: format(1) workflow, and of a decided task all of it.
func (r row) append(dst []byte) []byte {
	dst = packed.AppendText(append(dst, rowFormat), r.Workflow)
	d := r.Decided
	if d == nil {
		return dst
	}
	dst = packed.AppendText(packed.AppendText(dst, d.Task.At.Machine), d.Task.At.Node)
	dst = packed.AppendTime(packed.AppendTime(dst, d.Created), d.Due)
	dst = binary.AppendUvarint(dst, uint64(d.Priority)) //nolint:gosec // 0 to 100
	dst = packed.AppendText(packed.AppendText(dst, d.Assignee), d.Form)
	dst = appendText(appendText(dst, d.Title), d.Description)
	dst = packed.AppendText(packed.AppendText(dst, d.By), d.Event)
	return packed.AppendTime(dst, d.When)
}

func appendText(dst []byte, t statemachine.Text) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t)))
	for _, tr := range t {
		dst = packed.AppendText(packed.AppendText(dst, tr.Language), tr.Text)
	}
	return dst
}

func readText(r *packed.Reader) (t statemachine.Text) {
	const most = 1000
	n := r.Uvarint()
	if n > most {
		r.Fail()
	}
	for range n {
		if r.Failed() {
			return nil
		}
		t = append(t, statemachine.Translation{Language: string(r.Text()), Text: string(r.Text())})
	}
	return t
}

// parseRow reads the stored form of a task's row.
func parseRow(id statemachine.ElementID, stored []byte) (out row, err error) {
	r := packed.NewReader(stored)
	format := r.Byte()
	out.Workflow = string(r.Text())
	if !r.Whole() {
		d := &Decided{}
		d.ID = id
		d.Task.At = statemachine.Position{Machine: statemachine.MachineID(r.Text()), Node: statemachine.NodeID(r.Text())}
		d.Created, d.Due = r.Time(), r.Time()
		d.Priority = int(min(r.Uvarint(), math.MaxInt32)) //nolint:gosec // bounded
		d.Assignee, d.Form = string(r.Text()), string(r.Text())
		d.Title, d.Description = readText(&r), readText(&r)
		d.By, d.Event, d.When = string(r.Text()), string(r.Text()), r.Time()
		out.Decided = d
	}
	if format != rowFormat || !r.Whole() {
		return row{}, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return out, nil
}
