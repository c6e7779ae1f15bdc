// Package history is the stored form of an instance's history. An entry is
//
//	format(1) chain(16) JSON brought changes length of the changes(4) length of the JSON(4) kind(1)
//
// with what its kind says that it has: most have the JSON alone, and no lengths. The chain is a hash over all entries up
// to this one, so that a missing or foreign entry shows. An entry of an instance with many machines is stored folded: its
// JSON with empty lists, and the places of the lists that differ. The lists are made again from those of the entry before
// or behind, since each entry starts where the one before ended. The changes are, for each, how many names stay, then the
// names that go and those that come, each list with its length.
package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/actors/internal/breaks"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Seal completes a stored entry, whose JSON follows HeadBytes that are free.
// before is the chain up to the entry; Seal returns the one with it.
func Seal(stored []byte, before statemachine.Chain) statemachine.Chain {
	chain := link(before, stored[HeadBytes:])
	copy(stored[1:], chain[:])
	return chain
}

func link(chain statemachine.Chain, entry []byte) statemachine.Chain {
	h := sha256.New()
	h.Write(chain[:])
	h.Write(entry)
	var sum [sha256.Size]byte
	return statemachine.Chain(h.Sum(sum[:0])[:16])
}

// pageBytesMax ends a page early, so that it fits into memory.
const pageBytesMax = 8 << 20

// Page is Reader.Page of a new reader.
func Page(store *persistence.Store, sh key.Shard, id key.ID, first, last uint64, withData bool) (page []byte, end uint64, err error) {
	return NewReader(store, sh, id).Page(first, last, withData)
}

// Page returns the JSON of the entries from first to last, joined by commas, and the number of the last one in it,
// which is another one when the page would be too large. last may be below first: then they come newest first.
func (r *Reader) Page(first, last uint64, withData bool) (page []byte, end uint64, err error) {
	pauses := breaks.New(loadFree, loadRest, 1)
	for end = first; ; end = next(end, last) {
		pauses.Take(nil)
		stored, err := r.from.Load(key.Entry(nil, r.sh, r.id, end))
		if errors.Is(err, persistence.ErrNotFound) {
			err = persistence.ErrCorrupt
		}
		if err != nil {
			return nil, 0, fmt.Errorf("history entry %d: %w", end, err)
		}
		p, err := r.read(end, stored)
		if err != nil {
			return nil, 0, err
		}
		if !withData {
			p.kind = 0
		}
		if len(page) > 0 {
			page = append(page, ',')
		}
		page = appendWith(page, p.entry, p.brought, p.kind)
		if end == last || len(page) >= pageBytesMax {
			return page, end, nil
		}
	}
}

func next(n, last uint64) uint64 {
	if last < n {
		return n - 1
	}
	return n + 1
}

// AnswerBytesMax is the most that an answer has of a history: the newest part.
const AnswerBytesMax = 16 << 20

// Joined is the JSON of entries, joined by commas, that fits into an answer.
type Joined struct {
	Text []byte
	From uint64 // the number of the first entry in it; 1: it has all, or there is none
}

// With returns it with one entry more. The text of j is not changed, though what is behind it may be.
func (j Joined) With(entry []byte) Joined { return j.with(entry, AnswerBytesMax) }

func (j Joined) with(entry []byte, most int) Joined {
	if len(j.Text) > 0 {
		j.Text = append(j.Text, ',')
	}
	j.Text, j.From = append(j.Text, entry...), max(j.From, 1)
	for len(j.Text) > most {
		first := firstEntry(j.Text)
		if first == len(j.Text) {
			break // there is no other one
		}
		j.Text, j.From = j.Text[first+1:], j.From+1
	}
	return j
}

