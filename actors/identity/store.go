package identity

import (
	"fmt"
	"time"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Store is what the service needs of the store, which *persistence.Store has.
type Store interface {
	NewWrites(key.Shard) *persistence.Writes
	Append(*persistence.Writes, persistence.Waiter) (applied bool)
	Barrier(persistence.Waiter)
	Scan(prefix []byte, visit func(key, value []byte) error) error
}

type storeLedger struct{ store Store }

func (l storeLedger) append(rows []row, done func(error)) {
	if len(rows) == 0 {
		l.store.Barrier(confirmation(done))
		return
	}
	w := l.store.NewWrites(key.Meta)
	fill(w, rows)
	l.store.Append(w, confirmation(done))
}

func fill(w *persistence.Writes, rows []row) {
	for _, r := range rows {
		key := key.Credential(nil, letter(r.kind), r.id)
		if r.value == nil {
			w.Delete(key)
		} else {
			w.Set(key, r.value)
		}
	}
}

func (l storeLedger) scan(kind Kind, visit func(id string, row []byte)) error {
	return l.store.Scan(key.CredentialPrefix(nil, letter(kind)), func(k, value []byte) error {
		// The service reports an unreadable key: no row belongs under "".
		parsed, _ := key.Parse(k)
		visit(parsed.Name, value)
		return nil
	})
}

// epochLedger keeps credentials in a store with replicas: when the epoch is over, every append is refused.
type epochLedger struct {
	storeLedger
	store *persistence.Store
	epoch uint64
}

func (l epochLedger) append(rows []row, done func(error)) {
	if len(rows) == 0 {
		l.store.BarrierIn(key.Meta, l.epoch, confirmation(done))
		return
	}
	w := l.store.NewWritesIn(key.Meta, l.epoch)
	fill(w, rows)
	l.store.Append(w, confirmation(done))
}

func parseCredential(kind Kind, id string, row []byte, sessionMax time.Duration) (*entry, error) {
	e, err := parseRow(row)
	if err != nil {
		return nil, err
	}
	if e.id != id || e.kind != kind {
		return nil, fmt.Errorf("%w: it stands under the key of another", ErrCorrupt)
	}
	if e.kind == Session {
		e.expires = earlier(e.expires, e.created+sessionMax.Milliseconds())
	}
	return e, nil
}

func letter(k Kind) byte { return k.prefix()[0] }

type confirmation func(error)

// Committed is called by the store, once.
func (c confirmation) Committed(err error) { c(err) }
