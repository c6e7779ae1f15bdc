package key

import (
	"encoding/binary"
	"fmt"
)

// Parts is a key taken apart: for Verify, for logs and for tests. The
// hot paths use the small functions below, which look at one part only.
//
// Which fields are set depends on Table; the others are zero.
type Parts struct {
	Table    string // "record", "entry", "draft", "node", "list", "index", "indexstate", "reply", "count", "definition", "setting", "credential", "timer", "incident", "delivery", "attempt", "schedule", "task", "taskdraft", "work", "activity", "feed" or "replica"
	Shard    Shard
	Workflow string   // record, node, count, definition, schedule; work of an upper-case kind
	Node     string   // node
	Machine  string   // node
	ID       ID       // record, entry, draft, node, list, index, timer, incident, delivery, attempt, task, taskdraft, work, activity; the scope of a reply
	Value    string   // index
	Reply    [16]byte // reply
	Number   uint64   // sequence of an entry; version of a count or definition; number of an index or index state; time of a list; index of a replica's log; sequence of a timer, incident, delivery, attempt, task, taskdraft, work or activity; place in a feed
	Due      int64    // timer, attempt
	Place    uint32   // number of a timer, incident, delivery, attempt, task, taskdraft, work or activity
	Sorted   uint64   // work: the value by which it is sorted
	Order    byte     // work
	Name     string   // setting; the id of a credential; the user of a draft, taskdraft or list; the queue of a delivery or attempt; that of a schedule or worklist; what a replica's vote is about
	Kind     byte     // credential, list, replica, work
}

var tableNames = map[table]string{
	countTable: "count", definitionTable: "definition", entryTable: "entry", draftTable: "draft", listTable: "list", replyTable: "reply",
	indexTable: "index", indexStateTable: "indexstate", nodeTable: "node", recordTable: "record", settingTable: "setting", credentialTable: "credential",
	deliveryTable: "delivery", attemptTable: "attempt", timerTable: "timer", incidentTable: "incident", scheduleTable: "schedule", replicaTable: "replica",
	taskTable: "task", taskDraftTable: "taskdraft", workTable: "work", activityTable: "activity", feedTable: "feed",
}

// Parse takes key apart. It is false for bytes that no builder of this package makes.
func Parse(key []byte) (Parts, bool) {
	p := parser{rest: key}
	k := Parts{Shard: Shard(p.uint16())}
	t := table(p.byte())
	k.Table = tableNames[t]
	switch t {
	case recordTable:
		k.Workflow, k.ID = p.text(), p.id()
	case entryTable:
		k.ID, k.Number = p.id(), p.uint64()
	case draftTable:
		k.ID, k.Name = p.id(), p.text()
	case listTable:
		k.Kind, k.Name, k.Number, k.ID = p.byte(), p.text(), ^p.uint64(), p.id()
	case nodeTable:
		k.Workflow, k.Node, k.Machine, k.ID = p.text(), p.text(), p.text(), p.id()
	case indexTable:
		k.Number = uint64(p.uint32())
		k.Value = string(p.take(max(0, len(p.rest)-len(ID{}))))
		k.ID = p.id()
	case indexStateTable:
		k.Number = uint64(p.uint32())
	case replyTable:
		k.ID, k.Reply = p.id(), p.id()
	case countTable:
		k.Workflow, k.Number = p.text(), p.uint64()
	case definitionTable:
		k.Workflow, k.Number = p.text(), p.uint64()
	case settingTable:
		k.Name = p.text()
	case credentialTable:
		k.Kind, k.Name = p.byte(), p.text()
	case timerTable:
		k.Due, k.ID, k.Number, k.Place = int64(p.uint64()), p.id(), p.uint64(), p.uint32()
		p.bad = p.bad || k.Due < 0
	case deliveryTable:
		k.ID, k.Name, k.Number, k.Place = p.id(), p.text(), p.uint64(), p.uint32()
	case attemptTable:
		k.Workflow, k.Name, k.Due, k.ID, k.Number, k.Place = p.text(), p.text(), int64(p.uint64()), p.id(), p.uint64(), p.uint32()
		p.bad = p.bad || k.Due < 0
	case scheduleTable:
		k.Workflow, k.Name = p.text(), p.text()
	case feedTable:
		k.Number = p.uint64()
	case workTable:
		k.Kind, k.Name, k.Order = p.byte(), p.text(), p.byte()
		if isByWorkflow(k.Kind) {
			k.Workflow = p.text()
		}
		k.Sorted, k.ID, k.Number, k.Place = p.uint64(), p.id(), p.uint64(), p.uint32()
	case taskDraftTable:
		k.ID, k.Number, k.Place, k.Name = p.id(), p.uint64(), p.uint32(), p.text()
	case incidentTable, taskTable, activityTable:
		k.ID, k.Number, k.Place = p.id(), p.uint64(), p.uint32()
	case replicaTable:
		p.replica(&k)
	default:
		return Parts{}, false
	}
	meta := t == definitionTable || t == settingTable || t == credentialTable
	if p.bad || len(p.rest) > 0 || (meta && k.Shard != Meta) {
		return Parts{}, false
	}
	return k, true
}

