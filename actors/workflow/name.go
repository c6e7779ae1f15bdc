package workflow

import (
	"math/rand/v2"
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

// newInstanceID draws an id for an instance created now (decisions: "_id"). It
// is not a secret: rights protect instances, not the difficulty of guessing.
func newInstanceID(now time.Time) persistence.ID {
	var u ulid.ULID
	_ = u.SetTime(uint64(max(now.UnixMilli(), 0))) // fails only after the year 10889
	high, low := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		u[6+i] = byte(high >> (8 * i))
	}
	u[14], u[15] = byte(low), byte(low>>8)
	return persistence.ID(u)
}

// newInstanceIDIn draws until the id lies in the shard.
func (r *Router) newInstanceIDIn(now time.Time, sh persistence.Shard) persistence.ID {
	for {
		if id := newInstanceID(now); r.store.ShardOf(id) == sh {
			return id
		}
	}
}
