package persistence

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A mark is written into the log at the front of every batch. It says what had
// been made durable before that batch was built. When a later Open finds a hole
// in the log, any mark behind the hole proves what must have stood before it:
// that is how damage is told from a torn write at the end. Pebble's own proof,
// the sync offset in each chunk, counts only part of what was written when
// several writers share a sync, and stays behind by megabytes.
//
// In the log a record of ours begins like this (numbers little-endian):
//
//	sequence 8 | count 4 | kind 1 | length 1 | wal 4 | sequence 8 | operations…
//	'--- Pebble's header --''- log data -'---'------ mark --------'
const (
	markBytes  = 12
	markKind   = byte(pebble.InternalKeyKindLogData)
	headBytes  = 12 // of Pebble's batch
	markOffset = headBytes + 2
)

var emptyMark [markBytes]byte

// proof is a durable fact about the log: a record that ends before sequence
// number seq is durable, and it lies in log file wal or in a later one. The zero
// proof says nothing.
type proof struct {
	wal uint64
	seq uint64
}

// stamp overwrites the mark at the front of a batch that is not committed yet.
// NB: Repr gives out the batch's own bytes; they are still ours alone here.
func stamp(b *pebble.Batch, p proof) {
	putMark(b.Repr()[markOffset:], p)
}

func putMark(dst []byte, p proof) {
	binary.LittleEndian.PutUint32(dst, uint32(p.wal))
	binary.LittleEndian.PutUint64(dst[4:], p.seq)
}

// parseMark reads the mark of a record from its first bytes. It is false when
// the record is not one of ours.
func parseMark(record []byte) (proof, bool) {
	if len(record) < markOffset+markBytes || record[headBytes] != markKind || record[headBytes+1] != markBytes {
		return proof{}, false
	}
	return proof{
		wal: uint64(binary.LittleEndian.Uint32(record[markOffset:])),
		seq: binary.LittleEndian.Uint64(record[markOffset+4:]),
	}, true
}

// progress is the highest proof so far. One goroutine advances it, many read it.
type progress struct {
	wal, seq atomic.Uint64
}

// advance raises p. The parts may come from different commits: a higher sequence
// number never lies in a lower log.
//
// NB: seq before wal here, wal before seq in load. A reader that sees the new
// log then also sees at least the sequence number that belongs to it; the other
// mixture, an old log with a new number, claims less and is true as well.
func (p *progress) advance(q proof) {
	if q.seq > p.seq.Load() {
		p.seq.Store(q.seq)
	}
	if q.wal > p.wal.Load() {
		p.wal.Store(q.wal)
	}
}

func (p *progress) load() proof {
	wal := p.wal.Load()
	return proof{wal: wal, seq: p.seq.Load()}
}
