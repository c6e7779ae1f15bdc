package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// cacheBytesMax is how much of the end of the log is kept in memory, for followers that
// get it and for the state, which applies it.
const cacheBytesMax = 2 << 20

// entries is the log of a group in the store: raft.LogStore. Raft calls it from several goroutines; one of them writes.
type entries struct {
	store  Store
	prefix []byte
	// watch is called around each write of the log.
	watch func() (end func())
	mu    struct {
		sync.Mutex
		first, last uint64   // 0 when there are none
		bytes       int64    // of all entries
		sizes       []uint32 // of the entries from first on
		cached      []*raft.Log
		cachedBytes int
		// configurations are the entries about the members.
		configurations []*raft.Log
		// mayHoldMore: a write has failed, and the store may have some of its entries.
		mayHoldMore bool
	}
}

// The key of an entry is the prefix and its index; its value is term (8 bytes), type (1),
// time in nanoseconds (8), length of extensions (4), extensions, data.
const entryHeadBytes = 8 + 1 + 8 + 4

func openEntries(store Store, prefix []byte, watch func() func()) (*entries, error) {
	e := &entries{store: store, prefix: append(prefix[:len(prefix):len(prefix)], 'l'), watch: watch}
	err := store.Scan(e.key(0), e.end(), func(key, value []byte) error {
		if len(key) != len(e.prefix)+8 || len(value) < entryHeadBytes {
			return fmt.Errorf("%w: entry %x", ErrDamaged, key)
		}
		index := binary.BigEndian.Uint64(key[len(e.prefix):])
		if e.mu.last != 0 && index != e.mu.last+1 {
			return fmt.Errorf("%w: entry %d of the log follows entry %d", ErrDamaged, index, e.mu.last)
		}
		e.addLocked(index, len(value))
		if raft.LogType(value[8]) != raft.LogConfiguration {
			return nil
		}
		l := new(raft.Log)
		e.mu.configurations = append(e.mu.configurations, l)
		return decodeEntry(index, bytes.Clone(value), l)
	})
	return e, err
}

func (e *entries) key(index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(e.prefix)+8), e.prefix...), index)
}

// end is behind all entries.
func (e *entries) end() []byte {
	end := append([]byte(nil), e.prefix...)
	end[len(end)-1]++
	return end
}

func (e *entries) addLocked(index uint64, size int) {
	if e.mu.last == 0 {
		e.mu.first = index
	}
	e.mu.last = index
	e.mu.sizes = append(e.mu.sizes, uint32(size))
	e.mu.bytes += int64(size)
}

func (e *entries) FirstIndex() (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.first, nil
}

func (e *entries) LastIndex() (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.last, nil
}

func (e *entries) GetLog(index uint64, l *raft.Log) error {
	if ok, err := e.recall(index, l); ok || err != nil {
		return err
	}
	value, err := e.store.Load(e.key(index))
	if err != nil {
		return err
	}
	if value == nil {
		return raft.ErrLogNotFound
	}
	return decodeEntry(index, value, l)
}

// recall takes an entry from memory. It says whether it did.
func (e *entries) recall(index uint64, l *raft.Log) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if index < e.mu.first || index > e.mu.last {
		return false, raft.ErrLogNotFound
	}
	if n := e.mu.last - index; n < uint64(len(e.mu.cached)) {
		*l = *e.mu.cached[len(e.mu.cached)-1-int(n)]
		return true, nil
	}
	return false, nil
}

