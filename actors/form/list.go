package form

import (
	"context"
	"encoding/binary"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
)

// Listed is one line of a list.
type Listed struct {
	*Row
	InstanceID string
	// When is the creation, in Unix milliseconds.
	When int64
}

// listedBytes is about what a Listed takes besides its texts.
const listedBytes = 400

// List calls yield with the forms of one kind that a user created, the newest
// first and those of the same millisecond by id. It sees one consistent moment,
// with everything that was acknowledged before the call, and wakes nobody.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too
// long, and yield's own error when it stops early. While yield waits, other lists are
// read; the time counts all the same.
func List(ctx context.Context, lists *query.Service, kind Kind, user identity.UserID, yield func(Listed) error) error {
	prefix := persistence.ListPrefix(nil, persistence.EveryShard, byte(kind), string(user))
	decode := func(r query.Row) (Listed, int, error) {
		row, err := ParseRow(r.Value)
		if err != nil {
			return Listed{}, 0, failure.Errorf(failure.ErrExecution, "list row of %s: %w", instanceid.Text(r.ID), err)
		}
		listed := Listed{Row: row, InstanceID: instanceid.Text(r.ID), When: int64(^binary.BigEndian.Uint64(r.Place))}
		return listed, len(r.Value) + listedBytes, nil
	}
	return failure.In("list", kind.String()+"s", query.Rows(ctx, lists, user, prefix, decode, yield))
}
