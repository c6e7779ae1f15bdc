package identity

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"troupe/actors/identity/password"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/packed"
)

// A row of another version is refused.
const (
	rowVersion      = 1
	rowVersionRoles = 2 // that of a session with roles of its own
)

const rowMaxBytes = 1024 + 130*sessionRolesMax

//	version 1 byte, kind 1 byte, digest 32 bytes,
//	id, user, note: each a uvarint length and its bytes,
//	with roles (version 2): uvarint number, each a uvarint length and its bytes,
//	created, expires, lastUsed, revoked: uvarint Unix milliseconds, 0 for never
//
// The secret is not in it.
func appendRow(dst []byte, e *entry, lastUsed int64) []byte {
	version := byte(rowVersion)
	if len(e.roles) > 0 {
		version = rowVersionRoles
	}
	dst = append(dst, version, byte(e.kind))
	dst = append(dst, e.digest[:]...)
	for _, text := range []string{e.id, string(e.user), e.note} {
		dst = packed.AppendText(dst, text)
	}
	if version == rowVersionRoles {
		dst = binary.AppendUvarint(dst, uint64(len(e.roles)))
		for _, role := range e.roles {
			dst = packed.AppendText(dst, string(role))
		}
	}
	for _, t := range []int64{e.created, e.expires, lastUsed, e.revoked.Load()} {
		dst = binary.AppendUvarint(dst, uint64(t))
	}
	return dst
}

// parseRow reads a stored row.
func parseRow(stored []byte) (*entry, error) {
	if len(stored) > rowMaxBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(stored))
	}
	r := packed.NewReader(stored)
	version := r.Byte()
	if version != rowVersion && version != rowVersionRoles {
		return nil, fmt.Errorf("%w: not of version %d or %d", ErrCorrupt, rowVersion, rowVersionRoles)
	}
	e := &entry{kind: Kind(r.Byte())}
	copy(e.digest[:], r.Take(len(e.digest)))
	e.id, e.user, e.note = string(r.Text()), UserID(r.Text()), string(r.Text())
	if version == rowVersionRoles {
		// NB: bounded before anything is allocated. Zero roles are refused below: that is not the shortest form.
		for range min(r.Uvarint(), sessionRolesMax+1) {
			e.roles = append(e.roles, RoleID(r.Text()))
		}
	}
	e.created, e.expires, e.stored = int64(r.Uvarint()), int64(r.Uvarint()), int64(r.Uvarint())
	e.lastUsed.Store(e.stored)
	e.revoked.Store(int64(r.Uvarint()))
	if !r.Whole() {
		return nil, fmt.Errorf("%w: %d bytes do not hold one credential", ErrCorrupt, len(stored))
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if !slices.Equal(appendRow(nil, e, e.stored), stored) {
		return nil, fmt.Errorf("%w: not in its shortest form", ErrCorrupt)
	}
	return e, nil
}

func (e *entry) check() error {
	switch {
	case e.kind != Token && e.kind != Session:
		return fmt.Errorf("%w: unknown kind %d", ErrCorrupt, e.kind)
	case len(e.id) != idChars:
		return fmt.Errorf("%w: id of %d bytes", ErrCorrupt, len(e.id))
	case e.user == "":
		return fmt.Errorf("%w: no user", ErrCorrupt)
	case len(e.roles) > sessionRolesMax || len(e.roles) > 0 && e.kind != Session || slices.Contains(e.roles, ""):
		return fmt.Errorf("%w: roles that nobody gives", ErrCorrupt)
	case e.created <= 0:
		return fmt.Errorf("%w: no time of creation", ErrCorrupt)
	case e.expires < 0, e.stored < 0, e.revoked.Load() < 0:
		return fmt.Errorf("%w: a time before 1970", ErrCorrupt)
	}
	return nil
}

type account struct {
	// password is the newest durable one. Confirmations set it, in the order of the appends; nil before the first one.
	password atomic.Pointer[storedPassword]
	changing atomic.Int32 // changing counts changes that are appended but not yet confirmed
}

// storedPassword is a password of a user. It is never changed.
type storedPassword struct {
	user    UserID
	hash    *password.Hash
	changed int64 // Unix milliseconds
}

type proof struct {
	account  *account
	password *storedPassword
}

// Only the writer can ask this: between its appends nothing changes the answer from no to yes.
func (p *proof) holds() bool {
	return p.account.changing.Load() == 0 && p.account.password.Load() == p.password
}

