// Package task has the worklists: what waits for whom, and what somebody has decided. A task is a part of its instance,
// which alone decides what it means (statemachine/DEFINITION.md, "Tasks"); rows say only where to look. A task that
// nobody has stands in the worklist of each role, privilege and user that is a candidate, there with those of its
// workflow; one that somebody has only in theirs. So a list merges the few groups of its caller and reads what it
// shows. Rights are asked of the record, with the rules of now: a row gives nobody a right. Put writes rows into the
// commit of the instance; lists read beside it; the Feed never waits for a watcher.
package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/packed"
)

// Status says who has a task.
type Status string

// The words of the interface (gateway/INTERFACE.md, "Fields of a task").
const (
	Open  Status = "open"    // nobody
	Taken Status = "claimed" // Assignee
	Done  Status = "done"    // nobody any more
)

// Item is a task as somebody sees it.
type Item struct {
	WorkflowID, InstanceID string
	statemachine.Task
	statemachine.TaskText
	Status      Status
	Candidates  statemachine.Candidates
	Requester   string                    // Requester has created the instance
	Events      []statemachine.Available  // what the reader may send now to complete it
	EventLabels []statemachine.EventLabel // EventLabels say how people see each of Events
	Decided     *Decided                  // set when somebody has completed it
	IsCandidate bool                      // the reader may take it over
	// IsBlind: the title is the label of the node, and nothing is known of what the instance holds, nor of its
	// requester.
	IsBlind bool
}

// TaskID is the name of the task.
func (i *Item) TaskID() string { return i.InstanceID + "-" + i.ID.String() }

// Whole is an instance with the definitions that say what is seen of it.
type Whole struct {
	Workflow string
	Of       *statemachine.Definition // its own
	Rules    *statemachine.Definition // the newest
	State    *statemachine.Instance
	Budget   *expr.Budget // that of a View

	asked     asked
	available []statemachine.Available // what asked has to send
}

type asked struct {
	c   *statemachine.Caller
	now time.Time
}

func (w *Whole) view() statemachine.View {
	return statemachine.View{Instance: w.State, Of: w.Of, Budget: w.Budget}
}

// ItemOf is an open task as a caller sees it. It does not ask whether the caller may read the instance.
func (w *Whole) ItemOf(t *statemachine.Task, c *statemachine.Caller, now time.Time, requester string) *Item {
	i := &Item{
		WorkflowID: w.Workflow, InstanceID: w.State.ID, Task: *t, TaskText: w.view().TaskText(t), Status: Open, Candidates: w.Of.Candidates(t.At),
		Requester: requester, IsCandidate: w.IsCandidate(t, c, now),
	}
	if t.Assignee != "" {
		i.Status = Taken
	}
	if by := (asked{c, now}); w.asked != by { // once for all tasks of an instance
		w.asked, w.available = by, nil
		if w.Rules.MaySend(w.view(), c, now) {
			w.available = w.view().Available(c, now)
		}
	}
	if len(w.available) > 0 {
		i.Events = statemachine.TaskEvents(t, w.available)
		for _, e := range i.Events {
			i.EventLabels = append(i.EventLabels, w.Of.EventLabel(e.Name))
		}
	}
	return i
}

// BlindItemOf is an open task as those see it who run the service and may not read the instance.
func (w *Whole) BlindItemOf(t *statemachine.Task) *Item {
	i := &Item{
		WorkflowID: w.Workflow, InstanceID: w.State.ID, Task: *t, TaskText: statemachine.TaskText{Title: w.Of.LabelOf(t.At).Label},
		Status: Open, Candidates: w.Of.Candidates(t.At), IsBlind: true,
	}
	i.Form = ""
	if t.Assignee != "" {
		i.Status = Taken
	}
	return i
}

// MayRead asks whether a caller may see the instance.
func (w *Whole) MayRead(c *statemachine.Caller, now time.Time) bool {
	return w.Rules.MayRead(w.view(), c, now)
}

// IsCandidate asks whether a caller may take over a task of it.
func (w *Whole) IsCandidate(t *statemachine.Task, c *statemachine.Caller, now time.Time) bool {
	return w.view().IsCandidate(t, c, now)
}

// Find returns an open task of the instance; nil when it has none of that name.
func Find(in *statemachine.Instance, id statemachine.ElementID) *statemachine.Task {
	for _, t := range in.Tasks() {
		if t.ID == id {
			return &t
		}
	}
	return nil
}

func loadWhole(from query.Loader, c *catalog.Catalog, sh key.Shard, workflow string, id key.ID) (*Whole, error) {
	in, err := query.LoadInstance(from, c, sh, workflow, id)
	if err != nil {
		return nil, err
	}
	rules, err := c.Newest(workflow)
	if err != nil {
		return nil, err
	}
	return &Whole{Workflow: workflow, Of: in.Of, Rules: rules, State: &in.State}, nil
}

// LoadRequester is the user of an instance's first history entry.
func LoadRequester(from query.Loader, sh key.Shard, id key.ID) (string, error) {
	stored, err := from.Load(key.Entry(nil, sh, id, 1))
	if err != nil {
		return "", failure.OfStore(err)
	}
	entry, err := history.NewReader(from, sh, id).Entry(1, stored)
	user, has := entry.Lookup("user")
	if err != nil || !has || user.Kind() != data.String {
		return "", failure.Errorf(failure.ErrExecution, "the first history entry: %w", persistence.ErrCorrupt)
	}
	return user.Text(), nil
}

// The letters of worklists are part of the on-disk format. Those of candidates have the tasks of each workflow on their own, so that
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
func Put(w *persistence.Batch, of *Origin, ended, begun, decided []statemachine.Task, text func(*statemachine.Task) statemachine.TaskText) {
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

// PutDecided writes the row of a decided task in the list of the user who decided it. open: it is not decided.
func (of *Origin) PutDecided(w *persistence.Batch, id statemachine.ElementID, stored []byte) (open bool, err error) {
	r, err := parseRow(id, stored)
	if err != nil || r.Decided == nil {
		return err == nil, err
	}
	w.Set(of.decidedKey(r.Decided.By, r.Decided.When, id), nil)
	return false, nil
}

// Remove removes the rows of an instance from all worklists: those of its open tasks, and of those that were decided.
func (of *Origin) Remove(w *persistence.Batch, store *persistence.Store, open []statemachine.Task) error {
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

// Decided is a task that somebody has completed, as it was then.
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

// Bounds are how much a page looks at. One that needs more ends early, with a cursor. A count has the same bounds.
type Bounds struct {
	// Shown is how many instances that the caller may see, and Hidden how many others, in workflows of which the caller
	// may see some.
	Shown, Hidden int
	Rows          int    // how many rows of tasks
	Cost          uint64 // what the rules, guards and titles of all these instances cost, in units of an expression
}

// UsualBounds let a page take some tenths of a second, and where much is hidden or rules are dear a second or two: a
// list should not be empty that has something.
var UsualBounds = Bounds{Shown: 10_000, Hidden: 100_000, Rows: 200_000, Cost: 20_000_000}
