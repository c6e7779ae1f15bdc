package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Stored is a stored entry taken apart.
type Stored struct {
	Entry data.Value // the JSON, with its lists
	// Brought is what the event brought; with Digest {"sha256", "bytes"} of it, since it was too long.
	Brought         data.Value
	Digest, Attempt bool
	// Input is what else made it (statemachine.Entry.Input); without Kept that is not known, nor Sum, the SumOf of the instance behind it.
	Input []byte
	Kept  bool
	Sum   uint16
}

// Shown is its JSON with what the event brought and, for Builder alone, what else is kept.
func (s *Stored) Shown(dst []byte) []byte {
	kind := byte(0)
	switch {
	case s.Digest:
		kind = digestKind
	case len(s.Brought) > 0:
		kind = wholeKind
	}
	if s.Attempt {
		kind |= attemptBit
	}
	dst = appendWith(dst, s.Entry, s.Brought, kind)
	if s.Kept {
		kept := append(binary.BigEndian.AppendUint16(nil, s.Sum), s.Input...)
		dst = fmt.Appendf(dst[:len(dst)-1], `,"kept":%q}`, base64.StdEncoding.EncodeToString(kept))
	}
	return dst
}

// Walker checks the entries of one instance, the first one first: no number is missing, the chain holds, and each starts
// where the one before ended, save for migrations, behind which nodes have other names.
type Walker struct {
	reader *Reader
	N      uint64 // how many there were
	Chain  statemachine.Chain
	Ends   data.Value // the endState of the last
}

// NewWalker begins at the first entry.
func NewWalker(from Loader, sh key.Shard, id key.ID) *Walker {
	return &Walker{reader: NewReader(from, sh, id)}
}

// Next takes the next entry, and returns ErrDamaged with what is wrong with it. The result aliases stored.
func (w *Walker) Next(n uint64, stored []byte) (s Stored, err error) {
	if n != w.N+1 {
		return s, fmt.Errorf("%w: entry %d is missing", ErrDamaged, w.N+1)
	}
	w.N = n
	if len(stored) < HeadBytes {
		return s, fmt.Errorf("%w: entry %d is too short", ErrDamaged, n)
	}
	if w.Chain = link(w.Chain, stored[HeadBytes:]); w.Chain != statemachine.Chain(stored[1:HeadBytes]) {
		return s, fmt.Errorf("%w: entry %d is not the one that was written after entry %d", ErrDamaged, n, n-1)
	}
	p, err := w.reader.read(n, stored)
	if err != nil {
		return s, err
	}
	s = Stored{Entry: p.entry, Brought: p.brought, Digest: p.kind&^attemptBit == digestKind, Attempt: p.kind&attemptBit != 0, Input: p.input, Kept: p.kept, Sum: p.sum}
	start, _ := p.entry.Lookup("startState")
	end, has := p.entry.Lookup("endState")
	event, _ := p.entry.Lookup("transitionEvent")
	if !has {
		return s, fmt.Errorf("%w: entry %d has no endState", ErrDamaged, n)
	}
	if n > 1 && !bytes.Equal(start, w.Ends) && event.Text() != statemachine.MigrateEvent {
		return s, fmt.Errorf("%w: entry %d starts at %s, and entry %d ended at %s", ErrDamaged, n, start, n-1, w.Ends)
	}
	w.Ends = slices.Clone(end)
	return s, nil
}

// Builder makes the stored form of entries of their JSON, the first one first.
type Builder struct {
	N     uint64
	Chain statemachine.Chain
	End   []statemachine.NodeID // where the last one ends
	By    string                // who made the first one
	// Began and At are the times of the first and the last one.
	Began, At time.Time
	// Of is the definition of the last one, and Misfit why an entry is not one of its. Those before a migration, or a reset to another version,
	// may have another definition.
	Of      *statemachine.Definition
	Misfit  error
	version uint64 // of the last one; 0: it is not known
}

// eventBytesMax has room for the longest event of the service's own, which has the names of a machine and of a node.
const eventBytesMax = 512