func firstEntry(joined []byte) int {
	depth, quoted := 0, false
	for at := 0; at < len(joined); at++ {
		switch c := joined[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(joined)
}

const (
	loadFree = 5 * time.Millisecond // how long a history is read without a break: 5,000 entries
	loadRest = 2                    // how many times as long the breaks are behind it
)

var errEnough = errors.New("seen enough")

// Load reads the entries 1 to sequence of an instance, joined by commas, and their chain. ErrDamaged: one is missing or
// not what was stored.
func Load(store *persistence.Store, sh key.Shard, id key.ID, sequence uint64) (joined Joined, chain statemachine.Chain, err error) {
	var seen uint64
	kept := newest{first: 1, most: AnswerBytesMax, breaks: breaks.New(loadFree, loadRest, 16)}
	err = store.Scan(key.EntryPrefix(nil, sh, id), func(key, stored []byte) error {
		if seen == sequence {
			return errEnough
		}
		seen++
		if len(stored) < HeadBytes || binary.BigEndian.Uint64(key[len(key)-8:]) != seen {
			return fmt.Errorf("%w: entry %d", ErrDamaged, seen)
		}
		if chain = link(chain, stored[HeadBytes:]); chain != statemachine.Chain(stored[1:HeadBytes]) {
			return fmt.Errorf("%w: entry %d", ErrDamaged, seen)
		}
		p, ok := split(stored)
		if !ok {
			return damagedEntry(seen)
		}
		kept.add(p)
		kept.breaks.Take(nil)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return Joined{}, chain, err
	case seen != sequence:
		return Joined{}, chain, fmt.Errorf("%w: entry %d is missing", ErrDamaged, seen+1)
	}
	joined, err = kept.join(NewReader(store, sh, id))
	return joined, chain, err
}

// Folded ones are unfolded when it is known which of them it has, since they are many times as long then.
type newest struct {
	text    []byte // each entry as stored, with what it changes if it is folded, and a comma
	entries []keptEntry
	first   uint64 // number of the first of them
	most    int    // bytes of an answer
	whole   int    // length of the last entry that was not folded
	total   int    // sum of about
	folds   bool
	breaks  *breaks.Breaks
}

type keptEntry struct {
	length, changes int // of the JSON, and of the changes behind it
	about           int // of the JSON when it is unfolded: half of it where entries are alike
	folded          bool
}

func (e keptEntry) stored() int { return e.length + e.changes + 1 }

func (k *newest) add(p parts) {
	e := keptEntry{length: len(p.entry), changes: len(p.changes), about: len(p.entry) + len(p.changes) + 1, folded: p.folded}
	if p.folded {
		e.about = max(e.about, k.whole/2) // NB: so that as much is kept as an answer can have, and not all of a long history
		k.folds = true
	} else {
		k.whole = len(p.entry)
	}
	k.text = append(append(append(k.text, p.entry...), p.changes...), ',')
	k.entries = append(k.entries, e)
	for k.total += e.about; len(k.entries) > 1 && k.total-k.entries[0].about-1 >= k.most; { // what is behind is enough
		k.dropFirst()
	}
}

func (k *newest) dropFirst() {
	e := k.entries[0]
	k.text, k.entries, k.first, k.total = k.text[e.stored():], k.entries[1:], k.first+1, k.total-e.about
}

func (k *newest) join(r *Reader) (Joined, error) {
	if !k.folds {
		for len(k.entries) > 1 && len(k.text)-1 > k.most {
			k.dropFirst()
		}
		return Joined{k.text[:max(0, len(k.text)-1)], k.first}, nil
	}
	out := backward{room: make([]byte, min(2*k.total, k.most))}
	out.at = len(out.room)
	n, rest := k.first+uint64(len(k.entries)), k.text
	for _, e := range slices.Backward(k.entries) {
		at := len(rest) - e.stored()
		p := parts{entry: rest[at : at+e.length], changes: rest[at+e.length : at+e.length+e.changes], folded: e.folded}
		p, err := r.unfold(n-1, p)
		if err != nil {
			return Joined{}, err
		}
		length := len(out.text())
		if length > 0 && length+1+len(p.entry) > k.most {
			break
		}
		if length > 0 {
			out.put([]byte{','})
		}
		out.put(p.entry)
		n, rest = n-1, rest[:at]
		k.breaks.Take(nil)
	}
	text := out.text()
	if out.at > len(text) { // it may be kept in memory
		text = bytes.Clone(text)
	}
	return Joined{text, n}, nil
}

// backward is a text that grows at its beginning.
type backward struct {
	room []byte
	at   int // where it begins
}

func (b *backward) text() []byte { return b.room[b.at:] }

func (b *backward) put(text []byte) {
	if len(text) > b.at {
		more := len(b.room) + len(text)
		b.room, b.at = append(make([]byte, more, more+len(b.room)), b.room...), b.at+more
	}
	b.at -= len(text)
	copy(b.room[b.at:], text)
}

// Loader reads rows: a store, or a snapshot of one.
type Loader interface {
	Load(key []byte) ([]byte, error)
}

// Reader reads entries of one instance.
type Reader struct {
	from       Loader
	sh         key.Shard
	id         key.ID
	at         uint64 // the folded entry that was read last, 0 for none, with its lists
	start, end []statemachine.NodeID
}

// NewReader returns a reader of an instance's entries.
func NewReader(from Loader, sh key.Shard, id key.ID) *Reader {
	return &Reader{from: from, sh: sh, id: id}
}

// Entry returns the JSON of a stored entry, which it may alias. It does not check the chain.
func (r *Reader) Entry(n uint64, stored []byte) (data.Value, error) {
	p, err := r.read(n, stored)
	return p.entry, err
}

// EntryWithData is Entry with what its event brought.
func (r *Reader) EntryWithData(n uint64, stored []byte) (data.Value, error) {
	p, err := r.read(n, stored)
	if err != nil || p.kind == 0 {
		return p.entry, err
	}
	return appendWith(nil, p.entry, p.brought, p.kind), nil
}

// VersionAt is the version that the instance had behind entry n; 0 when the entries do not say, or when more than most had to be read.
func (r *Reader) VersionAt(n uint64, most int) (uint64, error) {
	for ; n > 0 && most > 0; most-- {
		p, err := r.load(n)
		if err != nil {
			return 0, err
		}
		if version, _, err := statemachine.ReplayVersion(p.input); err != nil || version != 0 {
			return version, err
		}
		event, _ := p.entry.Lookup("transitionEvent")
		var moved struct{ To uint64 }
		if n--; p.kept || json.Unmarshal(p.brought, &moved) != nil {
			continue
		}
		switch event.Text() { // more made it than an entry keeps
		case statemachine.MigrateEvent:
			return moved.To, nil
		case statemachine.ResetEvent:
			n = min(n, moved.To)
		}
	}
	return 0, nil
}

func (r *Reader) load(n uint64) (parts, error) {
	stored, err := r.from.Load(key.Entry(nil, r.sh, r.id, n))
	if errors.Is(err, persistence.ErrNotFound) {
		err = persistence.ErrCorrupt
	}
	if err != nil {
		return parts{}, fmt.Errorf("history entry %d: %w", n, err)
	}
	p, ok := split(stored)
	if !ok {
		return parts{}, damagedEntry(n)
	}
	return p, nil
}

func damagedEntry(n uint64) error {
	return fmt.Errorf("history entry %d: %w", n, errors.Join(ErrDamaged, persistence.ErrCorrupt))
}

func (r *Reader) read(n uint64, stored []byte) (p parts, err error) {
	p, ok := split(stored)
	if !ok {
		return p, damagedEntry(n)
	}
	return r.unfold(n, p)
}

func (r *Reader) unfold(n uint64, p parts) (_ parts, err error) {
	if !p.folded {
		return p, nil
	}
	ok := false
	switch {
	case r.at != 0 && n == r.at+1:
		r.start = r.end
		r.end, ok = changed(r.start, p.changes, false)
	case r.at != 0 && n == r.at-1:
		r.end = r.start
		r.start, ok = changed(r.end, p.changes, true)
	default:
		if r.start, err = r.before(n); err != nil {
			return p, err
		}
		r.end, ok = changed(r.start, p.changes, false)
	}
	if r.at = n; ok {
		p.entry, ok = unfold(p.entry, r.start, r.end)
	}
	if !ok {
		r.at = 0
		return p, damagedEntry(n)
	}
	return p, nil
}

func (r *Reader) before(n uint64) (end []statemachine.NodeID, err error) {
	var behind []parts // folded ones, newest first
	for m := n - 1; m > 0; m-- {
		p, err := r.load(m)
		if err != nil {
			return nil, err
		}
		if p.folded {
			behind = append(behind, p)
			continue
		}
		list, _ := p.entry.Lookup("endState")
		for _, name := range list.Elements() {
			end = append(end, statemachine.NodeID(name.Text()))
		}
		for _, p := range slices.Backward(behind) {
			ok := false
			if end, ok = changed(end, p.changes, false); !ok {
				return nil, damagedEntry(n)
			}
		}
		return end, nil
	}
	return nil, damagedEntry(n)
}
