package replica

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// cacheBytesMax is how much of the end of a log is kept in memory, for followers that get it and for the state, which
// applies it.
const cacheBytesMax = 1 << 20

// raftLog is the log of a group in the store, with the term and the vote: raft.Storage. What was appended counts as
// part of it before it is safe; Raft knows what is.
//
// The key of an entry is the prefix, 'l' and its index; its value is term (8 bytes), type (1) and data. 'h' has term and
// vote, 'b' the entry behind which the log begins, with its term, 'k' the last entry that was known to be confirmed when
// the last change of the members was written; 8 bytes each. 'c' is there while a copy of the shard is put in place.
type raftLog struct {
	store  Store
	prefix []byte
	shown  func() (position, members) // how far the rows are that readers see

	mu struct {
		sync.Mutex
		hard        [2]uint64 // term and vote, as they were written last
		commit      uint64    // the last entry that Raft has called confirmed, as far as it had to say so
		begin       raftEntry // behind which the log begins
		last        uint64
		bytes       int64       // of all entries
		sizes       []uint32    // of the entries behind begin
		terms       []raftEntry // the first entry of each term behind begin
		cached      []*raftpb.Entry
		cachedBytes int
	}
}

type raftEntry struct{ index, term uint64 }

const entryHeadBytes = 8 + 1

// openLog reads what there is of a log.
func openLog(store Store, prefix []byte, shown func() (position, members)) (*raftLog, error) {
	l := &raftLog{store: store, prefix: prefix, shown: shown}
	hard, err := l.loadPair('h')
	if err != nil {
		return nil, err
	}
	begin, err := l.loadPair('b')
	if err != nil {
		return nil, err
	}
	known, err := store.Load(l.rowKey('k'))
	if err != nil {
		return nil, err
	}
	if len(known) == 8 {
		l.mu.commit = binary.BigEndian.Uint64(known)
	}
	l.mu.hard = hard
	l.mu.begin = raftEntry{begin[0], begin[1]}
	l.mu.last = begin[0]
	err = store.Scan(l.key(0), l.end(), func(key, value []byte) error {
		if len(key) != len(prefix)+1+8 || len(value) < entryHeadBytes {
			return fmt.Errorf("%w: entry %x", ErrDamaged, key)
		}
		index := binary.BigEndian.Uint64(key[len(prefix)+1:])
		if index != l.mu.last+1 {
			return fmt.Errorf("%w: entry %d of the log follows entry %d", ErrDamaged, index, l.mu.last)
		}
		l.addLocked(index, binary.BigEndian.Uint64(value), len(value))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, l.join()
}

// join checks that the log and the rows belong together. They do not when this node had begun to put a copy of the rows
// in place: then the log begins behind that.
func (l *raftLog) join() error {
	at, _ := l.shown()
	copying, err := l.store.Load(l.rowKey('c'))
	if err != nil {
		return err
	}
	term, err := l.Term(at.applied)
	switch {
	case l.mu.hard[0] == 0 && (at.applied > 0 || l.mu.last > 0):
		return fmt.Errorf("%w: its term and vote are missing", ErrDamaged)
	case err == nil && (term == at.term || at.applied == 0 && l.mu.begin.index == 0):
		if copying == nil {
			return nil
		}
		return l.store.Write(Synced, func(b Batch) { b.DeleteRange(l.rowKey('c'), l.rowKey('c'+1)) }) // that copy was given up
	case copying == nil:
		return fmt.Errorf("%w: it is at entry %d of term %d, and the log has those from %d up to %d", ErrDamaged, at.applied, at.term, l.mu.begin.index+1, l.mu.last)
	}
	return l.store.Write(Synced, func(b Batch) { l.restart(b, raftEntry{at.applied, at.term}) })
}

func (l *raftLog) rowKey(row byte) []byte {
	return append(l.prefix[:len(l.prefix):len(l.prefix)], row)
}

func (l *raftLog) key(index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(append(make([]byte, 0, len(l.prefix)+9), l.prefix...), 'l'), index)
}

// end is behind all entries.
func (l *raftLog) end() []byte { return l.rowKey('l' + 1) }

// loadPair reads a row of two numbers.
func (l *raftLog) loadPair(row byte) (pair [2]uint64, err error) {
	value, err := l.store.Load(l.rowKey(row))
	if err != nil || value == nil {
		return pair, err
	}
	if len(value) != 16 {
		return pair, fmt.Errorf("%w: row %c of the log is of %d bytes", ErrDamaged, row, len(value))
	}
	return [2]uint64{binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:])}, nil
}

func (l *raftLog) setPair(b Batch, row byte, first, second uint64) {
	b.Set(l.rowKey(row), binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, first), second))
}