// Add takes the JSON of Stored.Shown, and refuses what the service would not have written.
func (b *Builder) Add(shown []byte) (stored []byte, err error) {
	var e struct {
		User            string                `json:"user"`
		StartState      []statemachine.NodeID `json:"startState"`
		TransitionEvent string                `json:"transitionEvent"`
		EndState        []statemachine.NodeID `json:"endState"`
		TS              time.Time             `json:"ts"`
		Data            json.RawMessage       `json:"data"`
		DataDigest      json.RawMessage       `json:"dataDigest"`
		Attempt         bool                  `json:"attempt"`
		Kept            []byte                `json:"kept"`
	}
	if err := data.DecodeObject(shown, &e); err != nil {
		return nil, fmt.Errorf("history entry %d: %w", b.N+1, err)
	}
	entry := statemachine.Entry{
		User: e.User, Start: e.StartState, Event: statemachine.EventName(e.TransitionEvent), End: e.EndState, At: e.TS, Attempt: e.Attempt,
	}
	goesOn := slices.Equal(e.StartState, b.End)
	b.N++
	if b.N > 1 && !goesOn && e.TransitionEvent != statemachine.MigrateEvent {
		return nil, fmt.Errorf("history entry %d: it starts at %v, and the one before ends at %v", b.N, e.StartState, b.End)
	}
	switch {
	case !statemachine.IsIdentifier(e.User):
		return nil, fmt.Errorf("history entry %d: %s cannot be the name of a user", b.N, data.Quote(e.User))
	case len(e.TransitionEvent) > eventBytesMax:
		return nil, fmt.Errorf("history entry %d: transitionEvent has more than %d bytes", b.N, eventBytesMax)
	case e.TS.Before(b.At) || e.TS.Unix() < 0:
		return nil, fmt.Errorf("history entry %d: its time %s is before that of the entry before, or before 1970", b.N, e.TS.Format(time.RFC3339Nano))
	}
	var digest data.Value
	switch {
	case len(e.DataDigest) > 0:
		var of struct {
			SHA256 string `json:"sha256"`
			Bytes  uint64 `json:"bytes"`
		}
		err := data.DecodeObject(e.DataDigest, &of)
		sum, notHex := hex.DecodeString(of.SHA256)
		if err != nil || notHex != nil || len(sum) != sha256.Size || of.Bytes <= DataBytesMax || len(e.Data) > 0 && string(e.Data) != "null" {
			return nil, fmt.Errorf("history entry %d: dataDigest must have sha256 and bytes of data that is not there and has more than %d bytes", b.N, DataBytesMax)
		}
		digest = fmt.Appendf(nil, digestForm, sum, of.Bytes)
	default:
		if len(e.Data) > 0 {
			if entry.Data, err = data.Clean(e.Data); err != nil {
				return nil, fmt.Errorf("history entry %d: data: %w", b.N, err)
			}
			if len(entry.Data) > DataBytesMax {
				return nil, fmt.Errorf("history entry %d: data has %d bytes, and may have %d: leave data out and have dataDigest, the sha256 and bytes of it", b.N, len(entry.Data), DataBytesMax)
			}
		}
	}
	var sum uint16
	if len(e.Kept) > 0 {
		if len(e.Kept) < 2 || len(e.Kept) > 2+DataBytesMax {
			return nil, fmt.Errorf("history entry %d: kept is not what an export has written", b.N)
		}
		sum, entry.Input = binary.BigEndian.Uint16(e.Kept), e.Kept[2:]
	}
	value := complete(entry.AppendJSON(make([]byte, HeadBytes)), &entry, digest, b.N, sum, len(e.Kept) > 0, goesOn)
	event, err := b.explained(&entry, len(e.Kept) > 0)
	if err != nil {
		return nil, fmt.Errorf("history entry %d: kept: %w", b.N, err)
	}
	if err := b.Of.Explains(event, entry.Data, e.EndState); err != nil && b.Misfit == nil {
		b.Misfit = fmt.Errorf("history entry %d: %w", b.N, err)
	}
	b.Chain, b.End, b.At = Seal(value, b.Chain), e.EndState, e.TS
	if b.N == 1 {
		b.By, b.Began = e.User, e.TS
	}
	return value, nil
}

// explained is the event by which the definition explains an entry: that of a migration or a reset is none of its. What was wrong with the
// entries before goes with their version.
func (b *Builder) explained(entry *statemachine.Entry, kept bool) (statemachine.EventName, error) {
	version, _, err := statemachine.ReplayVersion(entry.Input)
	isReset := entry.Event == statemachine.ResetEvent && (version != 0 || !kept)
	switch {
	case entry.Event == statemachine.MigrateEvent, isReset && (version == 0 || version != b.version):
		b.Misfit, b.version = nil, version
		return "", err
	case isReset:
		return "", err
	case version != 0:
		b.version = version
	}
	return entry.Event, err
}
