package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

const (
	format       = 1
	HeadBytes    = 1 + len(statemachine.Chain{}) // what stands before the JSON
	DataBytesMax = 16 << 10                      // the most that is kept of what an event brought
	foldedFrom   = 512                           // the shortest JSON that is folded
	wholeEvery   = 32                            // the entries whose number it divides are stored whole, and the first, so that few are read to unfold one
)

// The kinds of what follows the JSON; 0: nothing.
const (
	wholeKind  byte = iota + 1 // what the event brought
	digestKind                 // {"sha256", "bytes"} of it
	inputBit   byte = 1 << 4   // set beside them: what else made the entry follows what the event brought (statemachine.Entry.Input)
	keptBit    byte = 1 << 5   // set beside them: the sum of the instance's data stands before the kind, and nothing else made the entry than is here
	foldedBit  byte = 1 << 6   // set beside them: the JSON has empty lists, and changes follow it
	attemptBit byte = 1 << 7   // set beside them: nothing took the event (statemachine.Entry.Attempt)
)

var (
	startList = []byte(`,"startState":[]`)
	endList   = []byte(`,"endState":[]`)
)

// Complete returns what is stored of an entry, whose JSON follows HeadBytes that are free. in is the instance behind it.
func Complete(value []byte, e *statemachine.Entry, in *statemachine.Instance, goesOn bool) []byte {
	return complete(value, e, nil, in.Sequence, SumOf(in), true, goesOn)
}

// complete is Complete for an entry of which perhaps only a digest of what the event brought is known.
func complete(value []byte, e *statemachine.Entry, digest data.Value, sequence uint64, sum uint16, kept, goesOn bool) []byte {
	if len(e.Input) > DataBytesMax {
		kept = false
	}
	end, folds := len(value)-HeadBytes, goesOn && mayFold(e, sequence, len(value)-HeadBytes)
	if folds {
		folded := *e
		folded.Start, folded.End = nil, nil
		value = folded.AppendJSON(make([]byte, HeadBytes, 256))
		end = len(value) - HeadBytes
	}
	value, kind := appendBrought(value, e.Data, e.Attempt)
	if digest != nil {
		value, kind = append(value, digest...), kind|digestKind
	}
	if kept && len(e.Input) > 0 {
		value = appendLength(append(value, e.Input...), len(e.Input))
		kind |= inputBit
	}
	if folds {
		at := len(value)
		value = appendChanges(value, e.Start, e.End)
		value = appendLength(value, len(value)-at)
		kind |= foldedBit
	}
	value = appendTail(value, end, kind)
	if kept {
		value = binary.BigEndian.AppendUint16(value[:len(value)-1], sum)
		value = append(value, kind|keptBit)
	}
	return value
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SumOf is a sum of what histories do not say of an instance: its data and redirect.
func SumOf(in *statemachine.Instance) uint16 {
	sum := crc32.Update(crc32.Checksum(in.Public, castagnoli), castagnoli, in.Private)
	if in.Redirect != "" {
		sum = crc32.Update(sum, castagnoli, []byte(in.Redirect))
	}
	return uint16(sum ^ sum>>16) //nolint:gosec // the half is enough
}

func mayFold(e *statemachine.Entry, sequence uint64, length int) bool {
	return length >= foldedFrom && len(e.Start) > 1 && len(e.End) > 1 && sequence > 1 && sequence%wholeEvery != 0
}

func appendTail(entry []byte, end int, kind byte) []byte {
	entry[0] = format
	if kind != 0 {
		entry = appendLength(entry, end)
	}
	return append(entry, kind)
}

func appendLength(entry []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(entry, uint32(n)) //nolint:gosec // of an entry
}

func cutLength(text []byte) (rest []byte, n int, ok bool) {
	at := len(text) - 4
	if at < 0 {
		return nil, 0, false
	}
	n = int(binary.BigEndian.Uint32(text[at:]))
	return text[:at], n, n <= at
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
	input          []byte // nil: nothing else made it
	sum            uint16 // with kept
	kind           byte   // of what was brought, and attemptBit
	changes        []byte // of a folded one
	folded, kept   bool
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

// ErrDamaged: what is stored is not a history, or lacks a part of one.
var ErrDamaged = errors.New("stored history cannot be read")

// Keep appends to an entry, whose JSON follows HeadBytes that are free, what its event brought, nil for nothing,
// and whether it is an attempt.
func Keep(entry []byte, brought data.Value, attempt bool) []byte {
	end := len(entry) - HeadBytes
	entry, kind := appendBrought(entry, brought, attempt)
	return appendTail(entry, end, kind)
}

const digestForm = `{"sha256":"%x","bytes":%d}`

func appendBrought(entry []byte, brought data.Value, attempt bool) (_ []byte, kind byte) {
	switch {
	case len(brought) > DataBytesMax:
		sum := sha256.Sum256(brought)
		brought = fmt.Appendf(nil, digestForm, sum, len(brought))
		kind = digestKind
	case len(brought) > 0:
		kind = wholeKind
	}
	if attempt {
		kind |= attemptBit
	}
	return append(entry, brought...), kind
}

// split takes a stored entry apart.
func split(stored []byte) (p parts, ok bool) {
	last := len(stored) - 1
	if last < HeadBytes || stored[0] != format {
		return p, false
	}
	rest, kind := stored[HeadBytes:last], stored[last]
	if p.kept = kind&keptBit != 0; p.kept {
		if len(rest) < 2 {
			return p, false
		}
		rest, p.sum = rest[:len(rest)-2], binary.BigEndian.Uint16(rest[len(rest)-2:])
	}
	if kind &^= keptBit; kind == 0 {
		p.entry = rest
		return p, true
	}
	p.folded, p.kind = kind&foldedBit != 0, kind&^(foldedBit|inputBit)
	rest, end, ok := cutLength(rest)
	if ok && p.folded {
		var length int
		if rest, length, ok = cutLength(rest); ok {
			p.changes, rest = rest[len(rest)-length:], rest[:len(rest)-length]
		}
	}
	if ok && kind&inputBit != 0 {
		var length int
		if rest, length, ok = cutLength(rest); ok {
			p.input, rest = rest[len(rest)-length:], rest[:len(rest)-length]
		}
	}
	if !ok || end > len(rest) || p.kind&^attemptBit > digestKind {
		return parts{}, false
	}
	p.entry, p.brought = rest[:end], rest[end:]
	return p, true
}

// appendWith appends an entry with what its event brought as data, or as dataDigest when it was too long, and its
// attempt.
func appendWith(dst []byte, entry, brought data.Value, kind byte) []byte {
	if kind == 0 || len(entry) == 0 {
		return append(dst, entry...)
	}
	dst = append(dst, entry[:len(entry)-1]...)
	switch kind &^ attemptBit {
	case digestKind:
		dst = append(append(dst, `,"data":null,"dataDigest":`...), brought...)
	case wholeKind:
		dst = append(append(dst, `,"data":`...), brought...)
	}
	if kind&attemptBit != 0 {
		dst = append(dst, `,"attempt":true`...)
	}
	return append(dst, '}')
}
