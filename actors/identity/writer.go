package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/actors/internal/concurrent"
	"troupe/persistence"
)

// ledger is where credentials are kept: rows under kind and id.
type ledger interface {
	// append makes the rows durable together and calls done exactly once, in the order of the appends; it does not wait
	// for the disk.
	append(rows []row, done func(error))
	// scan visits the rows of one kind. A visited row is valid during the call.
	scan(kind Kind, visit func(id string, row []byte)) error
}

type row struct {
	kind  Kind
	id    string
	value []byte // nil: delete
	ends  bool   // the row says that the credential has ended
}

// rowsMax bounds one append of the background writes.
const rowsMax = 1000

type change struct {
	create   *entry
	proof    *proof // of create: it must still hold; nil: none is needed
	password *newPassword
	revoke   string
	kind     Kind       // of revoke
	end      []string   // their ids; nobody waits for the outcome
	done     chan error // holds one; gets the outcome
}

func (s *Service) submit(ctx context.Context, c change) error {
	c.done = make(chan error, 1)
	select {
	case s.changes <- c:
	case <-s.stopping:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	var late <-chan time.Time
	if s.confirmMax > 0 {
		timer := time.NewTimer(s.confirmMax)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	select {
	case err = <-c.done:
	case <-late:
		err = persistence.ErrOutcomeUnknown
	case <-ctx.Done():
		return ctx.Err()
	}
	reason := "the outcome is unknown"
	switch {
	case errors.Is(err, persistence.ErrNotLed): // nothing was applied, and the table is about to go
		return failure.OfStore(err)
	case errors.Is(err, persistence.ErrLost):
	case err != nil && c.revoke != "" && !errors.Is(err, errNoCredential): // it has ended all the same; see flush
		reason = "it is refused, but that is not durable yet"
	case !errors.Is(err, persistence.ErrOutcomeUnknown):
		return err
	}
	reason += "; it is safe to repeat the request"
	return &failure.Error{Kind: failure.ErrOutcomeUnknown, Reason: reason, Cause: fmt.Errorf("%s: %w", reason, err)}
}

// writer is the only goroutine that appends rows, so each row holds everything that was decided before it: a last use that is being written never brings back a
// credential that was revoked meanwhile. The writer does not wait for the disk; the store's confirmation answers the
// caller.
type writer struct {
	*Service
	unconfirmed concurrent.Map[string, *entry] // They are not in the table, but count for its limit and can be ended
	// They are out of the table, but a revocation of one is acknowledged only when its row is gone.
	leaving concurrent.Map[string, *entry]
	// sessions has those of each user, ended and unconfirmed ones included, and some that the store has refused.
	sessions map[UserID][]*entry
}

func newWriter(s *Service) *writer {
	w := &writer{
		Service:     s,
		unconfirmed: xsync.NewMap[string, *entry](),
		leaving:     xsync.NewMap[string, *entry](),
		sessions:    map[UserID][]*entry{},
	}
	s.entries.Range(func(_ string, e *entry) bool {
		if e.kind == Session {
			w.sessions[e.user] = append(w.sessions[e.user], e)
		}
		return true
	})
	return w
}

func (w *writer) run() {
	defer close(w.stopped)
	flush := time.NewTicker(w.options.FlushEvery)
	defer flush.Stop()
	w.endSessionsOfLeavers() // they may have left while the service was down
	for {
		select {
		case c := <-w.changes:
			w.apply(c)
		case <-w.recheck:
			w.endSessionsOfLeavers()
		case <-flush.C:
			w.flush(nil)
			w.sweep()
		case <-w.stopping:
			if w.abandoned.Load() {
				return
			}
			durable := make(chan struct{})
			w.flush(durable)
			<-durable
			return
		}
	}
}

func (w *writer) apply(c change) {
	switch {
	case c.create != nil:
		w.create(c.create, c.proof, c.done)
		return
	case c.password != nil:
		w.setPassword(c.password, c.done)
		return
	case len(c.end) > 0:
		w.end(c.end)
		return
	}
	e, known := w.entries.Load(c.revoke)
	if !known {
		e, known = w.leaving.Load(c.revoke)
	}
	if !known || e.kind != c.kind {
		c.done <- errNoCredential
		return
	}
	w.revoke(e)
	// NB: an earlier revocation of the same credential may not be durable yet, so the row is written again: this answer
	// must not come before.
	w.append([]row{w.row(e)}, func(err error) { c.done <- err })
}

// end revokes what ended on a node that led before. flush goes on until that is durable.
func (w *writer) end(ids []string) {
	var rows []row
	for _, id := range ids {
		if e, known := w.entries.Load(id); known && e.revoked.Load() == 0 {
			w.revoke(e)
			rows = append(rows, w.row(e))
		}
	}
	w.write("end credentials", rows, nil)
}

// Once they are durable, entries whose removal is among them have left, and those whose end is among them have ended
// for good.
func (w *writer) append(rows []row, done func(error)) {
	w.ledger.append(rows, func(err error) {
		for _, r := range rows {
			if err == nil && r.ends {
				w.ending.Delete(r.id)
			}
			if err == nil && r.value == nil {
				w.leaving.Delete(r.id)
			}
		}
		done(err)
	})
}

func (w *writer) create(e *entry, known *proof, done chan<- error) {
	switch {
	case known != nil && !known.holds(): // the password has changed meanwhile
		done <- failure.ErrUnauthorized
		return
	case w.directory.Load().Principal(e.user) == nil: // the user has left meanwhile
		done <- errNoUser
		return
	case !w.makeRoom():
		w.full.Add(1)
		done <- errFull
		return
	}
	var rows []row
	if e.kind == Session {
		rows = w.trim(e.user)
		w.sessions[e.user] = append(w.sessions[e.user], e)
	}
	w.unconfirmed.Store(e.id, e)
	w.append(append(rows, w.row(e)), func(err error) {
		if err == nil {
			w.entries.Store(e.id, e)
		}
		e.refused.Store(err != nil && !errors.Is(err, persistence.ErrOutcomeUnknown))
		w.unconfirmed.Delete(e.id)
		done <- err
	})
}

// The caller appends its row; flush does it again until the store has taken one.
func (w *writer) revoke(e *entry) {
	if e.revoked.Load() == 0 {
		w.ending.Store(e.id, e) // NB: first, so that SignOut never takes it for one that has ended for good
		e.revoked.Store(w.options.Clock().UnixMilli())
	}
}

func (w *writer) row(e *entry) row {
	if e.removed {
		return row{kind: e.kind, id: e.id, ends: true}
	}
	e.stored = e.lastUsed.Load()
	return row{kind: e.kind, id: e.id, value: appendRow(nil, e, e.stored), ends: e.revoked.Load() != 0}
}

func (w *writer) endSessions(chosen func(*entry) bool) (rows []row) {
	end := func(_ string, e *entry) bool {
		if e.kind == Session && chosen(e) {
			w.revoke(e)
			rows = append(rows, w.row(e))
		}
		return true
	}
	w.unconfirmed.Range(end) // NB: first; what leaves it meanwhile is in entries by then
	w.entries.Range(end)
	w.leaving.Range(end)
	return rows
}

// A directory without any user ends none: it is more likely a mistake, and nobody gets in as long as it lasts.
func (w *writer) endSessionsOfLeavers() {
	d := w.directory.Load()
	if len(d.users) == 0 {
		return
	}
	rows := w.endSessions(func(e *entry) bool { return e.revoked.Load() == 0 && d.Principal(e.user) == nil })
	if len(rows) > 0 {
		w.options.Log.Info().Int("sessions", len(rows)).Msg("sessions of disabled or missing users ended")
	}
	w.write("end sessions", rows, nil)
}

// flush writes ends and last uses that are newer than the rows. durable is closed when the store has confirmed or
// refused them.
func (w *writer) flush(durable chan<- struct{}) {
	var rows []row
	w.ending.Range(func(id string, e *entry) bool {
		if e.refused.Load() { // it was ended while it was being made: there is nothing to end
			w.ending.Delete(id)
		} else {
			rows = append(rows, w.row(e))
		}
		return true
	})
	w.write("end credentials", rows, nil)
	rows = nil
	w.entries.Range(func(_ string, e *entry) bool {
		if e.lastUsed.Load() > e.stored {
			rows = append(rows, w.row(e))
		}
		return true
	})
	w.write("store last uses", rows, durable)
}

// A refusal of the store is only logged and counted: flush and sweep write ends and removals again, and a last use that
// is lost costs a minute.
func (w *writer) write(what string, rows []row, durable chan<- struct{}) {
	for chunk := range slices.Chunk(rows, rowsMax) {
		w.append(chunk, func(err error) {
			if err != nil {
				w.writeFailed.Add(1)
				w.options.Log.Error().Err(err).Int("rows", len(chunk)).Msg("cannot " + what)
			}
		})
	}
	if durable != nil {
		// An append without rows is confirmed after all those before it.
		w.ledger.append(nil, func(error) { close(durable) })
	}
}

const endedSessionsKept = 20

// trim makes room for one more session of the user and returns the rows, which the caller appends together with the new
// one.
func (w *writer) trim(user UserID) (rows []row) {
	w.dropAbsent(user)
	now := w.options.Clock().UnixMilli()
	var live, ended []*entry
	for _, e := range w.sessions[user] {
		switch {
		case e.usable(now, w.idle):
			live = append(live, e)
		case !w.isUnconfirmed(e):
			ended = append(ended, e)
		}
	}
	var surplus []*entry
	if count := len(live) + 1 - w.options.SessionsPerUserMax; count > 0 {
		slices.SortStableFunc(live, func(a, b *entry) int { return cmp.Compare(a.lastSeen(), b.lastSeen()) })
		surplus = live[:count]
		w.options.Log.Info().Str("user", string(user)).Int("sessions", count).
			Msg("sessions ended: the user has too many")
	}
	for _, e := range surplus {
		w.revoke(e)
		if !w.isUnconfirmed(e) {
			ended = append(ended, e)
		}
	}
	rows = w.removeOldest(ended, len(ended)-endedSessionsKept)
	for _, e := range surplus {
		if !e.removed {
			rows = append(rows, w.row(e))
		}
	}
	if before := len(rows) - (rowsMax - 1); before > 0 { // the bound was lowered, or is new
		w.write("end and remove sessions", rows[:before], nil)
		rows = rows[before:]
	}
	w.dropAbsent(user)
	return rows
}

// In a full table the credentials that ended first leave, 1 % at a time, because finding them scans all.
func (w *writer) makeRoom() bool {
	size := func() int { return w.entries.Size() + w.unconfirmed.Size() }
	if size() < w.options.CredentialsMax {
		return true
	}
	now := w.options.Clock().UnixMilli()
	var ended []*entry
	w.entries.Range(func(_ string, e *entry) bool {
		if !e.usable(now, w.idle) && !w.isUnconfirmed(e) {
			ended = append(ended, e)
		}
		return true
	})
	some := size() + 1 - w.options.CredentialsMax + w.options.CredentialsMax/100
	w.write("remove ended credentials", w.removeOldest(ended, some), nil)
	w.dropAbsentOf(ended)
	return size() < w.options.CredentialsMax
}

// sweep removes credentials that ended longer than RetainEnded ago, and tries unconfirmed removals again.
func (w *writer) sweep() {
	before := w.options.Clock().Add(-w.options.RetainEnded).UnixMilli()
	var rows []row
	w.leaving.Range(func(_ string, e *entry) bool {
		rows = append(rows, w.row(e))
		return true
	})
	var ended []*entry
	w.entries.Range(func(_ string, e *entry) bool {
		if end := e.end(w.idle); end != 0 && end < before && !w.isUnconfirmed(e) {
			ended = append(ended, e)
		}
		return true
	})
	rows = append(rows, w.removeOldest(ended, len(ended))...)
	w.write("remove ended credentials", rows, nil)
	w.dropAbsentOf(ended)
}

// removeOldest removes the count entries that ended first from the table, and returns the rows that remove them from
// the store. None of them may be unconfirmed.
func (w *writer) removeOldest(ended []*entry, count int) (rows []row) {
	if count <= 0 {
		return nil
	}
	slices.SortFunc(ended, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.end(w.idle), b.end(w.idle)), cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id))
	})
	for _, e := range ended[:min(count, len(ended))] {
		e.removed = true
		w.leaving.Store(e.id, e) // NB: first, so that the entry is always in one of the two
		w.entries.Delete(e.id)
		rows = append(rows, w.row(e))
	}
	return rows
}

func (w *writer) isUnconfirmed(e *entry) bool {
	_, unconfirmed := w.unconfirmed.Load(e.id)
	return unconfirmed
}

func (w *writer) dropAbsent(user UserID) {
	list := slices.DeleteFunc(w.sessions[user], func(e *entry) bool {
		if w.isUnconfirmed(e) { // NB: first; what leaves it meanwhile is in entries by then
			return false
		}
		_, present := w.entries.Load(e.id)
		return !present
	})
	if len(list) == 0 {
		delete(w.sessions, user)
		return
	}
	w.sessions[user] = list
}

func (w *writer) dropAbsentOf(entries []*entry) {
	users := map[UserID]bool{}
	for _, e := range entries {
		if e.removed && e.kind == Session {
			users[e.user] = true
		}
	}
	for user := range users {
		w.dropAbsent(user)
	}
}
