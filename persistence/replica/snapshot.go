package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// snapshots is raft.SnapshotStore. There is one snapshot at most, and it is a row: the
// index up to which Raft may drop the log, because the rows of the shard contain it.
//
// Who is sent a snapshot gets the rows of the shard in the order of their keys, each as
// the lengths of key and value (4 bytes each), key and value.
type snapshots struct {
	store Store
	state *state
	key   []byte
	log   *entries // nil: nothing is known of it

	mu        sync.Mutex
	installed bool // the rows of the snapshot that Raft asks for next are in place
}

const rowHeadBytes = 4 + 4

// rowBytesMax bounds a row that another node sends, which no row of a shard reaches.
const rowBytesMax = 1 << 30

func newSnapshots(store Store, prefix []byte, s *state) *snapshots {
	return &snapshots{store: store, state: s, key: append(prefix[:len(prefix):len(prefix)], 's')}
}

// meta returns the snapshot, nil when there is none.
func (s *snapshots) meta() (*raft.SnapshotMeta, error) {
	stored, err := s.store.Load(s.key)
	if err != nil || stored == nil {
		return nil, err
	}
	meta := new(raft.SnapshotMeta)
	if err := json.Unmarshal(stored, meta); err != nil {
		return nil, fmt.Errorf("%w: its snapshot cannot be read: %w", ErrDamaged, err)
	}
	return meta, nil
}

// check says whether the rows contain what the snapshot says that they do. Raft believes
// it without asking (rqlite/rqlite#2747).
func (s *snapshots) check() error {
	meta, err := s.meta()
	if err != nil || meta == nil {
		return err
	}
	if at, _ := s.state.position(); at.applied < meta.Index {
		return fmt.Errorf("%w: it is at entry %d, and the log begins behind %d", ErrDamaged, at.applied, meta.Index)
	}
	return nil
}

// raise moves the snapshot up to the entry that the rows are at, when the log has it. Raft reads what is
// behind the snapshot when it starts, and has it applied: with logs of many MiB, for seconds.
func (s *snapshots) raise() error {
	meta, err := s.meta()
	if err != nil {
		return err
	}
	if meta == nil {
		meta = new(raft.SnapshotMeta)
	}
	at, _ := s.state.position()
	raised, err := s.raised(meta, at.applied)
	if err != nil || raised == meta {
		return err
	}
	own := s.create(raft.SnapshotVersionMax, raised.Index, raised.Term, raised.Configuration, raised.ConfigurationIndex)
	return s.store.Write(Lazy, func(b Batch) { b.Set(s.key, own.encode()) })
}

// raised returns what a snapshot would be that is taken at a later entry, which the rows are at. It is meta itself
// where the log does not have that entry, as when a copy of the shard was newer than the log, or
// where the members are not known.
func (s *snapshots) raised(meta *raft.SnapshotMeta, applied uint64) (*raft.SnapshotMeta, error) {
	if s.log == nil || applied <= meta.Index {
		return meta, nil
	}
	var last raft.Log
	if err := s.log.GetLog(applied, &last); err != nil {
		if errors.Is(err, raft.ErrLogNotFound) {
			err = nil
		}
		return meta, err
	}
	later := *meta
	later.Index, later.Term = last.Index, last.Term
	if l := s.log.configuration(applied); l != nil && l.Index > meta.ConfigurationIndex {
		later.Configuration, later.ConfigurationIndex = raft.DecodeConfiguration(l.Data), l.Index
	}
	if later.ConfigurationIndex == 0 {
		return meta, nil
	}
	return &later, nil
}

func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	meta, err := s.meta()
	if err != nil || meta == nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{meta}, nil
}

func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, servers raft.Configuration, serversIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return s.create(version, index, term, servers, serversIndex), nil
}

func (s *snapshots) create(version raft.SnapshotVersion, index, term uint64, servers raft.Configuration, serversIndex uint64) *install {
	return &install{of: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: servers, ConfigurationIndex: serversIndex,
	}}
}

// Open implements raft.SnapshotStore. The reader sends the rows as they are now, and the snapshot is one of
// now: who gets it needs no entries of the log that the rows contain. With logs of many MiB those
// were hundreds of messages, with a sync for each.
func (s *snapshots) Open(string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	installed := s.installed
	s.installed = false
	s.mu.Unlock()
	meta, err := s.meta()
	if err != nil {
		return nil, nil, err
	}
	if meta == nil {
		return nil, nil, errors.New("there is no snapshot")
	}
	if installed {
		return meta, io.NopCloser(bytes.NewReader(nil)), nil
	}
	now := s.store.Snapshot()
	var at position
	size := int64(0)
	// NB: Raft wants to know the size before, so the rows are read twice.
	err = now.Scan(func(key, value []byte) (err error) {
		size += int64(rowHeadBytes + len(key) + len(value))
		if bytes.Equal(key, s.state.key) {
			at, err = decodePosition(value)
		}
		return err
	})
	if err == nil {
		meta, err = s.raised(meta, at.applied)
	}
	if err != nil {
		return nil, nil, errors.Join(err, now.Close())
	}
	meta.Size = size
	r, w := io.Pipe()
	go func() {
		_ = w.CloseWithError(errors.Join(sendRows(w, now), now.Close()))
	}()
	return meta, r, nil
}

