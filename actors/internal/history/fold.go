package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// An entry of an instance with many machines is stored folded: its JSON with empty lists, and the places of the lists
// that differ. The lists are made again from those of the entry before or behind, since each entry starts where the one
// before ended.
//
//	format(3) chain(16) JSON brought changes length of the changes(4) kind(1) length of the JSON(4)
//	changes: for each how many names stay, then the names that go and those that come, each list with its length
const (
	foldedFormat = 3
	foldedFrom   = 512 // the shortest JSON that is folded
	wholeEvery   = 32  // the entries whose number it divides are stored whole, and the first, so that few are read to unfold one
	foldBytes    = 4
)

var (
	startList = []byte(`,"startState":[]`)
	endList   = []byte(`,"endState":[]`)
)

// Complete returns what is stored of an entry, whose JSON stands behind HeadBytes that are free.
func Complete(value []byte, e *statemachine.Entry, sequence uint64, goesOn bool) []byte {
	switch {
	case goesOn && mayFold(e, sequence, len(value)-HeadBytes):
		return fold(e, e.Data, e.Attempt)
	case e.Attempt || len(e.Data) > 0:
		return Keep(value, e.Data, e.Attempt)
	}
	return value
}

func mayFold(e *statemachine.Entry, sequence uint64, length int) bool {
	return length >= foldedFrom && len(e.Start) > 1 && len(e.End) > 1 && sequence > 1 && sequence%wholeEvery != 0
}

func fold(e *statemachine.Entry, brought data.Value, attempt bool) []byte {
	folded := *e
	folded.Start, folded.End = nil, nil
	entry := folded.AppendJSON(make([]byte, HeadBytes, 256))
	end := len(entry) - HeadBytes
	entry, kind := appendBrought(entry, brought, attempt)
	at := len(entry)
	entry = appendChanges(entry, e.Start, e.End)
	entry[0] = foldedFormat
	entry = binary.BigEndian.AppendUint32(entry, uint32(len(entry)-at)) //nolint:gosec // of an entry
	return binary.BigEndian.AppendUint32(append(entry, kind), uint32(end))
}

func appendChanges(dst []byte, from, to []statemachine.NodeID) []byte {
	change := func(stay int, from, to []statemachine.NodeID) {
		dst = binary.AppendUvarint(dst, uint64(stay)) //nolint:gosec // not negative
		for _, names := range [][]statemachine.NodeID{from, to} {
			dst = binary.AppendUvarint(dst, uint64(len(names)))
			for _, name := range names {
				dst = packed.AppendText(dst, name)
			}
		}
	}
	if len(from) != len(to) {
		stay := 0
		for stay < min(len(from), len(to)) && from[stay] == to[stay] {
			stay++
		}
		same := 0
		for same < min(len(from), len(to))-stay && from[len(from)-1-same] == to[len(to)-1-same] {
			same++
		}
		change(stay, from[stay:len(from)-same], to[stay:len(to)-same])
		return dst
	}
	for at, done := 0, 0; at < len(from); at++ {
		if from[at] == to[at] {
			continue
		}
		end := at + 1
		for end < len(from) && from[end] != to[end] {
			end++
		}
		change(at-done, from[at:end], to[at:end])
		at, done = end, end
	}
	return dst
}

// changed makes the other list of one: that at the end of that at the start, or backward.
func changed(list []statemachine.NodeID, changes []byte, backward bool) (out []statemachine.NodeID, ok bool) {
	rd := packed.NewReader(changes)
	out = make([]statemachine.NodeID, 0, len(list)+1)
	for !rd.Whole() && !rd.Failed() {
		stay := rd.Uvarint()
		var sides [2][]statemachine.NodeID
		for k := range sides {
			for n := rd.Uvarint(); n > 0 && !rd.Failed(); n-- {
				sides[k] = append(sides[k], statemachine.NodeID(rd.Text()))
			}
		}
		if backward {
			sides[0], sides[1] = sides[1], sides[0]
		}
		if rd.Failed() || stay > uint64(len(list)) || len(sides[0]) > len(list)-int(stay) || !slices.Equal(sides[0], list[stay:int(stay)+len(sides[0])]) { //nolint:gosec // bounded
			return nil, false
		}
		out = append(append(out, list[:stay]...), sides[1]...)
		list = list[int(stay)+len(sides[0]):] //nolint:gosec // bounded
	}
	return append(out, list...), rd.Whole()
}

type parts struct {
	entry, brought data.Value
	kind           byte
	changes        []byte // of a folded one
	folded         bool
}

