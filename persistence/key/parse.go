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
	Table    string // "record", "entry", "draft", "node", "list", "index", "indexstate", "reply", "count", "definition", "setting", "credential", "timer", "incident", "delivery", "attempt", "schedule", "task", "taskdraft", "work", "activity", "business", "feed", "done", "donetime", "audit", "bulk", "export", "job" or "replica"
	Shard    Shard
	Workflow string   // record, node, count, definition, schedule, business, done; work of an upper-case kind, job of an offer
	Node     string   // node
	Machine  string   // node
	ID       ID       // record, entry, draft, node, list, index, timer, incident, delivery, attempt, task, taskdraft, work, activity, done, donetime, job; the scope of a reply
	Value    string   // index
	Reply    [16]byte // reply; the job of bulk
	Number   uint64   // sequence of an entry; version of a count or definition; number of an index or index state; time of a list; index of a replica's log; sequence of a timer, incident, delivery, attempt, task, taskdraft, work, activity or job; place in a feed; number of a row of the audit log
	Due      int64    // timer, attempt; time of done; when the job of an offer began
	Place    uint32   // number of a timer, incident, delivery, attempt, task, taskdraft, work, activity or job
	Sorted   uint64   // work: the value by which it is sorted
	Order    byte     // work; priority of an offer
	Name     string   // setting; the id of a credential; the user of a draft, taskdraft or list; the queue of a delivery or attempt; that of a schedule, worklist or export; the type of an offer; the key of an instance
	Kind     byte     // credential, list, replica, work, job
}

// layout says which parts a key has behind its table, in their order, and how people are told of it.
type layout struct {
	name  string
	parts string // a letter for each, see [parser.part]
	text  string // with the parts by their number in [Parts.String]
}

var layouts = map[table]layout{
	recordTable:     {"record", "wi", "record %[2]s/%[3]x in shard %[1]d"},
	entryTable:      {"entry", "iq", "entry %[4]d of %[3]x in shard %[1]d"},
	draftTable:      {"draft", "in", "draft of %[6]s for %[3]x in shard %[1]d"},
	listTable:       {"list", "knti", "%[3]x in list %[7]q of %[6]s in shard %[1]d"},
	nodeTable:       {"node", "wNmi", "node %[2]s/%[9]s of %[3]x (%[10]s) in shard %[1]d"},
	indexTable:      {"index", "xVi", "entry of %[3]x in index %[4]d in shard %[1]d"},
	indexStateTable: {"indexstate", "x", "state of index %[4]d in shard %[1]d"},
	replyTable:      {"reply", "ir", "reply of %[3]x in shard %[1]d"},
	countTable:      {"count", "wq", "count %[2]s version %[4]d in shard %[1]d"},
	definitionTable: {"definition", "wq", "definition %[2]s version %[4]d"},
	settingTable:    {"setting", "n", "setting %[6]s"},
	credentialTable: {"credential", "kn", "credential %[7]q %[6]s"},
	timerTable:      {"timer", "diqp", "timer %[4]d.%[5]d of %[3]x in shard %[1]d"},
	deliveryTable:   {"delivery", "inqp", "delivery %[4]d.%[5]d of %[3]x to %[6]q in shard %[1]d"},
	attemptTable:    {"attempt", "wndiqp", "attempt of delivery %[4]d.%[5]d of %[3]x to %[6]q in shard %[1]d"},
	scheduleTable:   {"schedule", "wn", "schedule %[6]s of %[2]s in shard %[1]d"},
	exportTable:     {"export", "n", "position of export %[6]s in shard %[1]d"},
	feedTable:       {"feed", "q", "row %[4]d of the feed of shard %[1]d"},
	workTable:       {"work", "knoWsiqp", "task %[4]d.%[5]d of %[3]x in worklist %[7]q of %[6]s by %[8]q in shard %[1]d"},
	taskTable:       {"task", "iqp", "task %[4]d.%[5]d of %[3]x in shard %[1]d"},
	taskDraftTable:  {"taskdraft", "iqpn", "draft of %[6]s for task %[4]d.%[5]d of %[3]x in shard %[1]d"},
	activityTable:   {"activity", "iqp", "activity %[4]d.%[5]d of %[3]x in shard %[1]d"},
	businessTable:   {"business", "wn", "key of an instance of %[2]s in shard %[1]d"},
	incidentTable:   {"incident", "iqp", "incident %[4]d.%[5]d of %[3]x in shard %[1]d"},
	doneTable:       {"done", "wdi", "%[3]x in the done instances of %[2]s in shard %[1]d"},
	doneTimeTable:   {"donetime", "i", "time when %[3]x was done in shard %[1]d"},
	auditTable:      {"audit", "q", "row %[4]d of the audit log"},
	bulkTable:       {"bulk", "r", "bulk job in shard %[1]d"},
	jobTable:        {"job", "J", "row %[7]q of job %[4]d.%[5]d of %[3]x in shard %[1]d"},
	replicaTable:    {"replica", "R", "row %[7]q %[4]d of the replica of shard %[1]d"},
}

