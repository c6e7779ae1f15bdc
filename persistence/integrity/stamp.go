package integrity

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A WAL stamp stands in the log at the front of every batch. It is the durability watermark of the moment when the
// batch was written. When a later start finds a hole in the log, any stamp behind the hole says what must have stood
// before it: that is how damage is told from a torn write at the end. Pebble's own sign, the sync offset in each chunk,
// counts only part of what was written when several writers share a sync, and stays behind by megabytes.
//
// In the log a record of ours begins like this (numbers little-endian):
//
//	sequence 8 | count 4 | kind 1 | length 1 | log 4 | sequence 8 | operations…
//	'--- Pebble's header --''- log data -'---'------ stamp -------'
const (
	stampBytes  = 12
	stampKind   = byte(pebble.InternalKeyKindLogData)
	headBytes   = 12 // of Pebble's batch
	stampOffset = headBytes + 2
)

var emptyStamp [stampBytes]byte

// Reserve makes room for the stamp in an empty *pebble.Batch. The database never sees it: it is in the log only.
func Reserve(b interface {
	LogData(data []byte, _ *pebble.WriteOptions) error
},
) error {
	return b.LogData(emptyStamp[:], nil)
}

// Stamp overwrites the stamp at the front of a batch that is about to be applied. repr
// are the batch's own bytes, as its Repr returns them; they are still the caller's alone.
func (r *Recorder) Stamp(repr []byte) { putStamp(repr[stampOffset:], r.durable.load()) }

func putStamp(dst []byte, w watermark) {
	binary.LittleEndian.PutUint32(dst, uint32(w.log))
	binary.LittleEndian.PutUint64(dst[4:], w.seq)
}

// parseStamp reads the stamp of a record from its first bytes. It is false when the record is not one of ours.
func parseStamp(record []byte) (watermark, bool) {
	if len(record) < stampOffset+stampBytes || record[headBytes] != stampKind || record[headBytes+1] != stampBytes {
		return watermark{}, false
	}
	return watermark{
		log: uint64(binary.LittleEndian.Uint32(record[stampOffset:])),
		seq: binary.LittleEndian.Uint64(record[stampOffset+4:]),
	}, true
}

// watermark is a durable fact about the log: the record that ends before sequence number seq is durable, and so is
// everything before it. It lies in this log file or in a later one. The zero watermark tells nothing.
type watermark struct{ log, seq uint64 }

// progress is the highest watermark so far. One goroutine advances it, many read it.
type progress struct{ log, seq atomic.Uint64 }

// advance raises p. The parts may come from different commits: a higher sequence number never lies in a lower log.
//
// NB: seq before log here, log before seq in load. A reader that sees the new log then also sees at least the sequence
// number that belongs to it; the other mixture, an old log with a new number, claims less and is true as well.
func (p *progress) advance(w watermark) {
	if w.seq > p.seq.Load() {
		p.seq.Store(w.seq)
	}
	if w.log > p.log.Load() {
		p.log.Store(w.log)
	}
}

func (p *progress) load() watermark {
	log := p.log.Load()
	return watermark{log: log, seq: p.seq.Load()}
}