func sendRows(to io.Writer, rows Snapshot) error {
	w := bufio.NewWriterSize(to, 256<<10)
	err := rows.Scan(func(key, value []byte) error {
		var head [rowHeadBytes]byte
		binary.BigEndian.PutUint32(head[:], uint32(len(key)))
		binary.BigEndian.PutUint32(head[4:], uint32(len(value)))
		_, _ = w.Write(head[:]) // NB: the error stays for Flush
		_, _ = w.Write(key)
		_, err := w.Write(value)
		return err
	})
	return errors.Join(err, w.Flush())
}

// install is a snapshot that is being made: raft.SnapshotSink. One of this node has no
// content. One that another node sends is the rows of the shard.
type install struct {
	of     *snapshots
	meta   raft.SnapshotMeta
	rows   Replacement // nil: it is of this node
	put    bool        // its own row was written among them
	at     position    // of the rows
	buffer []byte      // a row that is not whole yet
}

func (i *install) ID() string { return i.meta.ID }

func (i *install) Write(p []byte) (int, error) {
	if i.rows == nil {
		var err error
		if i.rows, err = i.of.store.Replace(); err != nil {
			return 0, err
		}
	}
	i.buffer = append(i.buffer, p...)
	rest := i.buffer
	for len(rest) >= rowHeadBytes {
		key, value := uint64(binary.BigEndian.Uint32(rest)), uint64(binary.BigEndian.Uint32(rest[4:]))
		if key+value > rowBytesMax {
			return 0, fmt.Errorf("a row of %d bytes in a snapshot", key+value)
		}
		if uint64(len(rest)) < rowHeadBytes+key+value {
			break
		}
		row := rest[rowHeadBytes : rowHeadBytes+key+value]
		if err := i.set(row[:key], row[key:]); err != nil {
			return 0, err
		}
		rest = rest[rowHeadBytes+key+value:]
	}
	i.buffer = append(i.buffer[:0], rest...)
	return len(p), nil
}

// set adds a row. The row about the snapshot is this one's, not the sender's.
func (i *install) set(key, value []byte) error {
	if !i.put && bytes.Compare(key, i.of.key) >= 0 {
		if err := i.setOwn(); err != nil {
			return err
		}
	}
	if bytes.Equal(key, i.of.key) {
		return nil
	}
	if bytes.Equal(key, i.of.state.key) {
		var err error
		if i.at, err = decodePosition(value); err != nil {
			return err
		}
	}
	return i.rows.Set(key, value)
}

func (i *install) setOwn() error {
	i.put = true
	return i.rows.Set(i.of.key, i.encode())
}

// encode returns the row about the snapshot.
func (i *install) encode() []byte {
	encoded, err := json.Marshal(i.meta)
	if err != nil {
		panic(fmt.Sprintf("replica: encode snapshot: %v", err)) // it has numbers and texts only
	}
	return encoded
}

// Close implements raft.SnapshotSink: the snapshot is durable when it returns, and so is
// everything that it says the rows contain.
func (i *install) Close() error {
	s := i.of
	if i.rows == nil {
		return i.closeOwn()
	}
	if len(i.buffer) > 0 {
		return errors.Join(errors.New("the last row of a snapshot is cut off"), i.Cancel())
	}
	if i.at.applied < i.meta.Index {
		err := fmt.Errorf("%w: a snapshot up to entry %d has rows up to %d", ErrDamaged, i.meta.Index, i.at.applied)
		return errors.Join(err, i.Cancel()) // NB: once the rows are in place it is too late
	}
	if !i.put {
		if err := i.setOwn(); err != nil {
			return errors.Join(err, i.Cancel())
		}
	}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	rows := i.rows
	i.rows = nil
	if err := rows.Commit(); err != nil {
		return err
	}
	s.mu.Lock()
	s.installed = true
	s.mu.Unlock()
	s.state.installed.Add(1)
	if err := s.state.load(); err != nil {
		s.state.fatal(fmt.Sprintf("read where a copy of a shard is: %v", err)) // NB: the rows are new, and the position in memory is not
	}
	if s.state.told != nil {
		s.state.told.Replaced()
	}
	return nil
}

// closeOwn writes the row of a snapshot of this node.
func (i *install) closeOwn() error {
	s := i.of
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	before, err := s.meta()
	if err != nil {
		return err
	}
	if before != nil && before.Index > i.meta.Index {
		return fmt.Errorf("a copy of the shard has come that is at entry %d", before.Index)
	}
	// NB: Raft does not show the state entries that are barriers. Only who starts here needs to know that
	// this one is past them: others wait for what this one says that it has, and may not see them either.
	at := s.state.at
	at.applied = max(at.applied, i.meta.Index)
	return s.store.Write(Synced, func(b Batch) {
		b.Set(s.key, i.encode())
		b.Set(s.state.key, at.encode())
	})
}

func (i *install) Cancel() error {
	if i.rows != nil {
		i.rows.Abort()
		i.rows = nil
	}
	return nil
}
