package changefeed

import (
	"encoding/binary"

	"troupe/persistence"
)

// Row says that an instance has a new entry.
type Row struct {
	Shard    persistence.Shard
	Place    persistence.FeedPlace
	ID       persistence.ID
	Sequence uint64 // of the entry
	Workflow string
}

// appendValue appends id(16) sequence(uvarint) workflow.
func (r *Row) appendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, r.ID[:]...), r.Sequence)
	return append(dst, r.Workflow...)
}

// ParseRow reads a row as the store has it. Everything in it is the caller's own.
func ParseRow(key, stored []byte) (r Row, err error) {
	of, ok := persistence.ParseFeedRow(key, stored)
	if !ok || len(of.Value) < len(r.ID) {
		return Row{}, persistence.ErrCorrupt
	}
	rest := of.Value[copy(r.ID[:], of.Value):]
	sequence, n := binary.Uvarint(rest)
	if n <= 0 || sequence == 0 || n == len(rest) {
		return Row{}, persistence.ErrCorrupt
	}
	r.Shard, r.Place = persistence.Shard(binary.BigEndian.Uint16(key)), of.Place
	r.Sequence, r.Workflow = sequence, string(rest[n:])
	return r, nil
}
