package pending

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/actors/query"
	"troupe/actors/timer"
	"troupe/persistence/key"
)

// The lists, as nodes name them to each other.
const (
	deliveries = "deliveries"
	incidents  = "incidents"
	timers     = "timers"
)

// asked is what a part of a page shall have.
type asked struct {
	List     string
	User     identity.UserID // asks: users take turns
	State    outbox.State    // of deliveries; 0: all
	Workflow string          // of timers; "": all
	After    []byte          // the place at which the page begins; nil: at the beginning
	Limit    int
}

// row is one of a page. Of a timer it has Timer, of others Key and Value. Without them it is the place behind which there may
// be more.
type row struct {
	Place      []byte // shard and the rest of the key; of timers, the rest alone
	Key, Value []byte
	Timer      *Timer
}

func (r row) isMark() bool { return r.Key == nil && r.Timer == nil }

func userOf(p *identity.Principal) identity.UserID {
	if p == nil {
		return ""
	}
	return p.ID
}

// scannedMax is how many rows a part of a page looks at.
const scannedMax = 100_000

// page calls take with the rows of a page.
func (l *Lists) page(ctx context.Context, of query.List, cursor string, in *asked, take func(row) error) (next string, err error) {
	if cursor != "" {
		if in.After, err = of.Position(cursor); err != nil {
			return "", err
		}
		if in.List != timers && len(in.After) < 2 {
			return "", query.ErrCursor
		}
	}
	n := 0
	visit := func(r row) error {
		switch {
		case r.isMark() || n == in.Limit:
			next = of.Cursor(r.Place) // NB: a mark is behind what was looked at
			return fanout.ErrEnough
		case in.List == timers:
			n++
			return take(r)
		}
		if err := take(r); err != nil {
			return err
		}
		if n++; n == in.Limit {
			next = of.Cursor(append(r.Place, 0)) // behind it
			return fanout.ErrEnough
		}
		return nil
	}
	if l.kind == nil {
		_, err = l.readPart(ctx, l.store.Numbered(), in, visit)
	} else {
		_, err = l.kind.Merge(ctx, in, fanout.Merging[row]{Order: compareRows, Ahead: in.Limit + 2}, visit)
	}
	if errors.Is(err, fanout.ErrEnough) {
		err = nil
	}
	return next, err
}

func compareRows(a, b row) int { return bytes.Compare(a.Place, b.Place) }

// readPart gives at most a row more than the page has, or a mark.
func (l *Lists) readPart(ctx context.Context, shards []key.Shard, in *asked, yield func(row) error) (end struct{}, err error) {
	var rows []row
	err = l.queries.Read(ctx, shards, in.User, func(from *query.Reader) error {
		switch in.List {
		case timers:
			rows, err = l.timersIn(from, in)
		case deliveries:
			rows, err = rowsIn(from, in, key.DeliveriesPrefix)
		case incidents:
			rows, err = rowsIn(from, in, key.IncidentPrefix)
		default:
			err = failure.Errorf(failure.ErrInvalid, "a list of %q", in.List)
		}
		return err
	})
	for _, r := range rows {
		if err == nil {
			err = yield(r)
		}
	}
	return end, err
}

func (l *Lists) timersIn(from *query.Reader, in *asked) (rows []row, err error) {
	c := from.Merge(key.Range{Prefix: key.TimerPrefix(nil, key.EveryShard), From: in.After})
	defer func() { err = errors.Join(err, failure.OfStore(c.Close())) }()
	var last timersOf
	for scanned := 0; c.Next(); scanned++ {
		if err := from.Step(); err != nil {
			return nil, err
		}
		if len(rows) == in.Limit || scanned == scannedMax {
			return append(rows, row{Place: bytes.Clone(c.Rest())}), nil
		}
		if workflow, _ := timer.Parse(c.Value()); in.Workflow == "" || workflow == in.Workflow {
			t, err := l.timerOf(from, &last, workflow, c.Key())
			if err != nil {
				return nil, err
			}
			if t != nil {
				rows = append(rows, row{Place: bytes.Clone(c.Rest()), Timer: t})
			}
		}
	}
	return rows, failure.OfStore(c.Err())
}

var errEnough = errors.New("enough")

func rowsIn(from *query.Reader, in *asked, prefix func([]byte, key.Shard) []byte) (rows []row, err error) {
	scanned := 0
	for _, sh := range from.Shards() {
		of := key.Range{Prefix: prefix(nil, sh)}
		place := binary.BigEndian.AppendUint16(nil, uint16(sh))
		switch order := bytes.Compare(place, in.After[:min(2, len(in.After))]); {
		case order < 0:
			continue
		case order == 0:
			of.From = in.After[2:]
		}
		var stopped error
		err := from.ScanRanges(func(k, value []byte) error {
			if stopped = from.Step(); stopped != nil {
				return stopped
			}
			at := append(bytes.Clone(place), k[len(of.Prefix):]...)
			if scanned++; len(rows) > in.Limit || scanned > scannedMax {
				rows, stopped = append(rows, row{Place: at}), errEnough
				return stopped
			}
			wanted, err := in.wants(value)
			if stopped = err; wanted {
				rows = append(rows, row{Place: at, Key: bytes.Clone(k), Value: bytes.Clone(value)})
			}
			return stopped
		}, of)
		switch {
		case errors.Is(stopped, errEnough):
			return rows, nil
		case stopped != nil:
			return nil, stopped
		case err != nil:
			return nil, failure.OfStore(err)
		}
	}
	return rows, nil
}

func (in *asked) wants(value []byte) (bool, error) {
	if in.State == "" {
		return true, nil
	}
	d, err := outbox.Parse(value)
	if err != nil {
		return false, damaged(err)
	}
	return d.State == in.State, nil
}
