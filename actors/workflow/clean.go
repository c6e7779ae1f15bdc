package workflow

import (
	"slices"
	"time"

	"troupe/persistence"
)

// Idempotency rows are remembered for at least KeysKeptFor and at least the last
// KeysKept of an instance (gateway/INTERFACE.md, "Retries"). Those of events go
// with a commit of their instance; those of creates have no instance and go in the
// cleaner's rounds.

// cleanEvery is the time between two rounds of the cleaner.
const cleanEvery = time.Hour

// keptRow is one idempotency row as the cleaning sees it.
type keptRow struct {
	key []byte
	at  int64 // Unix ms
}

// forgettable returns the keys of the rows that may go.
func forgettable(rows []keptRow, keep int, before int64) [][]byte {
	slices.SortFunc(rows, func(a, b keptRow) int { return int(a.at - b.at) })
	var keys [][]byte
	for n := range max(0, len(rows)-keep) {
		if rows[n].at >= before {
			break
		}
		keys = append(keys, rows[n].key)
	}
	return keys
}

// rows reads the idempotency rows under a prefix.
func (r *Router) rows(prefix []byte) ([]keptRow, error) {
	var rows []keptRow
	err := r.store.Scan(prefix, func(key, value []byte) error {
		s, err := parseStoredReply(value)
		if err != nil {
			return err
		}
		rows = append(rows, keptRow{slices.Clone(key), s.at})
		return nil
	})
	return rows, err
}

func (r *Router) forgetBefore() int64 {
	return r.o.Clock().Add(-r.o.KeysKeptFor).UnixMilli()
}

// forgetKeys removes old idempotency rows of the instance in the same batch, at
// a cost that is small over many events: it looks at the first event with a key after
// each waking, and then when the number of rows has doubled since it last looked.
func (i *instance) forgetKeys(w *persistence.Writes) {
	if i.keyRows++; i.keyRows < i.keyRowsLook {
		return
	}
	rows, err := i.router.rows(persistence.ReplyPrefix(nil, i.shard, i.id))
	if err != nil {
		i.router.log.Warn().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("idempotency keys cannot be read")
		i.keyRowsLook = 2 * i.keyRows
		return
	}
	gone := forgettable(rows, i.router.o.KeysKept, i.router.forgetBefore())
	for _, key := range gone {
		w.Delete(key)
	}
	i.keyRows = len(rows) - len(gone) + 1
	i.keyRowsLook = 2 * max(i.keyRows, i.router.o.KeysKept)
}

// clean forgets the keys of old creates.
func (r *Router) clean() {
	before := r.forgetBefore()
	err := r.store.DeleteWhere(persistence.ReplyPrefix(nil, persistence.EveryShard, persistence.ID{}), func(value []byte) (bool, error) {
		s, err := parseStoredReply(value)
		return err == nil && s.at < before, err
	})
	if err != nil {
		r.log.Warn().Err(err).Msg("keys of creates cannot be cleaned")
	}
}
