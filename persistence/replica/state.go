package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// The data of an entry: version (1 byte), kind (1), and for writes epoch (8), revision (8) and then sets of writes,
// each behind its length (uvarint). Every version that was ever written is read: a log may be older than the program.
const (
	entryVersion = 1

	kindEpoch  = 0 // a leadership begins
	kindWrites = 1

	writesHeadBytes = 1 + 1 + 8 + 8
)

// appendWritesHead begins the data of an entry of writes.
func appendWritesHead(dst []byte, epoch, revision uint64) []byte {
	dst = append(dst, entryVersion, kindWrites)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, epoch), revision)
}

// position says how far the state of a shard is. It stands in the shard and changes with it.
type position struct {
	applied  uint64 // the last entry that was applied, or passed over
	epoch    uint64 // the index of the entry that began it
	revision uint64 // of the shard: the entries of writes that this epoch has
	term     uint64 // Raft's, in which the epoch began
}

func (p position) encode() []byte {
	b := make([]byte, 0, 4*8)
	for _, n := range []uint64{p.applied, p.epoch, p.revision, p.term} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodePosition(b []byte) (p position, err error) {
	if len(b) != 4*8 {
		return p, fmt.Errorf("%w: its position is of %d bytes", ErrDamaged, len(b))
	}
	for i, n := range []*uint64{&p.applied, &p.epoch, &p.revision, &p.term} {
		*n = binary.BigEndian.Uint64(b[8*i:])
	}
	return p, nil
}

// errStale is the answer to an entry that every node has passed over: its epoch is over,
// or one that it follows was lost.
var errStale = fmt.Errorf("%w: a later leader has written, or what this follows was lost", ErrNotLed)

// state applies the log to the rows of the shard: raft.FSM. What it does with an entry
// depends on the entries before and on nothing else.
type state struct {
	store Store
	key   []byte // of the position
	fatal func(string)
	told  Follower // nil: nobody follows

	mu      sync.Mutex // held while the rows change
	at      position
	changed chan struct{} // closed when at.applied has grown

	stale     atomic.Uint64 // entries that were passed over
	installed atomic.Uint64 // copies of the shard that were put in place
}

func openState(store Store, prefix []byte, fatal func(string)) (*state, error) {
	s := &state{store: store, key: append(prefix[:len(prefix):len(prefix)], 'p'), fatal: fatal, changed: make(chan struct{})}
	return s, s.load()
}

// load reads the position from the store.
func (s *state) load() error {
	stored, err := s.store.Load(s.key)
	if err != nil || stored == nil {
		return err
	}
	if s.at, err = decodePosition(stored); err == nil {
		s.signalLocked()
	}
	return err
}

// signalLocked wakes those who wait for a position.
func (s *state) signalLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// position returns how far the state is, and a channel that is closed when it is further.
func (s *state) position() (position, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.changed
}

func (s *state) Apply(l *raft.Log) any { return s.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. The answer to an entry of writes is nil or an
// error, to one that begins an epoch the epoch.
func (s *state) ApplyBatch(logs []*raft.Log) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]any, len(logs))
	at := s.at
	var reprs [][]byte
	err := s.store.Write(Lazy, func(b Batch) {
		for i, l := range logs {
			if l.Index <= at.applied {
				continue // NB: a snapshot was newer than its index, or this is a restart
			}
			at.applied = l.Index
			if l.Type == raft.LogCommand {
				var changes [][]byte
				answers[i], changes = s.apply(b, &at, l)
				if s.told != nil {
					reprs = append(reprs, changes...)
				}
			}
		}
		b.Set(s.key, at.encode())
	})
	if err != nil {
		s.fatal(fmt.Sprintf("apply entries up to %d of a shard's log: %v", at.applied, err))
	}
	s.at = at
	s.signalLocked()
	if len(reprs) > 0 {
		s.told.Changed(reprs)
	}
	return answers
}

// apply carries out one entry, and returns what it changes.
func (s *state) apply(b Batch, at *position, l *raft.Log) (answer any, changes [][]byte) {
	d := l.Data
	if len(d) < 2 || d[0] != entryVersion {
		s.fatal(fmt.Sprintf("entry %d of a shard's log was written by a newer program; install that one here too", l.Index))
	}
	switch {
	case d[1] == kindEpoch:
		*at = position{applied: l.Index, epoch: l.Index, term: l.Term}
		return l.Index, nil
	case d[1] != kindWrites || len(d) < writesHeadBytes:
		s.fatal(fmt.Sprintf("entry %d of a shard's log has an unknown kind", l.Index))
	}
	epoch, revision := binary.BigEndian.Uint64(d[2:]), binary.BigEndian.Uint64(d[10:])
	if epoch != at.epoch || revision != at.revision {
		s.stale.Add(1)
		return errStale, nil
	}
	at.revision++
	for d = d[writesHeadBytes:]; len(d) > 0; {
		size, n := binary.Uvarint(d)
		if n <= 0 || size > uint64(len(d)-n) {
			s.fatal(fmt.Sprintf("entry %d of a shard's log is cut off", l.Index))
		}
		set := d[n : n+int(size)]
		b.Apply(set)
		changes = append(changes, set)
		d = d[n+int(size):]
	}
	return nil, changes
}

// The rows themselves are the snapshot.
func (s *state) Snapshot() (raft.FSMSnapshot, error) { return rowsAsTheyAre{}, nil }

type rowsAsTheyAre struct{}

func (rowsAsTheyAre) Persist(sink raft.SnapshotSink) error { return sink.Close() }

func (rowsAsTheyAre) Release() {}

// The rows are in place already; see install.Close.
func (s *state) Restore(source io.ReadCloser) error {
	_, err := io.Copy(io.Discard, source)
	return errors.Join(err, source.Close())
}