// Parse takes key apart. It is false for bytes that no builder of this package makes.
func Parse(key []byte) (Parts, bool) {
	p := parser{rest: key}
	k := Parts{Shard: Shard(p.uint16())}
	t := table(p.byte())
	l, known := layouts[t]
	k.Table = l.name
	for i := range len(l.parts) {
		p.part(l.parts[i], &k)
	}
	meta := t == definitionTable || t == settingTable || t == credentialTable || t == auditTable
	if !known || !p.done() || meta && k.Shard != Meta {
		return Parts{}, false
	}
	return k, true
}

// part reads one part of a key.
func (p *parser) part(letter byte, k *Parts) {
	switch letter {
	case 'w':
		k.Workflow = p.text()
	case 'N':
		k.Node = p.text()
	case 'm':
		k.Machine = p.text()
	case 'n':
		k.Name = p.text()
	case 'i':
		k.ID = p.id()
	case 'r':
		k.Reply = p.id()
	case 'q':
		k.Number = p.uint64()
	case 't': // newest first
		k.Number = ^p.uint64()
	case 'x':
		k.Number = uint64(p.uint32())
	case 'p':
		k.Place = p.uint32()
	case 's':
		k.Sorted = p.uint64()
	case 'd':
		k.Due = int64(p.uint64())
		p.bad = p.bad || k.Due < 0
	case 'k':
		k.Kind = p.byte()
	case 'o':
		k.Order = p.byte()
	case 'V': // up to the id
		k.Value = string(p.take(max(0, len(p.rest)-len(ID{}))))
	case 'W': // of an upper-case list
		if isByWorkflow(k.Kind) {
			k.Workflow = p.text()
		}
	case 'J':
		p.job(k)
	case 'R':
		p.replica(k)
	}
}

// replica reads a row of package replica: one about the state of a shard, or one of its
// log, in which the shard comes second.
func (p *parser) replica(k *Parts) {
	if k.Shard != replicaLog {
		k.Kind = p.byte()
		p.bad = p.bad || k.Kind != 'p' && k.Kind != 'm'
		return
	}
	k.Shard, k.Kind = Shard(p.uint16()), p.byte()
	switch k.Kind {
	case 'l':
		k.Number = p.uint64()
	case 'b', 'c', 'd', 'h', 'k':
	default:
		p.bad = true
	}
}

// String renders a key for people. It holds no workflow data.
func (k Parts) String() string {
	for _, l := range layouts {
		if l.name == k.Table {
			return fmt.Sprintf(l.text, k.Shard, k.Workflow, k.ID, k.Number, k.Place, k.Name, k.Kind, k.Order, k.Node, k.Machine)
		}
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

// ParseDone returns the time and the instance of the key of one that is done, and its place, which is a part of key.
func ParseDone(key []byte) (place []byte, when int64, id ID, ok bool) {
	p := parser{rest: key}
	ok = p.head(doneTable)
	p.skipText()
	place = p.rest
	when, id = int64(p.uint64()), p.id()
	return place, when, id, ok && p.done() && when >= 0
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