// replica reads a row of package replica: one about the state of a shard, or one of its
// log, in which the shard comes second.
func (p *parser) replica(k *Parts) {
	if k.Shard != replicaLog {
		k.Kind = p.byte()
		p.bad = p.bad || k.Kind != 'p' && k.Kind != 's'
		return
	}
	k.Shard, k.Kind = Shard(p.uint16()), p.byte()
	switch k.Kind {
	case 'l':
		k.Number = p.uint64()
	case 'v':
		k.Name = string(p.take(len(p.rest)))
	default:
		p.bad = true
	}
}

// String renders a key for people. It holds no workflow data.
func (k Parts) String() string {
	switch k.Table {
	case "record":
		return fmt.Sprintf("record %s/%x in shard %d", k.Workflow, k.ID, k.Shard)
	case "entry":
		return fmt.Sprintf("entry %d of %x in shard %d", k.Number, k.ID, k.Shard)
	case "draft":
		return fmt.Sprintf("draft of %s for %x in shard %d", k.Name, k.ID, k.Shard)
	case "list":
		return fmt.Sprintf("%x in list %q of %s in shard %d", k.ID, k.Kind, k.Name, k.Shard)
	case "node":
		return fmt.Sprintf("node %s/%s of %x (%s) in shard %d", k.Workflow, k.Node, k.ID, k.Machine, k.Shard)
	case "index":
		return fmt.Sprintf("entry of %x in index %d in shard %d", k.ID, k.Number, k.Shard)
	case "indexstate":
		return fmt.Sprintf("state of index %d in shard %d", k.Number, k.Shard)
	case "reply":
		return fmt.Sprintf("reply of %x in shard %d", k.ID, k.Shard)
	case "count":
		return fmt.Sprintf("count %s version %d in shard %d", k.Workflow, k.Number, k.Shard)
	case "definition":
		return fmt.Sprintf("definition %s version %d", k.Workflow, k.Number)
	case "setting":
		return "setting " + k.Name
	case "credential":
		return fmt.Sprintf("credential %q %s", k.Kind, k.Name)
	case "timer":
		return fmt.Sprintf("timer %d.%d of %x in shard %d", k.Number, k.Place, k.ID, k.Shard)
	case "delivery":
		return fmt.Sprintf("delivery %d.%d of %x to %q in shard %d", k.Number, k.Place, k.ID, k.Name, k.Shard)
	case "attempt":
		return fmt.Sprintf("attempt of delivery %d.%d of %x to %q in shard %d", k.Number, k.Place, k.ID, k.Name, k.Shard)
	case "schedule":
		return fmt.Sprintf("schedule %s of %s in shard %d", k.Name, k.Workflow, k.Shard)
	case "feed":
		return fmt.Sprintf("row %d of the feed of shard %d", k.Number, k.Shard)
	case "incident":
		return fmt.Sprintf("incident %d.%d of %x in shard %d", k.Number, k.Place, k.ID, k.Shard)
	case "task", "activity":
		return fmt.Sprintf("%s %d.%d of %x in shard %d", k.Table, k.Number, k.Place, k.ID, k.Shard)
	case "taskdraft":
		return fmt.Sprintf("draft of %s for task %d.%d of %x in shard %d", k.Name, k.Number, k.Place, k.ID, k.Shard)
	case "work":
		return fmt.Sprintf("task %d.%d of %x in worklist %q of %s by %q in shard %d", k.Number, k.Place, k.ID, k.Kind, k.Name, k.Order, k.Shard)
	case "replica":
		return fmt.Sprintf("row %q %s %d of the replica of shard %d", k.Kind, k.Name, k.Number, k.Shard)
	}
	return "unknown key"
}

// RecordID returns the instance of a record's key.
func RecordID(key []byte) (ID, bool) {
	p := parser{rest: key}
	ok := p.head(recordTable)
	p.skipText()
	id := p.id()
	return id, ok && p.done()
}

// EntrySeq returns the sequence number of a history entry's key.
func EntrySeq(key []byte) (uint64, bool) {
	p := parser{rest: key}
	ok := p.head(entryTable)
	p.id()
	seq := p.uint64()
	return seq, ok && p.done()
}

