// Package instanceid is the text of instance ids, and draws new ones. An id is a ULID: its first part is a time, so a
// list by id is a list by creation.
package instanceid

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/persistence/key"
)

// Parse reads the one canonical spelling of an instance's id.
func Parse(s string) (key.ID, bool) {
	u, err := ulid.ParseStrict(s)
	if err != nil || u.String() != s {
		return key.ID{}, false
	}
	return key.ID(u), true
}

// Text is the spelling that Parse reads.
func Text(id key.ID) string { return ulid.ULID(id).String() }

// Generator draws ids (gateway/INTERFACE.md, "Instance identifiers") that rise also within a millisecond. They are not
// secrets: rights protect instances, not the difficulty of guessing.
type Generator struct{ entropy *ulid.LockedMonotonicReader }

// NewGenerator returns a generator of its own sequence.
func NewGenerator() Generator {
	return Generator{&ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}}
}

// Draw returns an id for an instance created now.
func (g Generator) Draw(now time.Time) key.ID {
	at := uint64(max(now.UnixMilli(), 0))
	for {
		id, err := ulid.New(at, g.entropy)
		if err == nil {
			return key.ID(id)
		}
		at++ // the millisecond is used up
	}
}

// DrawWhere draws until ok.
func (g Generator) DrawWhere(now time.Time, ok func(key.ID) bool) key.ID {
	for {
		if id := g.Draw(now); ok(id) {
			return id
		}
	}
}

// Numbered is an id for an instance created now that is the same each time, for a number that no other has.
func Numbered(now time.Time, number uint64) key.ID {
	var id ulid.ULID
	_ = id.SetTime(uint64(max(now.UnixMilli(), 0)))
	binary.BigEndian.PutUint64(id[8:], number)
	return key.ID(id)
}

// PartText names something of an instance that came with one of its history entries: INSTANCE-SEQUENCE-NUMBER.
func PartText(id key.ID, sequence uint64, number uint32) string {
	text := append(make([]byte, 0, 64), Text(id)...)
	text = strconv.AppendUint(append(text, '-'), sequence, 10)
	return string(strconv.AppendUint(append(text, '-'), uint64(number), 10))
}

// ParsePart reads the one spelling that PartText writes.
func ParsePart(s string) (id key.ID, sequence uint64, number uint32, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return id, 0, 0, false
	}
	id, ok = Parse(parts[0])
	sequence, err := strconv.ParseUint(parts[1], 10, 64)
	place, err2 := strconv.ParseUint(parts[2], 10, 32)
	number = uint32(place)
	return id, sequence, number, ok && err == nil && err2 == nil && PartText(id, sequence, number) == s
}
