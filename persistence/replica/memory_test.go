package replica

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"troupe/persistence/replica/internal/entry"
)

// memory is a store of rows in memory. A set of writes, as Batch.Apply takes it, is a key
// and a value of one byte each.
type memory struct {
	rows map[string]string
	// fail is what the next writes return; nothing of them is kept.
	fail error
}

func newMemory() *memory { return &memory{rows: map[string]string{}} }

func (m *memory) Load(key []byte) ([]byte, error) {
	if value, ok := m.rows[string(key)]; ok {
		return []byte(value), nil
	}
	return nil, nil
}

func (m *memory) Scan(from, to []byte, visit func(key, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(m.rows)) {
		if key >= string(from) && (to == nil || key < string(to)) {
			if err := visit([]byte(key), []byte(m.rows[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) Write(_ Write, fill func(Batch)) error {
	b := &memoryBatch{rows: maps.Clone(m.rows)}
	fill(b)
	if m.fail != nil {
		return m.fail
	}
	m.rows = b.rows
	return nil
}

func (m *memory) Refusal() error { return m.fail }

func (m *memory) Snapshot() Snapshot { return memorySnapshot{&memory{rows: maps.Clone(m.rows)}} }

func (m *memory) Replace() (Replacement, error) {
	return &memoryReplacement{of: m, rows: map[string]string{}}, nil
}

type memoryBatch struct{ rows map[string]string }

func (b *memoryBatch) Set(key, value []byte) { b.rows[string(key)] = string(value) }
func (b *memoryBatch) DeleteRange(from, to []byte) {
	maps.DeleteFunc(b.rows, func(key, _ string) bool { return key >= string(from) && key < string(to) })
}
func (b *memoryBatch) Apply(repr []byte) { b.rows["row "+string(repr[:1])] = string(repr[1:]) }

type memorySnapshot struct{ m *memory }

func (s memorySnapshot) Load(key []byte) ([]byte, error) { return s.m.Load(key) }

func (s memorySnapshot) Scan(_ uint16, visit func(key, value []byte) error) error {
	return s.m.Scan(nil, nil, visit)
}
func (s memorySnapshot) Close() error { return nil }

type memoryReplacement struct {
	of   *memory
	rows map[string]string
	last []byte
}

func (r *memoryReplacement) Reach(uint16) error { return nil }

func (r *memoryReplacement) Set(key, value []byte) error {
	if bytes.Compare(key, r.last) <= 0 {
		return errors.New("rows out of order")
	}
	r.last = bytes.Clone(key)
	r.rows[string(key)] = string(value)
	return nil
}

func (r *memoryReplacement) Commit() error {
	r.of.rows = r.rows
	return nil
}

func (r *memoryReplacement) Abort() { r.rows = nil }

// packedOf is the data of an entry of writes.
func packedOf(epoch, revision uint64, sets ...string) []byte {
	var p entry.Packer
	for _, set := range sets {
		p.Add([]byte(set))
	}
	return p.Data(epoch, revision, 0)
}
