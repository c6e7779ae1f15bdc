package form

import (
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/internal/backfill"
	"troupe/persistence"
	"troupe/statemachine"
)

// enteredList has a row of nobody's in each shard whose instances are in the lists of their creators.
const enteredList = 'm'

// NewBackfill returns what has the instances that an earlier program has stored enter the lists of their creators. ready reports whether
// those that are created now do.
func NewBackfill(s *persistence.Store, c *catalog.Catalog, ready func() bool, write func(workflow string, id persistence.ID) (wait func() error, err error), log zerolog.Logger) *backfill.Backfill {
	return &backfill.Backfill{
		What: "the list rows", Store: s, Catalog: c, Ready: ready, Write: write, Log: log,
		Mark: func(sh persistence.Shard) []byte {
			return persistence.ListKey(nil, sh, enteredList, "", 0, persistence.ID{})
		},
		Value: 1,
		Lacks: func(sh persistence.Shard, key persistence.Key, stored []byte) (bool, error) {
			record, err := statemachine.ParseRecord(stored)
			if err != nil || len(record.Attachment) > 0 { // it cannot be read, or is a form
				return false, nil
			}
			row := &CreatorRow{}
			err = row.Look(func() (*persistence.Store, error) { return s, nil }, Spot{Shard: sh, ID: key.ID, Made: record.CreatedAt.UnixMilli()})
			return row.IsLacking(), err
		},
	}
}
