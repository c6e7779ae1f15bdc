// Package businesskey has the rows that say which instance of a workflow has a business key
// (statemachine/DEFINITION.md, "Keys of instances"). The key decides the shard of its row, and the instance gets an id
// of the same shard, so that both are written in one batch, and everybody who asks for a key asks one place:
//
//	workflow, key ──► shard ─► row ─► id        the row is there
//	                    │                         from the commit that creates the instance
//	                    └─► the instance          to the commit that ends it, or deletes it, and
//	                                              again from the one that resets it to before its end
package businesskey

import (
	"errors"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// ShardOf is the shard of a key's row, and of its instance.
func ShardOf(store *persistence.Store, workflow, businessKey string) key.Shard {
	return key.BusinessShard(store.Shards(), workflow, businessKey)
}

// Find returns the instance that has a key, if there is one.
func Find(store *persistence.Store, sh key.Shard, workflow, businessKey string) (id key.ID, found bool, err error) {
	value, err := store.Load(key.Business(nil, sh, workflow, businessKey))
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return id, false, nil
	case err != nil:
		return id, false, failure.OfStore(err)
	case len(value) != len(id):
		return id, false, failure.Errorf(failure.ErrExecution, "row of a key of %s: %w", workflow, persistence.ErrCorrupt)
	}
	return key.ID(value), true, nil
}

// Put writes what a commit changes: before is nil for an instance that it creates.
func Put(w *persistence.Batch, sh key.Shard, workflow string, id key.ID, before, after *statemachine.Instance) {
	switch has := holds(after); {
	case has && (before == nil || !holds(before)):
		w.Set(key.Business(nil, sh, workflow, after.Key()), id[:])
	case before != nil && !has:
		Release(w, sh, workflow, before)
	}
}

// Release removes the row of an instance that ends, or is deleted.
func Release(w *persistence.Batch, sh key.Shard, workflow string, of *statemachine.Instance) {
	if holds(of) {
		w.Delete(key.Business(nil, sh, workflow, of.Key()))
	}
}

// holds reports whether an instance has the row of its key.
func holds(in *statemachine.Instance) bool { return in.Key() != "" && !in.State.IsOver() }
