package statemachine

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// recordFormat is the version of the stored form of an instance. A reader refuses what it does not know.
const recordFormat = 1

// The kinds of sections.
const (
	attachmentSection = 1
	timerSection      = 2
	childSection      = 3
	parentSection     = 4
	taskSection       = 5
)

// Chain is a hash over an instance's history, entry after entry. The state
// machine keeps it and does not look at it.
type Chain [16]byte

// Record is the part of a stored instance that can be read without its definition.
// Its slices alias the bytes that were parsed.
type Record struct {
	Version              uint64 // of the definition
	Sequence             uint64
	CreatedAt, UpdatedAt time.Time
	Chain                Chain
	States               data.Value
	Public, Private      data.Value
	Redirect             string
	// Attachment is data that the caller keeps with the instance; nil for none. The
	// state machine does not read it.
	Attachment                       []byte
	memory, timers, children, parent []byte
	tasks                            []byte
}

// IsEnded reports whether the instance was stopped, or its parent has cancelled it.
func (r *Record) IsEnded() bool { return len(r.parent) > 0 && r.parent[0]&parentEnded != 0 }

// AppendRecord appends the stored form of the instance:
//
//	format(1) version sequence created updated  (varints; times in ms)
//	chain(16) states redirect public private memory  (each with its length)
//	sections of what there is: kind(1) text          (in ascending order of kinds)
//	crc32c(4) of all before it
func (d *Definition) AppendRecord(dst []byte, in *Instance, chain Chain, attachment []byte) []byte {
	start := len(dst)
	dst = append(dst, recordFormat)
	dst = binary.AppendUvarint(dst, d.Version)
	dst = binary.AppendUvarint(dst, in.Sequence)
	dst = packed.AppendTime(dst, in.CreatedAt)
	dst = packed.AppendTime(dst, in.UpdatedAt)
	dst = append(dst, chain[:]...)
	dst = packed.AppendText(dst, in.at.States)
	dst = packed.AppendText(dst, in.Redirect)
	dst = packed.AppendText(dst, in.Public)
	dst = packed.AppendText(dst, in.Private)
	dst = packed.AppendText(dst, d.appendMemory(nil, in.memory))
	for _, section := range [...]struct {
		kind byte
		text []byte
	}{
		{attachmentSection, attachment},
		{timerSection, appendTimers(nil, in.timers)},
		{childSection, appendChildren(nil, in.children)},
		{parentSection, in.appendParent(nil)},
		{taskSection, in.appendTasks(nil)},
	} {
		if len(section.text) > 0 {
			dst = packed.AppendText(append(dst, section.kind), section.text)
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendMemory writes the memory of history nodes by name, because a node has another
// index in another version of the definition.
func (d *Definition) appendMemory(dst []byte, memories []memory) []byte {
	for _, m := range memories {
		h := d.Nodes[m.history]
		dst = packed.AppendText(dst, h.Machine.ID)
		dst = packed.AppendText(dst, h.ID)
		dst = binary.AppendUvarint(dst, uint64(len(m.nodes)))
		for _, i := range m.nodes {
			dst = packed.AppendText(dst, d.Nodes[i].ID)
		}
	}
	return dst
}

// ParseRecord reads the stored form. It returns ErrRecord for anything that
// AppendRecord did not write.
func ParseRecord(b []byte) (Record, error) {
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

// notEmpty takes a text that is written only when there is one.
func notEmpty(rd *packed.Reader) []byte {
	text := rd.Text()
	if len(text) == 0 {
		rd.Fail()
	}
	return text
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
		default:
			rd.Fail()
		}
		last = kind
	}
}

// Restore makes the instance that r was written from, under the definition that
// it was written with. It returns ErrRecord when they do not fit.
func (d *Definition) Restore(id string, r Record) (Instance, error) {
	in := Instance{
		ID: id, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Sequence: r.Sequence,
		Redirect: r.Redirect,
	}
	active := chart.NewNodeSet(len(d.Nodes))
	if r.Version != d.Version {
		return in, fmt.Errorf("%w: version %d read with definition %d", ErrRecord, r.Version, d.Version)
	}
	states, err := data.Clean(r.States)
	if err == nil {
		in.Public, err = data.Clean(r.Public)
	}
	if err == nil {
		in.Private, err = data.Clean(r.Private)
	}
	if err != nil || in.Public.Kind() != data.Object || in.Private.Kind() != data.Object {
		return in, fmt.Errorf("%w: data", ErrRecord)
	}
	for _, s := range states.Elements() {
		machine, _ := s.Lookup("stateMachineId")
		name, _ := s.Lookup("nodeId")
		if !d.Activate(active, MachineID(machine.Text()), NodeID(name.Text())) {
			return in, fmt.Errorf("%w: node %q is not in definition %s version %d", ErrRecord, data.Shorten(name.Text()), d.ID, d.Version)
		}
	}
	if !d.IsWhole(active) {
		return in, fmt.Errorf("%w: states do not make a configuration of %s version %d", ErrRecord, d.ID, d.Version)
	}
	in.at = d.ConfigurationOf(active)
	if in.memory, err = d.restoreMemory(r.memory); err != nil {
		return in, err
	}
	if in.timers, err = d.restoreTimers(r.timers, active); err != nil {
		return in, err
	}
	if in.children, err = d.restoreChildren(r.children); err != nil {
		return in, err
	}
	if err := in.restoreParent(r.parent); err != nil {
		return in, err
	}
	return in, d.restoreTasks(&in, r.tasks)
}

// errHistory: the memory of history nodes does not fit the definition.
var errHistory = fmt.Errorf("%w: history", ErrRecord)

func (d *Definition) restoreMemory(b []byte) ([]memory, error) {
	var out []memory
	rd := packed.NewReader(b)
	for !rd.Whole() {
		machine := d.RegionByID[MachineID(rd.Text())]
		history := NodeID(rd.Text())
		count := rd.Uvarint()
		if rd.Failed() || machine == nil || machine.Machine != machine || count > uint64(len(d.Nodes)) {
			return nil, errHistory
		}
		h := d.Find(machine, history)
		if h == nil {
			return nil, errHistory
		}
		m := memory{history: h.Index}
		for range count {
			n := d.Find(machine, NodeID(rd.Text()))
			if rd.Failed() || n == nil || !h.Kind.IsHistory() || !h.Parent.Contains(n) || n.Kind.IsHistory() {
				return nil, errHistory
			}
			m.nodes = append(m.nodes, n.Index)
		}
		out = append(out, m)
	}
	return out, nil
}

// The flags beside the status of a child.
const (
	childOfMachine = 1 << 7 // a state machine has invoked it
	childNamed     = 1 << 6 // it has a name and perhaps a workflow of its own
	childHeard     = 1 << 5 // it has sent events
)

// errChildren: the children do not fit the definition.
var errChildren = fmt.Errorf("%w: children", ErrRecord)

// appendChildren writes each: status and flag(1) sequence number begun, in ms, and where the invoke stands.
func appendChildren(dst []byte, children []child) []byte {
	for i := range children {
		c := &children[i]
		flags := byte(c.status)
		if c.invoke.Node.Machine == c.invoke.Node {
			flags |= childOfMachine
		}
		if c.name != "" {
			flags |= childNamed
		}
		if c.heard != (PartID{}) {
			flags |= childHeard
		}
		dst = append(dst, flags)
		dst = c.id.append(dst)
		dst = packed.AppendTime(dst, c.begun)
		dst = appendInvoke(dst, c.invoke)
		if c.name != "" {
			dst = packed.AppendText(packed.AppendText(dst, c.name), c.workflow)
		}
		if c.heard != (PartID{}) {
			dst = c.heard.append(dst)
		}
	}
	return dst
}

func (id PartID) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, id.Sequence), uint64(id.Number))
}

