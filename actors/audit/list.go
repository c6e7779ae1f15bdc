package audit

import (
	"context"
	"errors"
	"math"
	"sort"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Query asks for rows. The zero value asks for the oldest.
type Query struct {
	Since  time.Time // rows from then on; zero: all
	Actor  string    // of whom; empty: of everybody
	Action Action    // empty: all
	// After is Page.Next of the page before; 0: the first page.
	After  uint64
	Limit  int  // the most rows, at least 1
	Newest bool // the newest first
}

// Page is a part of the log.
type Page struct {
	Rows []Row
	// Next is where the next page goes on. In the order of the log, later rows are behind it when there are none yet.
	Next uint64
	More bool // there may be more now
}

// looksMax bounds the rows that are looked at for a page.
const looksMax = 20_000

// List returns a page of everything that was recorded before, anywhere.
func (l *Log) List(ctx context.Context, q *Query) (page Page, err error) {
	if l == nil {
		return page, nil
	}
	if err := l.await(ctx); err != nil {
		return page, err
	}
	snapshot := l.o.Store.Snapshot()
	defer func() { err = errors.Join(err, failure.OfStore(snapshot.Close())) }()
	from := uint64(1)
	if !q.Since.IsZero() {
		newest, _, err := last(snapshot)
		if err != nil {
			return page, failure.OfStore(err)
		}
		from = since(snapshot, newest, q.Since)
	}
	page.Next = q.After
	var c *persistence.Cursor
	if q.Newest {
		upper := key.PrefixEnd(key.AuditPrefix(nil))
		if q.After != 0 {
			upper = key.Audit(nil, q.After)
		}
		c = snapshot.Backward(key.Audit(nil, from), upper)
	} else {
		if q.After != math.MaxUint64 {
			from = max(from, q.After+1)
			page.Next = from - 1 // NB: after all rows that are too old, also when there are no others
		}
		c = snapshot.Cursor(key.Audit(nil, from), key.PrefixEnd(key.AuditPrefix(nil)))
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for looked := 0; ; looked++ {
		if len(page.Rows) == q.Limit || looked == looksMax {
			page.More = true
			return page, nil
		}
		if !c.Next() {
			return page, failure.OfStore(c.Err())
		}
		parts, _ := key.Parse(c.Key())
		page.Next = parts.Number
		row, err := parseRow(c.Value())
		if err != nil {
			continue // Verify says where
		}
		if (q.Actor == "" || row.Actor == q.Actor) && (q.Action == "" || row.Action == q.Action) {
			page.Rows = append(page.Rows, *row)
		}
	}
}

// since returns the number of the first row from a time on. Times only grow along the log. What cannot be read counts as earlier.
func since(at *persistence.Snapshot, newest uint64, from time.Time) uint64 {
	text := from.UTC().Format(statemachine.TimeLayout)
	return 1 + uint64(sort.Search(int(min(newest, math.MaxInt)), func(i int) bool {
		stored, err := at.Load(key.Audit(nil, uint64(i)+1))
		if err != nil {
			return false
		}
		row, err := parseRow(stored)
		return err == nil && row.TS >= text
	}))
}

// await returns when everything that was recorded before is here, and durable.
func (l *Log) await(ctx context.Context) error {
	if l.o.Current != nil {
		return l.o.Current(ctx)
	}
	return failure.OfStore(l.o.Store.AwaitDurable())
}

// Verify walks along everything that was recorded before, anywhere, as it is stored on this node.
func (l *Log) Verify(ctx context.Context) (Chain, error) {
	if l == nil {
		return Chain{Head: Genesis}, nil
	}
	if err := l.await(ctx); err != nil {
		return Chain{}, err
	}
	chain, err := Verify(func(prefix []byte, visit func(key, value []byte) error) error {
		return l.o.Store.Scan(prefix, func(k, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return visit(k, value)
		})
	})
	return chain, failure.OfStore(err)
}

// Verify walks along the log that scan finds, which is that of a store or of a snapshot. The error is that of scan.
func Verify(scan func(prefix []byte, visit func(key, value []byte) error) error) (Chain, error) {
	v := NewVerifier()
	err := scan(key.AuditPrefix(nil), func(_, value []byte) error {
		row, err := parseRow(value)
		if err != nil {
			v.Break(err)
		}
		if err != nil || !v.Next(row) {
			return errBroken
		}
		return nil
	})
	if errors.Is(err, errBroken) {
		err = nil
	}
	return v.Chain, err
}

var errBroken = errors.New("the chain is broken")
