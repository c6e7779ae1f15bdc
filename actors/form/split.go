package form

import (
	"errors"
	"fmt"

	"troupe/persistence"
)

// splitSetting is kept when the lists of a store are as this program writes them.
const splitSetting = "form-lists"

// splitRows is how many rows one set of writes moves.
const splitRows = 1000

// SplitLists brings the lists of a store to where this program reads them. Programs of
// the store's format 1 had all rows in what is the list of current forms now. It is
// called before instances commit, does nothing when it has been done, and goes on
// where it was cut off by a crash.
func SplitLists(store *persistence.Store) error {
	done := persistence.SettingKey(nil, splitSetting)
	if _, err := store.Load(done); !errors.Is(err, persistence.ErrNotFound) {
		return err
	}
	for _, lists := range listsOf {
		for sh := range store.ShardCount() {
			if err := splitList(store, persistence.Shard(sh), lists.current); err != nil {
				return fmt.Errorf("split the lists of forms: %w", err)
			}
		}
	}
	w := store.NewWrites(persistence.Meta)
	w.Set(done, nil)
	return store.Commit(w)
}

// splitList moves the rows of one list in one shard. A row that cannot be read stays:
// the list says so.
func splitList(store *persistence.Store, sh persistence.Shard, list byte) error {
	w := store.NewWrites(sh)
	err := store.Scan(persistence.ListsPrefix(nil, sh, list), func(key, value []byte) error {
		k, ok := persistence.ParseKey(key)
		row, err := ParseRow(value)
		if !ok || err != nil || !row.Moved() {
			return nil
		}
		w.Delete(key)
		row.Put(w, Spot{Shard: sh, ID: k.ID, Made: int64(k.Number)}, nil)
		if w.Len() < splitRows {
			return nil
		}
		err, w = store.Commit(w), store.NewWrites(sh)
		return err
	})
	return errors.Join(err, store.Commit(w))
}
