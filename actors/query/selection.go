package query

import (
	"bytes"
	"encoding/binary"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
)

// Row is a row of a list that is stored in order. Its slices are valid during the call that gets it.
type Row struct {
	ID    key.ID
	Place []byte // what the list is sorted by
	Value []byte
}

// Selection says which rows a list has. All keys are built by key.List.
type Selection struct {
	// Ranges have rows of the list, all of which are read. They are of key.EveryShard, and disjoint.
	Ranges []key.Range
	// Pointers have rows whose values are the places of rows outside of Ranges, as far as they are at TargetsFrom or
	// behind it: the pointers are not read before the list comes there. Targets names the list of those by that of their
	// pointers.
	Pointers    []key.Range
	Targets     map[byte]byte
	TargetsFrom []byte
	Backward    bool   // from the last place to the first
	After       []byte // the place and id behind which the list begins; nil: at its beginning
}

func (of *Selection) ranges() (out []key.Range) {
	for _, r := range of.Ranges {
		switch {
		case of.After == nil:
		case of.Backward && (r.To == nil || bytes.Compare(of.After, r.To) < 0):
			r.To = of.After
		case !of.Backward && bytes.Compare(of.After, r.From) >= 0:
			r.From = append(slices.Clone(of.After), 0)
		}
		if r.To == nil || bytes.Compare(r.From, r.To) < 0 {
			out = append(out, r)
		}
	}
	return out
}

// target is the key of the row to which a pointer leads; nil when it is in front of TargetsFrom.
func (of *Selection) target(rowKey, value []byte) ([]byte, error) {
	k, ok := key.Parse(rowKey)
	list, known := of.Targets[k.Kind]
	if !ok || !known || len(value) != 8 {
		return nil, failure.Errorf(failure.ErrExecution, "row of a completed form")
	}
	if bytes.Compare(value, of.TargetsFrom) < 0 {
		return nil, nil
	}
	return key.List(nil, k.Shard, list, k.Name, int64(^binary.BigEndian.Uint64(value)), k.ID), nil //nolint:gosec // as it was written
}

func placeOf(k []byte) []byte {
	place, _, _ := key.ParseList(k)
	return k[len(k)-len(place)-len(key.ID{}):]
}

// selected asks for rows of a list.
type selected struct {
	User identity.UserID
	Of   Selection
}

// rowItem is a Row on its way.
type rowItem struct{ Row }

// AppendBinary appends id(16) place(uvarint length in front) value.
func (r rowItem) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, r.ID[:]...)
	dst = append(binary.AppendUvarint(dst, uint64(len(r.Place))), r.Place...)
	return append(dst, r.Value...), nil
}

// UnmarshalBinary reads what AppendBinary wrote, and keeps it.
func (r *rowItem) UnmarshalBinary(b []byte) error {
	if len(b) < len(r.ID) {
		return errFound
	}
	rest := b[copy(r.ID[:], b):]
	length, n := binary.Uvarint(rest)
	if n <= 0 || length > uint64(len(rest)-n) {
		return errFound
	}
	rest = rest[n:]
	r.Place, r.Value = rest[:length:length], rest[length:]
	return nil
}