// String is the part's place in the names of parts: SEQUENCE-NUMBER.
func (id PartID) String() string { return fmt.Sprintf("%d-%d", id.Sequence, id.Number) }

func readPart(rd *packed.Reader) PartID {
	sequence, number := rd.Uvarint(), rd.Uvarint()
	if number > math.MaxUint32 {
		rd.Fail()
	}
	return PartID{sequence, uint32(number)} //nolint:gosec // bounded above
}

// readData takes a value that need not be there.
func readData(rd *packed.Reader) data.Value {
	text := rd.Text()
	if len(text) == 0 {
		return nil
	}
	v, err := data.Clean(text)
	if err != nil {
		rd.Fail()
	}
	return v
}

func (d *Definition) restoreChildren(b []byte) ([]child, error) {
	var out []child
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		c := child{
			id: readPart(&rd), begun: rd.Time(),
			status: ChildStatus(flags &^ (childOfMachine | childNamed | childHeard)),
		}
		c.invoke = d.readInvoke(&rd, flags&childOfMachine != 0)
		if flags&childNamed != 0 {
			c.name, c.workflow = string(notEmpty(&rd)), string(rd.Text())
		}
		if flags&childHeard != 0 {
			c.heard = readPart(&rd)
		}
		if rd.Failed() || c.invoke == nil || c.status < ChildRuns || c.status > ChildCancelled {
			return nil, errChildren
		}
		out = append(out, c)
	}
	return out, nil
}

// The flags of the section of the parent.
const (
	parentThere byte = 1 << iota
	parentEnded      // the instance was cancelled
	parentHeard      // the parent has sent events
)

// appendParent writes flags(1) and, where there is a parent, workflow, instance, sequence, number and depth.
func (in *Instance) appendParent(dst []byte) []byte {
	if in.parent == nil && !in.ended {
		return dst
	}
	var flags byte
	if in.ended {
		flags |= parentEnded
	}
	if in.parent == nil {
		return append(dst, flags)
	}
	flags |= parentThere
	if in.parent.heard != (PartID{}) {
		flags |= parentHeard
	}
	dst = packed.AppendText(append(dst, flags), in.parent.Workflow)
	dst = packed.AppendText(dst, in.parent.Instance)
	dst = in.parent.Child.append(dst)
	dst = binary.AppendUvarint(dst, uint64(in.parent.Depth)) //nolint:gosec // not negative
	if flags&parentHeard != 0 {
		dst = in.parent.heard.append(dst)
	}
	return dst
}

func (in *Instance) restoreParent(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	rd := packed.NewReader(b)
	flags := rd.Byte()
	in.ended = flags&parentEnded != 0
	if flags&parentThere != 0 {
		p := Parent{Workflow: string(rd.Text()), Instance: string(rd.Text())}
		p.Child = readPart(&rd)
		depth := rd.Uvarint()
		if depth > MaxDepth {
			rd.Fail()
		}
		p.Depth = int(depth) //nolint:gosec // bounded above
		if flags&parentHeard != 0 {
			p.heard = readPart(&rd)
		}
		in.parent = &p
	}
	if !rd.Whole() || flags > parentThere|parentEnded|parentHeard || flags&^parentHeard == 0 {
		return fmt.Errorf("%w: parent", ErrRecord)
	}
	return nil
}
