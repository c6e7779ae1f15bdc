package integrity

import (
	"encoding/binary"
	"hash/crc32"
)

// Pebble writes its log and its MANIFEST as chunks in blocks of 32 KiB. A record is one full chunk, or a first, any
// number of middle and a last one. A chunk never crosses a block's end; what is left there is zero. (Little-endian.)
//
//	MANIFEST:  crc 4 | size 2 | kind 1 | payload
//	log:       crc 4 | size 2 | kind 1 | log number 4 | synced offset 8 | payload
//
// The checksum covers kind to payload. The number in a log's chunks tells them from those of the file's earlier life:
// logs are used again under a new number. A closed log ends with a header of zero checksum and size, kind 5 and the
// number plus one.
const (
	blockBytes          = 32 << 10
	manifestHeaderBytes = 7
	logHeaderBytes      = 19
	trailerBytes        = 11
	trailerKind         = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkKind is the place of a chunk in its record.
type chunkKind byte

const (
	fullChunk chunkKind = iota + 1
	firstChunk
	middleChunk
	lastChunk
)

// begins says whether a record starts with such a chunk.
func (k chunkKind) begins() bool { return k == fullChunk || k == firstChunk }

// ends says whether a record is whole after such a chunk.
func (k chunkKind) ends() bool { return k == fullChunk || k == lastChunk }

// chunk is one chunk whose checksum is right.
type chunk struct {
	kind    chunkKind
	synced  uint64 // log only: the file was synced at least up to here
	payload []byte // aliases the file's bytes
	end     int    // offset of what follows
}

// blockEnd is where the block around off ends in a file of size bytes.
func blockEnd(off, size int) int { return min((off/blockBytes+1)*blockBytes, size) }

// manifestChunk reads the chunk of a MANIFEST at off.
func manifestChunk(file []byte, off int) (chunk, bool) {
	end := blockEnd(off, len(file))
	if off+manifestHeaderBytes > end {
		return chunk{}, false
	}
	kind := chunkKind(file[off+6])
	if kind < fullChunk || kind > lastChunk {
		return chunk{}, false
	}
	return checkedChunk(file[off:end], kind, off, manifestHeaderBytes)
}

// logChunk reads the chunk of log file number at off.
func logChunk(file []byte, off int, number uint32) (chunk, bool) {
	end := blockEnd(off, len(file))
	if off+logHeaderBytes > end {
		return chunk{}, false
	}
	kind := chunkKind(file[off+6] - 8) // 9 to 12 in the file
	if kind < fullChunk || kind > lastChunk || binary.LittleEndian.Uint32(file[off+7:]) != number {
		return chunk{}, false
	}
	c, ok := checkedChunk(file[off:end], kind, off, logHeaderBytes)
	c.synced = binary.LittleEndian.Uint64(file[off+11:])
	return c, ok
}

// checkedChunk cuts the chunk at the front of block, which stands at off in the
// file, when its size and checksum are right.
func checkedChunk(block []byte, kind chunkKind, off, header int) (chunk, bool) {
	size := header + int(binary.LittleEndian.Uint16(block[4:]))
	if size > len(block) || maskedSum(block[6:size]) != binary.LittleEndian.Uint32(block) {
		return chunk{}, false
	}
	return chunk{kind: kind, payload: block[header:size], end: off + size}, true
}

// maskedSum is LevelDB's checksum: CRC-32C, turned so that checksums stored in checksummed data do no harm.
func maskedSum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// isTrailer says whether a closed log ends at off.
func isTrailer(file []byte, off int, number uint32) bool {
	if off+trailerBytes > blockEnd(off, len(file)) {
		return false
	}
	b := file[off:]
	return zero(b[:6]) && b[6] == trailerKind && binary.LittleEndian.Uint32(b[7:]) == number+1
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
