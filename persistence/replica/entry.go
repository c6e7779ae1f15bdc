package replica

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"
)

// The data of an entry: version (1 byte), kind (1), and for writes epoch (8), revision (8), the last entry that all
// members had when this one was proposed (8), and then, compressed as one block of S2, sets of writes, each behind its
// length (uvarint). kindWrites, which the first engine wrote, has neither that entry nor compression. Every version that
// was ever written is read: a log may be older than the program. The first entry of a leadership has no data.
const (
	entryVersion    = 1
	kindEpoch       = 0 // the leader begins another epoch
	kindWrites      = 1
	kindPacked      = 2
	writesHeadBytes = 1 + 1 + 8 + 8
	packedHeadBytes = writesHeadBytes + 8
)

// packer makes the data of entries of writes. It keeps its room for the next one.
type packer struct{ sets, packed []byte }

// packerBytesMax is the most room that is kept.
const packerBytesMax = 1 << 20

// add adds a set of writes to the next entry.
func (p *packer) add(set []byte) {
	p.sets = append(binary.AppendUvarint(p.sets, uint64(len(set))), set...)
}

// data returns the data of an entry with the sets that were added.
func (p *packer) data(epoch, revision, everywhere uint64) []byte {
	p.packed = s2.Encode(p.packed[:cap(p.packed)], p.sets)
	data := append(make([]byte, 0, packedHeadBytes+len(p.packed)), entryVersion, kindPacked)
	for _, n := range []uint64{epoch, revision, everywhere} {
		data = binary.BigEndian.AppendUint64(data, n)
	}
	data = append(data, p.packed...)
	if p.sets = p.sets[:0]; cap(p.sets) > packerBytesMax {
		*p = packer{}
	}
	return data
}

var errEntry = errors.New("a set of writes is cut off")

// unpack calls visit with the sets of writes of an entry, which belong to it.
func unpack(data []byte, visit func(set []byte)) (err error) {
	sets := data[writesHeadBytes:]
	if data[1] == kindPacked {
		sets, err = s2.Decode(nil, data[packedHeadBytes:])
	}
	if err != nil {
		return err
	}
	for len(sets) > 0 {
		size, n := binary.Uvarint(sets)
		if n <= 0 || size > uint64(len(sets)-n) {
			return errEntry
		}
		visit(sets[n : n+int(size)])
		sets = sets[n+int(size):]
	}
	return nil
}
