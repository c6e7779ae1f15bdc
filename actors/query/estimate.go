package query

import (
	"errors"

	"troupe/persistence"
	"troupe/persistence/key"
)

// estimate is about how many keys there are.
type estimate struct {
	keys  int64
	exact bool  // all of them were counted
	read  int64 // how many were
}

// estimateKeys counts the keys of ranges at a moment. Once a shard is done and enough were counted, it takes the other shards for like
// those that it has read: ids are spread over them by a hash. It reads no more than most keys, most is not less than
// enough, and all ranges are of EveryShard. visit is called with each key that it reads, and with nil before it looks
// for the first one of a range in a shard, which costs as much as some keys. The slice is valid during the call only.
// An error of visit ends it and is returned as it is.
func estimateKeys(at *persistence.Snapshot, enough, most int64, visit func(key []byte) error, ranges ...key.Range) (estimate, error) {
	var e estimate
	for i, sh := range at.Shards() {
		for _, r := range ranges {
			err := visit(nil)
			if err != nil {
				return estimate{}, err
			}
			c := at.Cursor(r.In(sh))
			for err == nil && e.read < most && c.Next() {
				e.read++
				err = visit(c.Key())
			}
			if cerr := errors.Join(c.Err(), c.Close()); err == nil {
				err = cerr
			}
			if err != nil {
				return estimate{}, err
			}
		}
		if e.read >= enough {
			e.keys = e.read * int64(len(at.Shards())) / int64(i+1)
			return e, nil
		}
	}
	e.keys, e.exact = e.read, true
	return e, nil
}
