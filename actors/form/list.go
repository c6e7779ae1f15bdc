package form

import (
	"bytes"
	"context"
	"encoding/binary"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// ListRequest asks for the forms of one kind that a user created.
type ListRequest struct {
	Kind           Kind
	WithInstances  bool // WithInstances asks for instances that are no forms, too
	User           identity.UserID
	Category       Category
	ArchivedBefore int64 // that of Form.CategoryAt, 0 or later
}

// Listed is one line of a list.
type Listed struct {
	*Row
	InstanceID string
	When       int64 // the creation, in Unix milliseconds

	title statemachine.Text // where a search has looked for it
}

const listedBytes = 400

// List calls yield with the forms of one category, the newest first and those of the same millisecond by id. It sees
// one consistent moment, with everything that was acknowledged before the call, and wakes nobody.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too long, and yield's own error when it
// stops early.
func List(ctx context.Context, lists *query.Service, req *ListRequest, yield func(Listed) error) error {
	return list(ctx, lists, req, req.selection(), nil, func(l Listed) error {
		if !req.has(&l) {
			return nil
		}
		return yield(l)
	})
}

func (req *ListRequest) has(l *Listed) bool {
	return req.Category == Every || l.CategoryAt(req.ArchivedBefore) == req.Category
}

// list calls yield with all rows of a selection, whatever their category. look, unless it is nil, sees each before.
func list(ctx context.Context, lists *query.Service, req *ListRequest, of query.Selection, look func(*query.Reader, *Listed) error, yield func(Listed) error) error {
	decode := func(from *query.Reader, r query.Row) (Listed, int, error) {
		row, err := ParseRow(r.Value)
		if err != nil {
			return Listed{}, 0, failure.Errorf(failure.ErrExecution, "list row of %s: %w", instanceid.Text(r.ID), err)
		}
		listed := Listed{Row: row, InstanceID: instanceid.Text(r.ID), When: int64(^binary.BigEndian.Uint64(r.Place))}
		if look != nil {
			err = look(from, &listed)
		}
		return listed, len(r.Value) + listedBytes, err
	}
	return failure.In("list", req.Kind.String()+"s", query.Rows(ctx, lists, req.User, of, decode, yield))
}

// What was created at or after ArchivedBefore was not completed before it.
func (req *ListRequest) selection() (of query.Selection) {
	kinds := []Kind{req.Kind}
	if req.WithInstances {
		kinds = append(kinds, KindInstance)
	}
	cut := behind(place(req.ArchivedBefore))
	for _, kind := range kinds {
		lists := listsOf[kind]
		in := func(list byte) key.Range {
			return key.Range{Prefix: key.ListPrefix(nil, key.EveryShard, list, string(req.User))}
		}
		current, underWay, done, ended := in(lists.current), in(lists.underWay), in(lists.done), in(lists.ended)
		switch {
		case req.Category == Every:
			of.Ranges = append(of.Ranges, current, underWay, done)
		case req.Category == Submitted:
			done.To, ended.To = cut, cut
			of.Ranges, of.Pointers = append(of.Ranges, underWay, done), append(of.Pointers, ended)
		case req.Category == Archived:
			done.From = cut
			of.Ranges = append(of.Ranges, done)
		default:
			of.Ranges = append(of.Ranges, current)
		}
	}
	if of.Pointers != nil {
		of.TargetsFrom, of.Target = cut, func(key, value []byte) ([]byte, error) { return targetOf(key, value, cut) }
	}
	return of
}

// targetOf is the key of the row to which that of a completed form leads; nil when it is in front of cut.
func targetOf(rowKey, value, cut []byte) ([]byte, error) {
	k, ok := key.Parse(rowKey)
	if !ok || len(value) != placeBytes {
		return nil, failure.Errorf(failure.ErrExecution, "row of a completed form")
	}
	for _, lists := range listsOf {
		if lists.ended == k.Kind && bytes.Compare(value, cut) >= 0 {
			return key.List(nil, k.Shard, lists.done, k.Name, int64(^binary.BigEndian.Uint64(value)), k.ID), nil
		}
	}
	return nil, nil
}
