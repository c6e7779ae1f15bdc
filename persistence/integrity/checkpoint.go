package integrity

import (
	"errors"
	"fmt"
	"strings"

	"troupe/persistence/internal/file"
)

// CheckpointName is the name of the integrity checkpoint: a file beside the store's that says what was durable at some
// earlier moment. It may be behind the store, never ahead of it: each line is made durable in the store's files before
// it is written here. So everything it says must still be true of every later state of an undamaged store, after any
// crash.
//
//	troupe witness
//	clean false owner 8d5e…                 whether the store was closed; the process that wrote this, a random text
//	manifest MANIFEST-000012 4711 9a8b7c6d  begins with these many bytes of this checksum
//	proof 14 20031                          the durability watermark: log and sequence number
//	log 14 33554432                         has this size; gone only when its records are in tables
//	table 13 8192 1a2b3c4d                  size, and checksum of its last 4 KiB
//	crc 5f3a2b1c
//
// What it shows when the store does not fit: a MANIFEST that is shorter, older or another; a log that is missing or
// ends too early, whatever its checksums say; tables that changed places. What it cannot show: that the whole
// directory, checkpoint included, was replaced by an older copy.
const CheckpointName = "WITNESS"

// checkpoint is what the file says.
type checkpoint struct {
	clean         bool
	owner         string // of the process that wrote it
	manifest      string
	manifestBytes int64
	manifestSum   uint32
	watermark     watermark
	logs          []logSize
	tables        []tableSum
}

// logSize is a log that exists and the size that it cannot be smaller than.
type logSize struct {
	number uint64
	bytes  int64
}

// tableSum tells one table from every other.
type tableSum struct {
	number uint64
	size   int64
	tail   uint32 // CRC-32C of the last tailBytes
}

// tailBytes is how much of a table's end is summed: index and properties, which are different in different tables.
const tailBytes = 4 << 10

func (c *checkpoint) encode() []byte {
	b := fmt.Appendf(nil, "troupe witness\nclean %t owner %s\nmanifest %s %d %08x\nproof %d %d\n",
		c.clean, c.owner, c.manifest, c.manifestBytes, c.manifestSum, c.watermark.log, c.watermark.seq)
	for _, l := range c.logs {
		b = fmt.Appendf(b, "log %d %d\n", l.number, l.bytes)
	}
	for _, t := range c.tables {
		b = fmt.Appendf(b, "table %d %d %08x\n", t.number, t.size, t.tail)
	}
	return file.Seal(b)
}

func parseCheckpoint(data []byte) (*checkpoint, error) {
	text, ok := file.Unseal(data)
	if !ok {
		return nil, errors.New("its checksum does not fit")
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 4 || lines[0] != "troupe witness" {
		return nil, errors.New("it is not the WITNESS file of a store")
	}
	c := new(checkpoint)
	if _, err := fmt.Sscanf(lines[1], "clean %t owner %s", &c.clean, &c.owner); err != nil {
		return nil, fmt.Errorf("line 2: %w", err)
	}
	if _, err := fmt.Sscanf(lines[2], "manifest %s %d %x", &c.manifest, &c.manifestBytes, &c.manifestSum); err != nil {
		return nil, fmt.Errorf("line 3: %w", err)
	}
	if _, err := fmt.Sscanf(lines[3], "proof %d %d", &c.watermark.log, &c.watermark.seq); err != nil {
		return nil, fmt.Errorf("line 4: %w", err)
	}
	for i, line := range lines[4:] {
		var l logSize
		var t tableSum
		if _, err := fmt.Sscanf(line, "log %d %d", &l.number, &l.bytes); err == nil {
			c.logs = append(c.logs, l)
		} else if _, err := fmt.Sscanf(line, "table %d %d %x", &t.number, &t.size, &t.tail); err == nil {
			c.tables = append(c.tables, t)
		} else {
			return nil, fmt.Errorf("line %d is unknown", i+5)
		}
	}
	return c, nil
}
