// Package entry is the data of entries of a group's log.
//
// It is version (1 byte) and kind (1). Behind them an entry of writes has epoch (8), revision (8), the last entry that all
// members had when this one was proposed (8), and then, compressed as one block of S2, sets of writes, each behind its
// length (uvarint); Plain, which the first engine wrote, has neither that entry nor compression. Divides has the first
// shard of the new group (2). Every version that was ever written is read: a log may be older than the program. The first
// entry of a leadership has no data.
package entry

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"
)

// Kind says what an entry does.
type Kind byte

const (
	Begins  Kind = iota // Begins another epoch of the leader
	Plain               // Plain writes, of the first engine
	Writes              // Writes of the shards
	Divides             // Divides the group: the shards from one on get their own
)

const (
	version        = 1
	headBytes      = 1 + 1
	plainHeadBytes = headBytes + 8 + 8
	writesHead     = plainHeadBytes + 8
)

var (
	ErrNewer   = errors.New("was written by a newer program; install that one here too") // ErrNewer: the version is unknown
	ErrKind    = errors.New("has an unknown kind")
	errCutOff  = errors.New("a set of writes is cut off")
	packedHead = [...]byte{version, byte(Writes)}
)

// Entry is what the data of an entry say.
type Entry struct {
	Kind            Kind
	Epoch, Revision uint64 // of writes
	Everywhere      uint64 // of writes: the last entry that all members had; 0 when that is not said
	Shard           uint16 // of Divides
	sets            []byte // packed but in Plain
}

// Parse reads the data of an entry, which the Entry keeps. It returns ErrNewer or ErrKind.
func Parse(data []byte) (e Entry, err error) {
	if len(data) < headBytes || data[0] != version {
		return e, ErrNewer
	}
	e.Kind = Kind(data[1])
	switch {
	case e.Kind == Begins:
	case e.Kind == Divides && len(data) == headBytes+2:
		e.Shard = binary.BigEndian.Uint16(data[headBytes:])
	case e.Kind == Plain && len(data) >= plainHeadBytes:
		e.sets = data[plainHeadBytes:]
	case e.Kind == Writes && len(data) >= writesHead:
		e.Everywhere, e.sets = binary.BigEndian.Uint64(data[plainHeadBytes:]), data[writesHead:]
	default:
		return e, ErrKind
	}
	if e.Kind == Plain || e.Kind == Writes {
		e.Epoch, e.Revision = binary.BigEndian.Uint64(data[headBytes:]), binary.BigEndian.Uint64(data[headBytes+8:])
	}
	return e, nil
}

// Visit calls visit with the sets of writes, which belong to it.
func (e *Entry) Visit(visit func(set []byte)) (err error) {
	sets := e.sets
	if e.Kind == Writes {
		sets, err = s2.Decode(nil, sets)
	}
	if err != nil {
		return err
	}
	for len(sets) > 0 {
		size, n := binary.Uvarint(sets)
		if n <= 0 || size > uint64(len(sets)-n) {
			return errCutOff
		}
		visit(sets[n : n+int(size)])
		sets = sets[n+int(size):]
	}
	return nil
}

// Begin returns the data of an entry that begins another epoch.
func Begin() []byte { return []byte{version, byte(Begins)} }

// Divide returns the data of an entry that gives the shards from one on to a group of their own.
func Divide(shard uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{version, byte(Divides)}, shard)
}

// IsDivide reports whether data are Divide's.
func IsDivide(data []byte) bool {
	return len(data) > 1 && data[0] == version && Kind(data[1]) == Divides
}

// Packer makes the data of entries of writes. It keeps its room for the next one.
type Packer struct{ sets, packed []byte }

// packerBytesMax is the most room that is kept.
const packerBytesMax = 1 << 20

// Add adds a set of writes to the next entry.
func (p *Packer) Add(set []byte) {
	p.sets = append(binary.AppendUvarint(p.sets, uint64(len(set))), set...)
}

// Data returns the data of an entry with the sets that were added.
func (p *Packer) Data(epoch, revision, everywhere uint64) []byte {
	p.packed = s2.Encode(p.packed[:cap(p.packed)], p.sets)
	data := append(make([]byte, 0, writesHead+len(p.packed)), packedHead[:]...)
	for _, n := range []uint64{epoch, revision, everywhere} {
		data = binary.BigEndian.AppendUint64(data, n)
	}
	data = append(data, p.packed...)
	if p.sets = p.sets[:0]; cap(p.sets) > packerBytesMax {
		*p = Packer{}
	}
	return data
}
