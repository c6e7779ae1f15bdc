package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"troupe/statemachine/packed"
)

// ElementID tells a timer or child from every other one that its instance ever has: the history entry that began it, and
// its place among those that began with that entry, counted from 0.
type ElementID struct {
	Sequence uint64
	Number   uint32
}

// String is the element's place in the names of elements: SEQUENCE-NUMBER.
func (id ElementID) String() string { return fmt.Sprintf("%d-%d", id.Sequence, id.Number) }

// Compare is -1, 0 or 1: the history entry decides, then the place in it.
func (id ElementID) Compare(other ElementID) int {
	return cmp.Or(cmp.Compare(id.Sequence, other.Sequence), cmp.Compare(id.Number, other.Number))
}

func (id ElementID) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, id.Sequence), uint64(id.Number))
}

func readElement(rd *packed.Reader) ElementID {
	sequence, number := rd.Uvarint(), rd.Uvarint()
	if number > math.MaxUint32 {
		rd.Fail()
	}
	return ElementID{sequence, uint32(number)} //nolint:gosec // bounded above
}
