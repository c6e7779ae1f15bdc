package changefeed

import (
	"encoding/binary"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Row says that an instance has a new entry.
type Row struct {
	Shard    key.Shard
	Place    key.FeedPlace
	ID       key.ID
	Sequence uint64 // of the entry
	Workflow string
}

// appendValue appends id(16) sequence(uvarint) workflow.
func (r *Row) appendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, r.ID[:]...), r.Sequence)
	return append(dst, r.Workflow...)
}

// ParseRow reads a row as the store has it. Everything in it is the caller's own.
func ParseRow(k, stored []byte) (r Row, err error) {
	of, ok := persistence.ParseFeedRow(k, stored)
	if !ok || len(of.Value) < len(r.ID) {
		return Row{}, persistence.ErrCorrupt
	}
	rest := of.Value[copy(r.ID[:], of.Value):]
	sequence, n := binary.Uvarint(rest)
	if n <= 0 || sequence == 0 || n == len(rest) {
		return Row{}, persistence.ErrCorrupt
	}
	r.Shard, r.Place = key.Shard(binary.BigEndian.Uint16(k)), of.Place
	r.Sequence, r.Workflow = sequence, string(rest[n:])
	return r, nil
}
