package identity

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"troupe/actors/identity/password"
	"troupe/statemachine/packed"
)

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
