package workflow

import (
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/persistence"
)

// parseInstanceID reads the one canonical spelling of an instance's id.
func parseInstanceID(s string) (persistence.ID, bool) {
	u, err := ulid.ParseStrict(s)
	if err != nil || u.String() != s {
		return persistence.ID{}, false
	}
	return persistence.ID(u), true
}

func instanceName(id persistence.ID) string { return ulid.ULID(id).String() }

// mint draws instance ids (gateway/INTERFACE.md, "Instance identifiers"). The ids
// of one process also rise within a millisecond, so that a list by id is a list by
// creation. They are not secrets: rights protect instances.
type mint struct{ entropy *ulid.LockedMonotonicReader }

func newMint() mint {
	return mint{&ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}}
}

// draw returns an id for an instance created now.
func (m mint) draw(now time.Time) persistence.ID {
	at := uint64(max(now.UnixMilli(), 0))
	for {
		id, err := ulid.New(at, m.entropy)
		if err == nil {
			return persistence.ID(id)
		}
		at++ // the millisecond is used up
	}
}

// drawIn draws until the id lies in the shard.
func (r *Router) drawIn(now time.Time, sh persistence.Shard) persistence.ID {
	for {
		if id := r.ids.draw(now); r.store.ShardOf(id) == sh {
			return id
		}
	}
}