type newPassword struct {
	*storedPassword
	account *account
}

// version 1 byte, user, PHC string: each a uvarint length and its bytes, changed: uvarint Unix milliseconds
func appendPasswordRow(dst []byte, p *storedPassword) []byte {
	dst = append(dst, rowVersion)
	dst = packed.AppendText(packed.AppendText(dst, p.user), p.hash.String())
	return binary.AppendUvarint(dst, uint64(p.changed))
}

// parsePasswordRow reads exactly what appendPasswordRow writes; everything else is ErrCorrupt.
func parsePasswordRow(stored []byte) (*storedPassword, error) {
	if len(stored) > rowMaxBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(stored))
	}
	r := packed.NewReader(stored)
	if r.Byte() != rowVersion {
		return nil, fmt.Errorf("%w: not of version %d", ErrCorrupt, rowVersion)
	}
	user, text := UserID(r.Text()), string(r.Text())
	p := &storedPassword{user: user, changed: int64(r.Uvarint())}
	if !r.Whole() || user == "" || p.changed <= 0 {
		return nil, fmt.Errorf("%w: %d bytes do not hold one password", ErrCorrupt, len(stored))
	}
	var err error
	if p.hash, err = password.ParseHash(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if !slices.Equal(appendPasswordRow(nil, p), stored) {
		return nil, fmt.Errorf("%w: not in its shortest form", ErrCorrupt)
	}
	return p, nil
}

func (s *Service) loadPasswords() error {
	return s.ledger.scan(passwords, func(id string, row []byte) {
		p, err := parsePasswordRow(row)
		if err == nil && string(p.user) != id {
			err = fmt.Errorf("%w: it stands under the key of another", ErrCorrupt)
		}
		if err != nil {
			s.corrupt++
			s.options.Log.Error().Err(err).Str("user", id).Msg("a stored password cannot be read and is refused")
			return
		}
		a := new(account)
		a.password.Store(p)
		s.accounts.Store(p.user, a)
	})
}

// setPassword carries out a change: all sessions of the user end, and the password is the new one as soon as that is
// durable. The rows are appended a bounded number at a time, the password last: a crash in between ends sessions, no
// more.
func (w *writer) setPassword(p *newPassword, done chan<- error) {
	// NB: also those that have ended already: their ends may not be durable yet.
	rows := w.endSessions(func(e *entry) bool { return e.user == p.user })
	rows = append(rows, row{kind: passwords, id: string(p.user), value: appendPasswordRow(nil, p.storedPassword)})
	p.account.changing.Add(1)
	var lost atomic.Pointer[error] // of an append before the last
	for len(rows) > rowsMax {
		w.append(rows[:rowsMax], func(err error) {
			if err != nil {
				lost.Store(&err)
			}
		})
		rows = rows[rowsMax:]
	}
	w.append(rows, func(err error) {
		if err == nil {
			p.account.password.Store(p.storedPassword)
		}
		p.account.changing.Add(-1) // NB: after the store; see proof.holds
		if earlier := lost.Load(); earlier != nil && err == nil {
			err = *earlier
		}
		done <- err
	})
}

// Store is what the service needs of the store, which *persistence.Store has.
type Store interface {
	NewBatch(key.Shard) *persistence.Batch
	Append(*persistence.Batch, persistence.Waiter) (applied bool)
	Barrier(persistence.Waiter)
	Scan(prefix []byte, visit func(key, value []byte) error) error
}

type storeLedger struct{ store Store }

func (l storeLedger) append(rows []row, done func(error)) {
	if len(rows) == 0 {
		l.store.Barrier(confirmation(done))
		return
	}
	w := l.store.NewBatch(key.Meta)
	fill(w, rows)
	l.store.Append(w, confirmation(done))
}

func fill(w *persistence.Batch, rows []row) {
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
	w := l.store.NewBatchIn(key.Meta, l.epoch)
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

// DropSessions removes all sessions, for who restores a store.
func DropSessions(w *persistence.Batch) {
	prefix := key.CredentialPrefix(nil, letter(Session))
	w.DeleteRange(prefix, key.PrefixEnd(prefix))
}

func letter(k Kind) byte { return k.prefix()[0] }

type confirmation func(error)

func (c confirmation) Committed(err error) { c(err) }
