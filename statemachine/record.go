package statemachine

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"troupe/statemachine/data"
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
func (d *Definition) AppendRecord(dst []byte, in *Instance, chain Chain, states, attachment []byte) []byte {
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
	dst = appendBytes(dst, states)
	dst = appendBytes(dst, in.Redirect)
	dst = appendBytes(dst, in.Public)
	dst = appendBytes(dst, in.Private)
	dst = appendBytes(dst, d.appendMemory(nil, in.memory))
	if len(attachment) > 0 {
		dst = appendBytes(dst, attachment)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendBytes[T ~string | ~[]byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendMemory writes the memory of history nodes by name, because a node has another
// index in another version of the definition.
func (d *Definition) appendMemory(dst []byte, memories []memory) []byte {
	for _, m := range memories {
		h := d.nodes[m.history]
		dst = appendBytes(dst, h.machine.id)
		dst = appendBytes(dst, h.id)
		dst = binary.AppendUvarint(dst, uint64(len(m.nodes)))
		for _, i := range m.nodes {
			dst = appendBytes(dst, d.nodes[i].id)
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
	rd := reader{rest: body[1:]}
	r.Version = rd.uvarint()
	r.Sequence = rd.uvarint()
	r.CreatedAt = time.UnixMilli(rd.varint()).UTC()
	r.UpdatedAt = time.UnixMilli(rd.varint()).UTC()
	copy(r.Chain[:], rd.take(len(r.Chain)))
	r.States = data.Value(rd.bytes())
	r.Redirect = string(rd.bytes())
	r.Public = data.Value(rd.bytes())
	r.Private = data.Value(rd.bytes())
	r.memory = rd.bytes()
	if b[0] == attachedFormat {
		r.Attachment = rd.bytes()
		rd.failed = rd.failed || len(r.Attachment) == 0
	}
	if rd.failed || len(rd.rest) > 0 {
		return Record{}, fmt.Errorf("%w: layout", ErrRecord)
	}
	return r, nil
}

// reader takes values from the front of a byte string; after the first that
// does not fit, failed is set and it returns zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.rest) {
		r.failed = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	return r.take(int(n))
}

// Restore makes the instance that r was written from, under the definition that
// it was written with. It returns ErrRecord when they do not fit.
func (d *Definition) Restore(id string, r Record) (Instance, error) {
	in := Instance{
		ID: id, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Sequence: r.Sequence,
		Redirect: r.Redirect, active: newNodeSet(len(d.nodes)),
	}
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
		if !d.activate(in.active, MachineID(machine.Text()), NodeID(name.Text())) {
			return in, fmt.Errorf("%w: node %q is not in definition %s version %d", ErrRecord, shorten(name.Text()), d.ID, d.Version)
		}
	}
	if !d.isWhole(in.active) {
		return in, fmt.Errorf("%w: states do not make a configuration of %s version %d", ErrRecord, d.ID, d.Version)
	}
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

func (d *Definition) restoreMemory(b []byte) ([]memory, error) {
	var out []memory
	rd := reader{rest: b}
	for len(rd.rest) > 0 && !rd.failed {
		machine := d.regions[MachineID(rd.bytes())]
		history := NodeID(rd.bytes())
		count := rd.uvarint()
		if rd.failed || machine == nil || machine.machine != machine || count > uint64(len(d.nodes)) {
			return nil, fmt.Errorf("%w: history", ErrRecord)
		}
		h := d.find(machine, history)
		m := memory{}
		for range count {
			n := d.find(machine, NodeID(rd.bytes()))
			if rd.failed || n == nil || h == nil || !h.kind.isHistory() || !h.parent.contains(n) || n.kind.isHistory() {
				return nil, fmt.Errorf("%w: history", ErrRecord)
			}
			m.nodes = append(m.nodes, n.index)
		}
		if h == nil {
			return nil, fmt.Errorf("%w: history", ErrRecord)
		}
		m.history = h.index
		out = append(out, m)
	}
	if rd.failed {
		return nil, fmt.Errorf("%w: history", ErrRecord)
	}
	return out, nil
}
