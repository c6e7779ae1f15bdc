package replica

import (
	"encoding/binary"
	"fmt"
)

// position says how far the state of a shard is. It stands in the shard and changes with it.
type position struct {
	applied  uint64 // the last entry that was applied, or passed over
	epoch    uint64 // the index of the entry that began it
	revision uint64 // of the shard: the entries of writes that this epoch has
	term     uint64 // of the last entry that was applied
}

func (p position) encode() []byte {
	b := make([]byte, 0, 4*8)
	for _, n := range []uint64{p.applied, p.epoch, p.revision, p.term} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodePosition(b []byte) (p position, err error) {
	if len(b) != 4*8 {
		return p, fmt.Errorf("%w: its position is of %d bytes", ErrDamaged, len(b))
	}
	for i, n := range []*uint64{&p.applied, &p.epoch, &p.revision, &p.term} {
		*n = binary.BigEndian.Uint64(b[8*i:])
	}
	return p, nil
}