func splitFolded(rest []byte) (p parts, ok bool) {
	if len(rest) < tailBytes+foldBytes {
		return p, false
	}
	at := len(rest) - tailBytes
	p.kind, p.folded = rest[at], true
	end, length := uint64(binary.BigEndian.Uint32(rest[at+1:])), uint64(binary.BigEndian.Uint32(rest[at-foldBytes:]))
	at -= foldBytes
	if end+length > uint64(at) || p.kind&^attemptBit > digestKind {
		return p, false
	}
	p.entry, p.brought, p.changes = data.Value(rest[:end]), data.Value(rest[end:uint64(at)-length]), rest[uint64(at)-length:at]
	return p, true
}

func unfold(entry []byte, start, end []statemachine.NodeID) (data.Value, bool) {
	first, last := bytes.Index(entry, startList), bytes.Index(entry, endList)
	if first < 0 || last < first {
		return nil, false
	}
	length := len(entry)
	for _, list := range [][]statemachine.NodeID{start, end} {
		for _, name := range list {
			length += len(name) + len(`"",`)
		}
	}
	out := make(data.Value, 0, length)
	first, last = first+len(startList)-2, last+len(endList)-2
	out = statemachine.AppendNodes(append(out, entry[:first]...), start)
	out = statemachine.AppendNodes(append(out, entry[first+2:last]...), end)
	return append(out, entry[last+2:]...), true
}

// Ending returns the JSON of a stored entry whose endState is known.
func Ending(stored []byte, end []statemachine.NodeID) (data.Value, bool) {
	p, ok := split(stored)
	if !ok || !p.folded {
		return p.entry, ok
	}
	start, ok := changed(end, p.changes, true)
	if !ok {
		return nil, false
	}
	return unfold(p.entry, start, end)
}

// Loader reads rows: a store, or a snapshot of one.
type Loader interface {
	Load(key []byte) ([]byte, error)
}

// Reader reads entries of one instance.
type Reader struct {
	from       Loader
	sh         key.Shard
	id         key.ID
	at         uint64 // the folded entry that was read last, 0 for none, with its lists
	start, end []statemachine.NodeID
}

// NewReader returns a reader of an instance's entries.
func NewReader(from Loader, sh key.Shard, id key.ID) *Reader {
	return &Reader{from: from, sh: sh, id: id}
}

// Entry returns the JSON of a stored entry, which it may alias. It does not check the chain.
func (r *Reader) Entry(n uint64, stored []byte) (data.Value, error) {
	p, err := r.read(n, stored)
	return p.entry, err
}

func (r *Reader) load(n uint64) (parts, error) {
	stored, err := r.from.Load(key.Entry(nil, r.sh, r.id, n))
	if errors.Is(err, persistence.ErrNotFound) {
		err = persistence.ErrCorrupt
	}
	if err != nil {
		return parts{}, fmt.Errorf("history entry %d: %w", n, err)
	}
	p, ok := split(stored)
	if !ok {
		return parts{}, damagedEntry(n)
	}
	return p, nil
}

func damagedEntry(n uint64) error {
	return fmt.Errorf("history entry %d: %w", n, errors.Join(ErrDamaged, persistence.ErrCorrupt))
}

func (r *Reader) read(n uint64, stored []byte) (p parts, err error) {
	p, ok := split(stored)
	if !ok {
		return p, damagedEntry(n)
	}
	return r.unfold(n, p)
}

func (r *Reader) unfold(n uint64, p parts) (_ parts, err error) {
	if !p.folded {
		return p, nil
	}
	ok := false
	switch {
	case r.at != 0 && n == r.at+1:
		r.start = r.end
		r.end, ok = changed(r.start, p.changes, false)
	case r.at != 0 && n == r.at-1:
		r.end = r.start
		r.start, ok = changed(r.end, p.changes, true)
	default:
		if r.start, err = r.before(n); err != nil {
			return p, err
		}
		r.end, ok = changed(r.start, p.changes, false)
	}
	if r.at = n; ok {
		p.entry, ok = unfold(p.entry, r.start, r.end)
	}
	if !ok {
		r.at = 0
		return p, damagedEntry(n)
	}
	return p, nil
}

func (r *Reader) before(n uint64) (end []statemachine.NodeID, err error) {
	var behind []parts // folded ones, newest first
	for m := n - 1; m > 0; m-- {
		p, err := r.load(m)
		if err != nil {
			return nil, err
		}
		if p.folded {
			behind = append(behind, p)
			continue
		}
		list, _ := p.entry.Lookup("endState")
		for _, name := range list.Elements() {
			end = append(end, statemachine.NodeID(name.Text()))
		}
		for _, p := range slices.Backward(behind) {
			ok := false
			if end, ok = changed(end, p.changes, false); !ok {
				return nil, damagedEntry(n)
			}
		}
		return end, nil
	}
	return nil, damagedEntry(n)
}