func (l *raftLog) addLocked(index, term uint64, size int) {
	l.mu.last = index
	l.mu.sizes = append(l.mu.sizes, uint32(size))
	l.mu.bytes += int64(size)
	if n := len(l.mu.terms); n == 0 && term != l.mu.begin.term || n > 0 && l.mu.terms[n-1].term != term {
		l.mu.terms = append(l.mu.terms, raftEntry{index, term})
	}
}

// InitialState implements raft.Storage.
func (l *raftLog) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	at, of := l.shown()
	l.mu.Lock()
	defer l.mu.Unlock()
	hard := l.mu.hard
	if hard == ([2]uint64{}) {
		return nil, of.confState(), nil
	}
	commit := min(max(at.applied, l.mu.commit), l.mu.last) // NB: more may be confirmed
	return &raftpb.HardState{Term: new(hard[0]), Vote: new(hard[1]), Commit: new(commit)}, of.confState(), nil
}

// FirstIndex implements raft.Storage.
func (l *raftLog) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.begin.index + 1, nil
}

// LastIndex implements raft.Storage.
func (l *raftLog) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.last, nil
}

// Term implements raft.Storage.
func (l *raftLog) Term(index uint64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case index < l.mu.begin.index:
		return 0, raft.ErrCompacted
	case index > l.mu.last:
		return 0, raft.ErrUnavailable
	}
	n := sort.Search(len(l.mu.terms), func(i int) bool { return l.mu.terms[i].index > index })
	if n == 0 {
		return l.mu.begin.term, nil
	}
	return l.mu.terms[n-1].term, nil
}

// Entries implements raft.Storage.
func (l *raftLog) Entries(from, to, bytesMax uint64) (entries []*raftpb.Entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case from <= l.mu.begin.index:
		return nil, raft.ErrCompacted
	case to > l.mu.last+1:
		return nil, raft.ErrUnavailable
	}
	bytes := uint64(0)
	for index := from; index < to; index++ {
		if bytes += uint64(l.mu.sizes[index-l.mu.begin.index-1]); len(entries) > 0 && bytes > bytesMax {
			break
		}
		e, err := l.entryLocked(index)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (l *raftLog) entryLocked(index uint64) (*raftpb.Entry, error) {
	if n := l.mu.last - index; n < uint64(len(l.mu.cached)) {
		return l.mu.cached[len(l.mu.cached)-1-int(n)], nil
	}
	value, err := l.store.Load(l.key(index))
	if err != nil {
		return nil, err
	}
	if len(value) < entryHeadBytes {
		return nil, fmt.Errorf("%w: entry %d of the log", ErrDamaged, index)
	}
	e := &raftpb.Entry{Index: new(index), Term: new(binary.BigEndian.Uint64(value)), Type: raftpb.EntryType(value[8]).Enum()}
	if len(value) > entryHeadBytes {
		e.Data = value[entryHeadBytes:]
	}
	return e, nil
}

// Snapshot implements raft.Storage: the rows as they are now, without the rows.
func (l *raftLog) Snapshot() (*raftpb.Snapshot, error) {
	return snapshotOf(l.shown()), nil
}

func snapshotOf(at position, m members) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(at.applied), Term: new(at.term), ConfState: m.confState()}}
}

// note reports whether a message says only that more is confirmed, which needs no write. What Raft wants to hear of such
// a write it hears of those before, which have all its entries and its term.
func (l *raftLog) note(m *raftpb.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	says := func(to *raftpb.Message) bool { return to.GetType() != raftpb.MsgStorageAppendResp }
	if len(m.GetEntries()) > 0 || m.Term == nil || l.mu.hard != [2]uint64{m.GetTerm(), m.GetVote()} || slices.ContainsFunc(m.GetResponses(), says) {
		return false
	}
	l.mu.commit = max(l.mu.commit, m.GetCommit())
	return true
}

// append adds what Raft wants to have written to a batch: entries, which replace those from the first one on, term and vote.
func (l *raftLog) append(b Batch, m *raftpb.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// NB: Raft says term and vote again whenever more is confirmed.
	if hard := [2]uint64{m.GetTerm(), m.GetVote()}; m.Term != nil && hard != l.mu.hard {
		l.setPair(b, 'h', hard[0], hard[1])
		l.mu.hard = hard
	}
	entries := m.GetEntries()
	l.mu.commit = max(l.mu.commit, m.GetCommit())
	if slices.ContainsFunc(entries, func(e *raftpb.Entry) bool { return e.GetType() != raftpb.EntryNormal }) {
		// NB: who has a change of the members must know that the one before it is confirmed, also after a crash that
		// took that from its rows: else it would let a node vote that has no vote any more.
		b.Set(l.rowKey('k'), binary.BigEndian.AppendUint64(nil, l.mu.commit))
	}
	if len(entries) == 0 {
		return
	}
	if first := entries[0].GetIndex(); first <= l.mu.last {
		b.DeleteRange(l.key(first), l.end())
		l.truncateLocked(first)
	}
	for _, e := range entries {
		value := make([]byte, 0, entryHeadBytes+len(e.GetData()))
		value = append(binary.BigEndian.AppendUint64(value, e.GetTerm()), byte(e.GetType()))
		value = append(value, e.GetData()...)
		b.Set(l.key(e.GetIndex()), value)
		l.addLocked(e.GetIndex(), e.GetTerm(), len(value))
		l.mu.cached = append(l.mu.cached, e)
		l.mu.cachedBytes += len(value)
	}
	drop := 0
	for ; drop < len(l.mu.cached)-1 && l.mu.cachedBytes > cacheBytesMax; drop++ {
		l.mu.cachedBytes -= entryHeadBytes + len(l.mu.cached[drop].GetData())
	}
	clear(l.mu.cached[:drop])
	l.mu.cached = l.mu.cached[drop:]
}

