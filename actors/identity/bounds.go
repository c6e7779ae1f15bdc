package identity

import (
	"cmp"
	"slices"
)

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
