package statemachine

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Versions of the stored form of an instance. A reader refuses what it does not
// know.
const (
	recordFormat = 1
	// attachedFormat is recordFormat with an attachment behind the rest.
	attachedFormat = 2
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
	Attachment []byte
	memory     []byte
}

// AppendRecord appends the stored form of the instance:
//
//	format(1) version sequence created updated  (varints; times in ms)
//	chain(16) states redirect public private memory  (each with its length)
//	attachment                                       (the same, when there is one)
//	crc32c(4) of all before it
func (d *Definition) AppendRecord(dst []byte, in *Instance, chain Chain, attachment []byte) []byte {
	start := len(dst)
	if len(attachment) == 0 {
		dst = append(dst, recordFormat)
	} else {
		dst = append(dst, attachedFormat)
	}
	dst = binary.AppendUvarint(dst, d.Version)
	dst = binary.AppendUvarint(dst, in.Sequence)
	dst = binary.AppendVarint(dst, in.CreatedAt.UnixMilli())
	dst = binary.AppendVarint(dst, in.UpdatedAt.UnixMilli())
	dst = append(dst, chain[:]...)
	dst = packed.AppendText(dst, in.at.states)
	dst = packed.AppendText(dst, in.Redirect)
	dst = packed.AppendText(dst, in.Public)
	dst = packed.AppendText(dst, in.Private)
	dst = packed.AppendText(dst, d.appendMemory(nil, in.memory))
	if len(attachment) > 0 {
		dst = packed.AppendText(dst, attachment)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendMemory writes the memory of history nodes by name, because a node has another
// index in another version of the definition.
func (d *Definition) appendMemory(dst []byte, memories []memory) []byte {
	for _, m := range memories {
		h := d.nodes[m.history]
		dst = packed.AppendText(dst, h.machine.id)
		dst = packed.AppendText(dst, h.id)
		dst = binary.AppendUvarint(dst, uint64(len(m.nodes)))
		for _, i := range m.nodes {
			dst = packed.AppendText(dst, d.nodes[i].id)
		}
	}
	return dst
}

// ParseRecord reads the stored form. It returns ErrRecord for anything that
// AppendRecord did not write.
func ParseRecord(b []byte) (Record, error) {
	var r Record
	if len(b) < 5 || b[0] != recordFormat && b[0] != attachedFormat {
		return r, fmt.Errorf("%w: unknown format", ErrRecord)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return r, fmt.Errorf("%w: checksum", ErrRecord)
	}
	rd := packed.NewReader(body[1:])
	r.Version = rd.Uvarint()
	r.Sequence = rd.Uvarint()
	r.CreatedAt = time.UnixMilli(rd.Varint()).UTC()
	r.UpdatedAt = time.UnixMilli(rd.Varint()).UTC()
	copy(r.Chain[:], rd.Take(len(r.Chain)))
	r.States = data.Value(rd.Text())
	r.Redirect = string(rd.Text())
	r.Public = data.Value(rd.Text())
	r.Private = data.Value(rd.Text())
	r.memory = rd.Text()
	if b[0] == attachedFormat {
		r.Attachment = rd.Text()
		if len(r.Attachment) == 0 {
			rd.Fail()
		}
	}
	if !rd.Whole() {
		return Record{}, fmt.Errorf("%w: layout", ErrRecord)
	}
	return r, nil
}

// Restore makes the instance that r was written from, under the definition that
// it was written with. It returns ErrRecord when they do not fit.
func (d *Definition) Restore(id string, r Record) (Instance, error) {
	in := Instance{
		ID: id, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Sequence: r.Sequence,
		Redirect: r.Redirect,
	}
	active := newNodeSet(len(d.nodes))
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
		if !d.activate(active, MachineID(machine.Text()), NodeID(name.Text())) {
			return in, fmt.Errorf("%w: node %q is not in definition %s version %d", ErrRecord, shorten(name.Text()), d.ID, d.Version)
		}
	}
	if !d.isWhole(active) {
		return in, fmt.Errorf("%w: states do not make a configuration of %s version %d", ErrRecord, d.ID, d.Version)
	}
	in.at = d.configurationOf(active)
	in.memory, err = d.restoreMemory(r.memory)
	return in, err
}

// activate adds the node that one position names, with its ancestors.
func (d *Definition) activate(active nodeSet, region MachineID, name NodeID) bool {
	r := d.regions[region]
	if r == nil {
		return false
	}
	n := d.find(r.machine, name)
	if r == r.machine && r.kind == parallel && NodeID(r.id) == name {
		n = r
	}
	if n == nil || n != r && !r.contains(n) {
		return false
	}
	for ; n.parent != nil; n = n.parent {
		active.add(n.index)
	}
	return true
}

// find returns the node of a machine by name; nil when it has none.
func (d *Definition) find(machine *node, name NodeID) *node {
	for i := machine.index + 1; i <= machine.last; i++ {
		if d.nodes[i].id == name {
			return d.nodes[i]
		}
	}
	return nil
}

// isWhole reports whether the set is a configuration: every compound node in it
// has exactly one active child, every parallel one all.
func (d *Definition) isWhole(active nodeSet) bool {
	for _, n := range d.nodes {
		if n.parent != nil && !active.has(n.index) {
			continue
		}
		count := 0
		for _, c := range n.children {
			if active.has(c.index) {
				count++
			}
		}
		if n.kind == compound && count != 1 || n.kind == parallel && count != len(n.children) || n.kind.isHistory() {
			return false
		}
	}
	return true
}

// errHistory: the memory of history nodes does not fit the definition.
var errHistory = fmt.Errorf("%w: history", ErrRecord)

func (d *Definition) restoreMemory(b []byte) ([]memory, error) {
	var out []memory
	rd := packed.NewReader(b)
	for !rd.Whole() {
		machine := d.regions[MachineID(rd.Text())]
		history := NodeID(rd.Text())
		count := rd.Uvarint()
		if rd.Failed() || machine == nil || machine.machine != machine || count > uint64(len(d.nodes)) {
			return nil, errHistory
		}
		h := d.find(machine, history)
		if h == nil {
			return nil, errHistory
		}
		m := memory{history: h.index}
		for range count {
			n := d.find(machine, NodeID(rd.Text()))
			if rd.Failed() || n == nil || !h.kind.isHistory() || !h.parent.contains(n) || n.kind.isHistory() {
				return nil, errHistory
			}
			m.nodes = append(m.nodes, n.index)
		}
		out = append(out, m)
	}
	return out, nil
}
