package form

import (
	"encoding/binary"
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine/data"
)

// Draft is what a user has written and not sent. It belongs to no state of the
// instance, but is as durable.
type Draft struct {
	// Revision is higher with every change, also over drafts that are gone, unless
	// the clock was set back while the instance slept.
	Revision uint64
	SavedAt  int64 // Unix milliseconds
	Data     data.Value
}

// DraftCondition is what a request demands of the present draft. The zero value
// demands nothing.
type DraftCondition struct {
	// IfMatch lists the revisions that the present draft may have; nil means
	// any, also that there is none, unless MustExist demands one.
	IfMatch   []uint64
	MustExist bool
	// IfAbsent demands that there is none yet.
	IfAbsent bool
}

// Demands says whether there is any demand.
func (c *DraftCondition) Demands() bool { return c.IfMatch != nil || c.MustExist || c.IfAbsent }

// Holds looks at the present draft, which is nil when there is none.
func (c *DraftCondition) Holds(present *Draft) bool {
	if present == nil {
		return c.IfMatch == nil && !c.MustExist
	}
	return !c.IfAbsent && (c.IfMatch == nil || slices.Contains(c.IfMatch, present.Revision))
}

const draftFormat = 1

// Append appends the stored draft: format(1) revision saved data.
func (d *Draft) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, draftFormat), d.Revision)
	return append(binary.AppendVarint(dst, d.SavedAt), d.Data...)
}

// parseDraft reads what Append wrote; its data aliases b.
func parseDraft(b []byte) (*Draft, error) {
	damaged := failure.Errorf(failure.ErrExecution, "stored draft")
	if len(b) == 0 || b[0] != draftFormat {
		return nil, damaged
	}
	d := &Draft{}
	b, n := b[1:], 0
	if d.Revision, n = binary.Uvarint(b); n <= 0 {
		return nil, damaged
	}
	b = b[n:]
	if d.SavedAt, n = binary.Varint(b); n <= 0 {
		return nil, damaged
	}
	var err error
	if d.Data, err = data.Clean(b[n:]); err != nil || d.Data.Kind() != data.Object {
		return nil, damaged
	}
	return d, nil
}

// LoadDraft returns a user's draft for the form of an instance; nil when there is
// none. One from before the form left its start is none: what was submitted since is
// newer. The errors are those of package failure.
func (f *Form) LoadDraft(store *persistence.Store, sh persistence.Shard, id persistence.ID, user identity.UserID) (*Draft, error) {
	value, err := store.Load(persistence.DraftKey(nil, sh, id, string(user)))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	d, err := parseDraft(value)
	if err != nil || d.SavedAt <= f.LeftAt {
		return nil, err
	}
	return d, nil
}
