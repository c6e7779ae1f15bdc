package workflow

import (
	"time"

	"troupe/actors/internal/retry"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Idempotency rows are remembered for at least KeysKeptFor and at least the last
// KeysKept of an instance (gateway/INTERFACE.md, "Retries"). Those of events go
// with a commit of their instance; those of creates have no instance and go in the
// cleaner's rounds.

// cleanEvery is the time between two rounds of the cleaner.
const cleanEvery = time.Hour

// trimEvery is the time between two looks at the size of the feed of changes.
const trimEvery = time.Minute

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
	var rows []retry.Row
	store, err := i.rows()
	if err == nil {
		rows, err = retry.Rows(store, key.ReplyPrefix(nil, i.shard, i.id))
	}
	if err != nil {
		i.router.log.Warn().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("idempotency keys cannot be read")
		i.keyRowsLook = 2 * i.keyRows
		return
	}
	gone := retry.Forgettable(rows, i.router.o.KeysKept, i.router.forgetBefore())
	for _, key := range gone {
		w.Delete(key)
	}
	i.keyRows = int32(len(rows) - len(gone) + 1)
	i.keyRowsLook = 2 * max(i.keyRows, int32(i.router.o.KeysKept))
}

// clean forgets the keys of old creates.
func (r *Router) clean() {
	if err := retry.CleanCreates(r.store, r.forgetBefore()); err != nil {
		r.log.Warn().Err(err).Msg("keys of creates cannot be cleaned")
	}
}