// truncateLocked forgets the entries from index on.
func (l *raftLog) truncateLocked(index uint64) {
	keep := int(index - l.mu.begin.index - 1)
	for _, size := range l.mu.sizes[keep:] {
		l.mu.bytes -= int64(size)
	}
	l.mu.sizes = l.mu.sizes[:keep]
	for n := len(l.mu.terms); n > 0 && l.mu.terms[n-1].index >= index; n-- {
		l.mu.terms = l.mu.terms[:n-1]
	}
	if gone := l.mu.last + 1 - index; gone >= uint64(len(l.mu.cached)) {
		l.mu.cached, l.mu.cachedBytes = nil, 0
	} else {
		rest := l.mu.cached[len(l.mu.cached)-int(gone):]
		for _, e := range rest {
			l.mu.cachedBytes -= entryHeadBytes + len(e.GetData())
		}
		l.mu.cached = l.mu.cached[:len(l.mu.cached)-int(gone)]
	}
	l.mu.last = index - 1
}

// restart lets the log begin behind an entry that the rows contain, with nothing.
func (l *raftLog) restart(b Batch, begin raftEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.DeleteRange(l.key(0), l.end())
	b.DeleteRange(l.rowKey('c'), l.rowKey('c'+1))
	b.DeleteRange(l.rowKey('k'), l.rowKey('k'+1))
	l.setPair(b, 'b', begin.index, begin.term)
	l.mu.begin, l.mu.last, l.mu.bytes, l.mu.commit = begin, begin.index, 0, begin.index
	l.mu.sizes, l.mu.terms, l.mu.cached, l.mu.cachedBytes = nil, nil, nil, 0
}

// everywhere is the last entry that all members have, as they have said to this node, which leads.
func everywhere(group *raft.RawNode) uint64 {
	last := uint64(math.MaxUint64)
	group.WithProgress(func(_ uint64, _ raft.ProgressType, p tracker.Progress) { last = min(last, p.Match) })
	return last
}

// spareParts is the part of the longest log that is dropped at once when all members have it. NB: what is written and
// dropped before Pebble writes its memory to a table is never written there.
const spareParts = 256

// outgrown reports whether there is something for trim to do.
func (l *raftLog) outgrown(everywhere uint64, bytesMax int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.bytes > bytesMax {
		return true
	}
	spare := int64(0)
	for i := 0; i < len(l.mu.sizes) && l.mu.begin.index+uint64(i) < everywhere && spare <= bytesMax/spareParts; i++ {
		spare += int64(l.mu.sizes[i])
	}
	return spare > bytesMax/spareParts
}

// trim drops what the rows contain of the entries that all members have, and of the first half when the log is too long; with all of every entry.
func (l *raftLog) trim(b Batch, applied, everywhere uint64, bytesMax int64, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	drop, bytes, half := 0, int64(0), int64(0)
	if l.mu.bytes > bytesMax {
		half = l.mu.bytes / 2
	}
	begin := l.mu.begin
	for ; (all || drop < len(l.mu.sizes)-1) && begin.index < applied && (all || begin.index < everywhere || bytes < half); drop++ {
		bytes += int64(l.mu.sizes[drop])
		begin.index++
	}
	if drop == 0 {
		return
	}
	gone := sort.Search(len(l.mu.terms), func(i int) bool { return l.mu.terms[i].index > begin.index })
	if gone > 0 {
		begin.term = l.mu.terms[gone-1].term
	}
	b.DeleteRange(l.key(l.mu.begin.index+1), l.key(begin.index+1)) // NB: ranges that overlap would be cut into pieces by each reader
	l.setPair(b, 'b', begin.index, begin.term)
	l.mu.bytes -= bytes
	l.mu.sizes = append([]uint32(nil), l.mu.sizes[drop:]...)
	l.mu.terms = append([]raftEntry(nil), l.mu.terms[gone:]...)
	l.mu.begin = begin
}

func (l *raftLog) last() uint64 {
	last, _ := l.LastIndex()
	return last
}

func (l *raftLog) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.bytes
}
