package identity

import "troupe/persistence"

// Store is what the service needs of the store, which *persistence.Store has.
// Credentials are rows of the shard persistence.Meta.
type Store interface {
	NewWrites(persistence.Shard) *persistence.Writes
	Append(*persistence.Writes, persistence.Waiter) (applied bool)
	Barrier(persistence.Waiter)
	Scan(prefix []byte, visit func(key, value []byte) error) error
}

// storeLedger keeps credentials in a store.
type storeLedger struct{ store Store }

func (l storeLedger) append(rows []row, done func(error)) {
	if len(rows) == 0 {
		l.store.Barrier(confirmation(done))
		return
	}
	w := l.store.NewWrites(persistence.Meta)
	for _, r := range rows {
		key := persistence.CredentialKey(nil, letter(r.kind), r.id)
		if r.value == nil {
			w.Delete(key)
		} else {
			w.Set(key, r.value)
		}
	}
	l.store.Append(w, confirmation(done))
}

func (l storeLedger) scan(kind Kind, visit func(id string, row []byte)) error {
	return l.store.Scan(persistence.CredentialPrefix(nil, letter(kind)), func(key, value []byte) error {
		// The service reports an unreadable key: no row belongs under "".
		parsed, _ := persistence.ParseKey(key)
		visit(parsed.Name, value)
		return nil
	})
}

// letter marks the keys of a kind.
func letter(k Kind) byte { return k.prefix()[0] }

// confirmation lets a function wait for a commit.
type confirmation func(error)

// Committed is called by the store, once.
func (c confirmation) Committed(err error) { c(err) }
