package identity

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// passwords is the kind of the rows that hold passwords. It is no credential of
// a request, so it is not exported.
const passwords Kind = 1 << 2

// account is what the service knows of a user's password.
type account struct {
	// password is the newest durable one. Confirmations set it, in the order of
	// the appends; nil before the first one.
	password atomic.Pointer[password]
	// changing counts changes that are appended but not yet confirmed. The writer
	// adds, and confirmations subtract after they have set the password.
	changing atomic.Int32
}

// password is a stored password. It is never changed.
type password struct {
	user    UserID
	hash    *passwordHash
	changed int64 // Unix milliseconds
}

// proof is the password that somebody has shown to know.
type proof struct {
	account  *account
	password *password
}

// holds reports whether the password is still the user's. Only the writer can
// ask this: between its appends nothing changes the answer from no to yes.
func (p *proof) holds() bool {
	return p.account.changing.Load() == 0 && p.account.password.Load() == p.password
}

// newPassword is a change that the writer carries out.
type newPassword struct {
	*password
	account *account
}

// appendPasswordRow appends the stored form of a password to dst:
//
//	version 1 byte,
//	user, PHC string: each a uvarint length and its bytes,
//	changed: uvarint Unix milliseconds
func appendPasswordRow(dst []byte, p *password) []byte {
	dst = append(dst, rowVersion)
	for _, text := range []string{string(p.user), p.hash.String()} {
		dst = appendText(dst, text)
	}
	return binary.AppendUvarint(dst, uint64(p.changed))
}

// parsePasswordRow reads exactly what appendPasswordRow writes; everything else
// is ErrCorrupt. The result does not alias row.
func parsePasswordRow(row []byte) (*password, error) {
	if len(row) > rowMaxBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(row))
	}
	if len(row) == 0 || row[0] != rowVersion {
		return nil, fmt.Errorf("%w: not of version %d", ErrCorrupt, rowVersion)
	}
	r := rowReader{rest: row[1:]}
	user, text := string(r.bytes(r.number())), string(r.bytes(r.number()))
	p := &password{user: UserID(user), changed: int64(r.number())}
	if r.short || len(r.rest) != 0 || user == "" || p.changed <= 0 {
		return nil, fmt.Errorf("%w: %d bytes do not hold one password", ErrCorrupt, len(row))
	}
	var err error
	if p.hash, err = parsePasswordHash(text); err != nil {
		return nil, err
	}
	if !slices.Equal(appendPasswordRow(nil, p), row) {
		return nil, fmt.Errorf("%w: not in its shortest form", ErrCorrupt)
	}
	return p, nil
}

// loadPasswords fills the accounts from the store.
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

// setPassword carries out a change: all sessions of the user end, and the
// password is the new one as soon as that is durable. Until then nobody signs in
// as the user with a password. The rows are appended a bounded number at a time,
// the password last: a crash in between ends sessions, no more.
func (w *writer) setPassword(p *newPassword, done chan<- error) {
	// NB: those that have ended already as well: the store may have refused the
	// rows of an earlier change, and then they are here only.
	rows := w.endSessions(func(e *entry) bool { return e.user == p.user })
	rows = append(rows, row{passwords, string(p.user), appendPasswordRow(nil, p.password)})
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
			p.account.password.Store(p.password)
		}
		p.account.changing.Add(-1) // NB: after the store; see proof.holds
		if earlier := lost.Load(); earlier != nil && err == nil {
			err = *earlier
		}
		done <- err
	})
}