func (e *entries) StoreLog(l *raft.Log) error { return e.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The entries are durable when it returns. When it
// fails, the log is what it was: what DeleteRange took from its end is still there.
func (e *entries) StoreLogs(logs []*raft.Log) error {
	defer e.watch()()
	e.mu.Lock()
	last, mayHoldMore := e.mu.last, e.mu.mayHoldMore
	e.mu.Unlock()
	begin := logs[0].Index
	// A log that goes on behind a gap follows a snapshot, which has all that is before.
	restart := last != 0 && begin > last+1
	replace := last != 0 && begin <= last
	values := make([][]byte, len(logs))
	for i, l := range logs {
		values[i] = encodeEntry(l)
	}
	err := e.store.Write(Synced, func(b Batch) {
		switch {
		case restart:
			b.DeleteRange(e.key(0), e.end())
		case replace || mayHoldMore:
			b.DeleteRange(e.key(begin), e.end())
		}
		for i, l := range logs {
			b.Set(e.key(l.Index), values[i])
		}
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.mu.mayHoldMore = e.mu.mayHoldMore || !errors.Is(err, ErrRefused)
		return err
	}
	e.mu.mayHoldMore = false
	switch {
	case restart:
		e.clearLocked()
	case replace:
		e.truncateLocked(begin)
	}
	for i, l := range logs {
		e.addLocked(l.Index, len(values[i]))
		e.mu.cached = append(e.mu.cached, l)
		e.mu.cachedBytes += len(values[i])
		if l.Type == raft.LogConfiguration {
			e.mu.configurations = append(e.mu.configurations, l)
		}
	}
	drop := 0
	for ; drop < len(e.mu.cached)-1 && e.mu.cachedBytes > cacheBytesMax; drop++ {
		e.mu.cachedBytes -= entryHeadBytes + len(e.mu.cached[drop].Extensions) + len(e.mu.cached[drop].Data)
	}
	clear(e.mu.cached[:drop])
	e.mu.cached = e.mu.cached[drop:]
	return nil
}

// clearLocked forgets all entries.
func (e *entries) clearLocked() {
	e.mu.first, e.mu.last, e.mu.bytes, e.mu.sizes = 0, 0, 0, nil
	e.mu.cached, e.mu.cachedBytes, e.mu.configurations = nil, 0, nil
}

// configuration returns the last entry about the members up to an index, nil when there is none.
func (e *entries) configuration(index uint64) (last *raft.Log) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.mu.configurations {
		if l.Index <= index {
			last = l
		}
	}
	return last
}

// truncateLocked forgets the entries from index on.
func (e *entries) truncateLocked(index uint64) {
	if index <= e.mu.first {
		e.clearLocked()
		return
	}
	keep := int(index - e.mu.first)
	for _, size := range e.mu.sizes[keep:] {
		e.mu.bytes -= int64(size)
	}
	e.mu.sizes = e.mu.sizes[:keep]
	e.mu.last = index - 1
	e.mu.cached, e.mu.cachedBytes = nil, 0
	e.mu.configurations = slices.DeleteFunc(e.mu.configurations, func(l *raft.Log) bool { return l.Index >= index })
}

// DeleteRange implements raft.LogStore. Raft removes what the state contains from the beginning of the log, never all
// of it, and what another leader has replaced from its end. Such a removal waits for the entries that come in its place,
// and goes in one step with them: when those cannot be written, the log still has what Raft believes that it has.
func (e *entries) DeleteRange(low, high uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if high >= e.mu.last {
		return nil
	}
	if err := e.store.Write(Lazy, func(b Batch) { b.DeleteRange(e.key(low), e.key(high+1)) }); err != nil {
		return err
	}
	gone := int(high + 1 - e.mu.first)
	for _, size := range e.mu.sizes[:gone] {
		e.mu.bytes -= int64(size)
	}
	e.mu.sizes = append([]uint32(nil), e.mu.sizes[gone:]...)
	e.mu.first = high + 1
	e.mu.configurations = slices.DeleteFunc(e.mu.configurations, func(l *raft.Log) bool { return l.Index <= high })
	return nil
}

// size is how many bytes the log has, and how many of its last entries make up half of them at most.
func (e *entries) size() (bytes int64, trailing uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	half := int64(0)
	for i := len(e.mu.sizes) - 1; i >= 0; i-- {
		if half += int64(e.mu.sizes[i]); half > e.mu.bytes/2 {
			break
		}
		trailing++
	}
	return e.mu.bytes, trailing
}

func encodeEntry(l *raft.Log) []byte {
	value := make([]byte, 0, entryHeadBytes+len(l.Extensions)+len(l.Data))
	value = binary.BigEndian.AppendUint64(value, l.Term)
	value = append(value, byte(l.Type))
	value = binary.BigEndian.AppendUint64(value, uint64(l.AppendedAt.UnixNano()))
	value = binary.BigEndian.AppendUint32(value, uint32(len(l.Extensions)))
	return append(append(value, l.Extensions...), l.Data...)
}

func decodeEntry(index uint64, value []byte, l *raft.Log) error {
	if len(value) < entryHeadBytes {
		return fmt.Errorf("%w: entry %d of the log is too short", ErrDamaged, index)
	}
	head, rest := value[:entryHeadBytes], value[entryHeadBytes:]
	extensions := int(binary.BigEndian.Uint32(head[17:]))
	if extensions > len(rest) {
		return fmt.Errorf("%w: entry %d of the log is cut off", ErrDamaged, index)
	}
	*l = raft.Log{
		Index: index, Term: binary.BigEndian.Uint64(head), Type: raft.LogType(head[8]),
		AppendedAt: time.Unix(0, int64(binary.BigEndian.Uint64(head[9:]))), Data: rest[extensions:],
	}
	if extensions > 0 {
		l.Extensions = rest[:extensions]
	}
	return nil
}

// votes is where Raft keeps its term and its vote: raft.StableStore.
type votes struct {
	store  Store
	prefix []byte
	watch  func() (end func()) // as of entries
}

// errNoVote has the text that Raft expects (raft.NewRaft).
var errNoVote = errors.New("not found")

func newVotes(store Store, prefix []byte, watch func() func()) votes {
	return votes{store, append(prefix[:len(prefix):len(prefix)], 'v'), watch}
}

func (v votes) key(name []byte) []byte {
	return append(v.prefix[:len(v.prefix):len(v.prefix)], name...)
}

func (v votes) Set(name, value []byte) error {
	defer v.watch()()
	return v.store.Write(Vital, func(b Batch) { b.Set(v.key(name), value) })
}

func (v votes) Get(name []byte) ([]byte, error) {
	value, err := v.store.Load(v.key(name))
	if err == nil && value == nil {
		err = errNoVote
	}
	return value, err
}

func (v votes) SetUint64(name []byte, n uint64) error {
	return v.Set(name, encodeUint64(n))
}

func (v votes) GetUint64(name []byte) (uint64, error) {
	value, err := v.Get(name)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: %s is of %d bytes", ErrDamaged, name, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

func encodeUint64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
