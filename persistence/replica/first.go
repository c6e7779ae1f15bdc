package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// first is what the first engine has in the place of log and members: 's' with the rows about the state, and with those of
// the log 'v' before its votes, and entries with term (8 bytes), type (1), time (8), length of extensions (4), extensions
// and data.
type first struct {
	store            Store
	snapshot, log    []byte
	term, votes, end []byte
}

const firstHeadBytes = 8 + 1 + 8 + 4

func firstOf(o *Options) first {
	in := func(prefix []byte, row string) []byte { return append(prefix[:len(prefix):len(prefix)], row...) }
	return first{o.Store, firstRow(o), in(o.LogPrefix, "l"), in(o.LogPrefix, "vCurrentTerm"), in(o.LogPrefix, "v"), in(o.LogPrefix, "w")}
}

// recover is Recover. NB: it may be called again after a crash at any point.
func (f first) recover(o *Options, node string) (had bool, err error) {
	s := newState(o.Store, o.StatePrefix, o.Fatal)
	if err := s.loadPosition(); err != nil {
		return false, err
	}
	had = s.at.applied != 0
	stored, err := f.store.Load(f.term)
	if err != nil {
		return false, err
	}
	term := uint64(0)
	if len(stored) == 8 {
		term = binary.BigEndian.Uint64(stored)
	}
	var damaged error
	err = f.store.Write(Lazy, func(b Batch) {
		damaged = f.store.Scan(binary.BigEndian.AppendUint64(f.log, s.at.applied+1), f.votes, func(key, value []byte) error {
			return f.apply(s, b, key[len(f.log):], value)
		})
		b.Set(s.key, s.at.encode())
	})
	if err := errors.Join(damaged, err); err != nil {
		return false, err
	}
	at := s.at
	at.applied, at.term = max(at.applied, foundedAt), max(at.term, foundedIn)
	log := &raftLog{store: o.Store, prefix: o.LogPrefix}
	err = f.store.Write(Synced, func(b Batch) { begin(b, log, s, at, max(term, at.term)+1, members{Voters: []string{node}}) })
	if err != nil {
		return false, err
	}
	return had, f.store.Write(Synced, func(b Batch) {
		b.DeleteRange(f.votes, f.end)
		b.DeleteRange(f.snapshot, append(f.snapshot[:len(f.snapshot):len(f.snapshot)], 0))
	})
}

// apply carries out an entry that the state does not contain.
func (f first) apply(s *state, b Batch, index, value []byte) error {
	if len(index) != 8 || len(value) < firstHeadBytes {
		return fmt.Errorf("%w: entry %x", ErrDamaged, index)
	}
	extensions, rest := binary.BigEndian.Uint32(value[firstHeadBytes-4:]), value[firstHeadBytes:]
	if uint64(extensions) > uint64(len(rest)) {
		return fmt.Errorf("%w: entry %x", ErrDamaged, index)
	}
	s.at.applied = binary.BigEndian.Uint64(index)
	if data := rest[extensions:]; value[8] == 0 && len(data) > 0 { // others are of the engine itself
		s.apply(b, &applying{}, s.at.applied, data)
	}
	return nil
}