// NodeID returns the instance of a node's index key.
func NodeID(key []byte) (ID, bool) {
	p := parser{rest: key}
	ok := p.head(nodeTable)
	p.skipText()
	p.skipText()
	p.skipText()
	id := p.id()
	return id, ok && p.done()
}

// NodeMachine returns the machine of a node's index key; the slice is a part of key.
func NodeMachine(key []byte) ([]byte, bool) {
	p := parser{rest: key}
	ok := p.head(nodeTable)
	p.skipText()
	p.skipText()
	machine := p.skipText()
	return machine, ok && !p.bad
}

// ParseIndex returns the value and the instance of a declared index's key; the value is a part of key.
func ParseIndex(key []byte) (value []byte, id ID, ok bool) {
	p := parser{rest: key}
	ok = p.head(indexTable)
	p.uint32()
	value = p.take(max(0, len(p.rest)-len(id)))
	id = p.id()
	return value, id, ok && p.done()
}

// ParseList returns the place and the instance of a list's key: places are in the order of the list, and a part of key.
func ParseList(key []byte) (place []byte, id ID, ok bool) {
	p := parser{rest: key}
	ok = p.head(listTable)
	p.byte()
	p.skipText()
	place = p.take(8)
	id = p.id()
	return place, id, ok && p.done()
}

// ParseTimer returns a timer's key taken apart, and its place, which is a part of key.
func ParseTimer(key []byte) (place []byte, t Timer, ok bool) {
	p := parser{rest: key}
	ok = p.head(timerTable)
	place = p.rest
	t = Timer{Due: int64(p.uint64()), ID: p.id(), Sequence: p.uint64(), Number: p.uint32()}
	return place, t, ok && p.done() && t.Due >= 0
}

// ParseDelivery returns a delivery's key taken apart.
func ParseDelivery(key []byte) (d Delivery, ok bool) {
	p := parser{rest: key}
	ok = p.head(deliveryTable)
	d = Delivery{ID: p.id(), Queue: p.text(), Sequence: p.uint64(), Number: p.uint32()}
	return d, ok && p.done()
}

// ParseAttempt returns an attempt's key taken apart, and its place in its stream, which is a part of key.
func ParseAttempt(key []byte) (workflow string, place []byte, when int64, d Delivery, ok bool) {
	p := parser{rest: key}
	ok = p.head(attemptTable)
	workflow, d.Queue = p.text(), p.text()
	place = p.rest
	when = int64(p.uint64())
	d.ID, d.Sequence, d.Number = p.id(), p.uint64(), p.uint32()
	return workflow, place, when, d, ok && p.done() && when >= 0
}

// ShardOf returns the shard of a key or prefix of a numbered shard.
func ShardOf(key []byte) Shard {
	p := parser{rest: key}
	return Shard(p.uint16())
}

// ParseWork returns the key of a task in a worklist taken apart, and its place in the list, which is a part of key.
func ParseWork(key []byte) (place []byte, w Work, ok bool) {
	p := parser{rest: key}
	ok = p.head(workTable)
	w.List, w.Name, w.Order = p.byte(), p.text(), p.byte()
	if isByWorkflow(w.List) {
		w.Workflow = p.text()
	}
	place = p.rest
	w.Value, w.ID, w.Sequence, w.Number = p.uint64(), p.id(), p.uint64(), p.uint32()
	return place, w, ok && p.done()
}

// ParseActivity returns the sequence and number of the key of an activity.
func ParseActivity(key []byte) (sequence uint64, number uint32, ok bool) {
	p := parser{rest: key}
	ok = p.head(activityTable)
	p.id()
	sequence, number = p.uint64(), p.uint32()
	return sequence, number, ok && p.done()
}

// parser reads a key from the front. After a part that is not there it is bad and every later part is zero.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) done() bool { return !p.bad && len(p.rest) == 0 }

func (p *parser) head(t table) bool {
	p.take(2)
	return table(p.byte()) == t
}

func (p *parser) take(n int) []byte {
	if p.bad || len(p.rest) < n {
		p.bad = true
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) uint16() uint16 {
	if b := p.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (p *parser) uint32() uint32 {
	if b := p.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (p *parser) id() (id ID) {
	copy(id[:], p.take(len(id)))
	return id
}

func (p *parser) text() string { return string(p.skipText()) }

// skipText returns the bytes of the next text without copying them. A long form
// that a short one would have served is bad: every key has one spelling.
func (p *parser) skipText() []byte {
	n := int(p.byte())
	if n == longText {
		if n = int(p.uint16()); n < longText {
			p.bad = true
		}
	}
	return p.take(n)
}
