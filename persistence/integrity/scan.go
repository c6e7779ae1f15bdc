package integrity

import (
	"encoding/binary"
)

// logScan is what reading a whole log file showed.
type logScan struct {
	// end is the offset behind the last whole record.
	end int
	// clean says that the log was closed: a trailer follows the last record.
	clean bool
	// seq is the sequence number behind the last whole record, 0 without one.
	seq uint64
	// hole is the offset of the first bytes that are not a chunk of this log, -1 when there are none. A torn write, the
	// preallocated rest of the file and its earlier life look like that, and so does damage.
	hole int
	// synced is the highest sync offset in chunks behind the hole.
	synced uint64
	// stamp is the highest stamp of the records behind the hole.
	stamp watermark
}

// scanLog reads log file number. It is stricter than Pebble's own reader; see persistence/DESIGN.md, "What the damage
// check reads on its own". It continues after the first hole, byte by byte, because damage does not respect chunks; what
// it finds there decides whether the hole is damage, see [checkLogEnd].
func scanLog(file []byte, number uint64) logScan {
	n := uint32(number)
	s := logScan{hole: -1}
	var record recordHead
	off := 0
	for off < len(file) {
		left := blockEnd(off, len(file)) - off
		if isTrailer(file, off, n) {
			s.clean = !record.open
			if record.open {
				s.hole = off
			}
			return s
		}
		if left < logHeaderBytes && (left < manifestHeaderBytes || zero(file[off:off+left])) {
			off += left // the rest of a block that was too small for a chunk
			continue
		}
		c, ok := logChunk(file, off, n)
		if !ok || !record.add(c) {
			s.hole = off
			s.lookBehind(file, n)
			return s
		}
		off = c.end
		if c.kind.ends() {
			s.end = off
			s.seq = max(s.seq, record.endSeq())
		}
	}
	return s
}

// lookBehind gathers what chunks behind the hole say about the time before. A stamp may stand in two chunks, when a block
// ends within it; the second follows the first without a gap.
func (s *logScan) lookBehind(file []byte, number uint32) {
	var record recordHead
	for off := s.hole + 1; off+logHeaderBytes <= len(file); {
		c, ok := logChunk(file, off, number)
		if !ok {
			record.open = false
			off++
			continue
		}
		s.synced = max(s.synced, c.synced)
		if c.kind.begins() {
			record.open = false
		}
		if record.add(c) {
			if w, ok := parseStamp(record.head); ok && w.seq > s.stamp.seq {
				s.stamp = w
			}
		}
		off = c.end
	}
}

// recordHeadMax is how much of each record is kept. In a log it is the batch's
// header; in a MANIFEST the log number, which stands before everything long.
const recordHeadMax = 256

// recordHead puts a record together out of its chunks, and keeps its beginning.
type recordHead struct {
	open bool // between the first and the last chunk
	head []byte
}

// add takes the next chunk. It is false when the chunk cannot follow.
func (r *recordHead) add(c chunk) bool {
	if c.kind.begins() == r.open {
		return false
	}
	if c.kind.begins() {
		r.head = r.head[:0]
	}
	r.head = append(r.head, c.payload[:min(len(c.payload), recordHeadMax-len(r.head))]...)
	r.open = !c.kind.ends()
	return true
}

// endSeq is the sequence number behind a whole record of the log.
func (r *recordHead) endSeq() uint64 {
	if len(r.head) < headBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(r.head) + uint64(binary.LittleEndian.Uint32(r.head[8:]))
}

// manifestScan is what reading a whole MANIFEST showed.
type manifestScan struct {
	// end is the offset behind the last whole record.
	end int
	// hole is the offset of the first bytes that are not a chunk, -1 when there are none.
	hole int
	// later is the offset of a record that begins behind the hole, -1 without one. Each record is synced before the
	// next is written, so there is none after a torn write.
	later int
	// minLog is the oldest log whose records are not all in tables: this one and newer ones are live.
	minLog uint64
}

// scanManifest reads a MANIFEST from the record that begins at from.
func scanManifest(file []byte, from int) manifestScan {
	s := manifestScan{end: from, hole: -1, later: -1}
	var record recordHead
	off := from
	for off < len(file) {
		if left := blockEnd(off, len(file)) - off; left < manifestHeaderBytes {
			off += left
			continue
		}
		c, ok := manifestChunk(file, off)
		if !ok || !record.add(c) {
			s.hole = off
			s.later = laterRecord(file, off+1)
			return s
		}
		off = c.end
		if c.kind.ends() {
			s.end = off
			if n, ok := minUnflushedLog(record.head); ok {
				s.minLog = n
			}
		}
	}
	return s
}

// laterRecord returns the offset of the first chunk at or behind off that begins a record, or -1. NB: not just any
// chunk: a torn write of one record over two blocks can leave its last chunk without its first.
func laterRecord(file []byte, off int) int {
	for off+manifestHeaderBytes <= len(file) {
		c, ok := manifestChunk(file, off)
		if !ok {
			off++
			continue
		}
		if c.kind.begins() {
			return off
		}
		off = c.end
	}
	return -1
}

// minUnflushedLog reads the log number of a version edit, when it has one. An edit is a row of tags and values; the
// ones looked at come first. The package of Pebble's that reads version edits is internal.
func minUnflushedLog(edit []byte) (uint64, bool) {
	const (
		tagComparer   = 1
		tagMinLog     = 2
		tagOldPrevLog = 9
	)
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(edit)
		if n <= 0 {
			return 0, false
		}
		edit = edit[n:]
		return v, true
	}
	for {
		tag, ok := number()
		if !ok {
			return 0, false
		}
		value, ok := number()
		switch {
		case !ok:
			return 0, false
		case tag == tagMinLog:
			return value, true
		case tag == tagComparer:
			if uint64(len(edit)) < value {
				return 0, false
			}
			edit = edit[value:]
		case tag != tagOldPrevLog:
			return 0, false
		}
	}
}
