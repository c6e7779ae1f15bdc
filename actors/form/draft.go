package form

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Draft is what a user has written and not submitted. It is not part of the instance's state, and as durable.
type Draft struct {
	// Revision rises with every change, also after a draft was dropped, unless the clock was set back while the
	// instance slept.
	Revision uint64
	SavedAt  int64 // Unix milliseconds
	// Template is the content of the template that the draft was written for. Zero: it is not known.
	Template Digest
	Data     data.Value
}

// Digest stands for what a template asks.
type Digest [16]byte

// DigestOf returns the digest of a template's content.
func DigestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest(sum[:len(Digest{})])
}

// String returns the digest for outside; empty for zero.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return hex.EncodeToString(d[:])
}

// ParseDigest reads what String wrote.
func ParseDigest(text string) (d Digest, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) || Digest(b).String() != text {
		return Digest{}, false
	}
	return Digest(b), true
}

// DraftCondition is what a request requires of the present draft. The zero value requires nothing.
type DraftCondition struct {
	// IfMatch lists the revisions that the present draft may have. Nil allows any, and no draft unless MustExist is
	// set.
	IfMatch   []uint64
	MustExist bool
	IfAbsent  bool // IfAbsent requires that there is none yet
}

// Any says whether there is any condition.
func (c *DraftCondition) Any() bool { return c.IfMatch != nil || c.MustExist || c.IfAbsent }

// Holds looks at the present draft, which is nil when there is none.
func (c *DraftCondition) Holds(present *Draft) bool {
	if present == nil {
		return c.IfMatch == nil && !c.MustExist
	}
	return !c.IfAbsent && (c.IfMatch == nil || slices.Contains(c.IfMatch, present.Revision))
}

const draftFormat = 1

// Append appends the stored draft: format(1) revision saved template(16) data.
func (d *Draft) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, draftFormat), d.Revision)
	dst = binary.AppendVarint(dst, d.SavedAt)
	dst = append(dst, d.Template[:]...)
	return append(dst, d.Data...)
}

func parseDraft(b []byte) (*Draft, error) {
	r := packed.NewReader(b)
	format := r.Byte()
	d := &Draft{Revision: r.Uvarint(), SavedAt: r.Varint()}
	copy(d.Template[:], r.Take(len(d.Template)))
	var err error
	if d.Data, err = data.Clean(r.Rest()); err != nil || format != draftFormat || r.Failed() || d.Data.Kind() != data.Object {
		return nil, failure.Errorf(failure.ErrExecution, "stored draft")
	}
	return d, nil
}

// LoadDraft returns the draft under a key; nil when there is none, or when it was kept at after or earlier, in Unix
// milliseconds. The errors are those of package failure.
func LoadDraft(store *persistence.Store, key []byte, after int64) (*Draft, error) {
	value, err := store.Load(key)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	d, err := parseDraft(value)
	if err != nil || d.SavedAt <= after {
		return nil, err
	}
	return d, nil
}
