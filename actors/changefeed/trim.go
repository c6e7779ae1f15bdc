package changefeed

import (
	"errors"

	"troupe/persistence"
	"troupe/persistence/key"
)

// slack is the part of a bound by which a feed may be over it, so that rows go many at a time.
const slack = 64

// Trim removes the rows that are too old or too many, but for the last one of a shard, in the shards that this node
// leads.
func (s *Service) Trim() {
	for n := range s.o.Store.Shards() {
		sh := key.Shard(n)
		epoch := s.o.Store.Epoch(sh)
		if epoch == 0 {
			continue
		}
		last, err := s.removable(sh)
		if err == nil && last > 0 {
			w := s.o.Store.NewWritesIn(sh, epoch)
			persistence.TrimFeed(w, last)
			err = s.o.Store.Commit(w)
		}
		if err != nil && !errors.Is(err, persistence.ErrNotLed) && !errors.Is(err, persistence.ErrClosed) {
			s.o.Log.Warn().Err(err).Uint16("shard", n).Msg("the feed of changes cannot be trimmed")
		}
	}
}

func (s *Service) removable(sh key.Shard) (key.FeedPlace, error) {
	sn := s.o.Store.Snapshot()
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	end, err := sn.FeedEnd(sh)
	if err != nil || end.Place == 0 {
		return 0, err
	}
	f := shardFeed{sh: sh}
	f.cursor = sn.Cursor(key.Feed(nil, sh, 1), key.PrefixEnd(key.FeedPrefix(nil, sh)))
	before := sn.Backward(key.Feed(nil, sh, 1), key.PrefixEnd(key.FeedPrefix(nil, sh)))
	defer func() { _, _ = f.cursor.Close(), before.Close() }() // read-only: nothing to lose
	first := f.at(1)
	if f.err != nil {
		return 0, f.err
	}
	var cut key.FeedPlace // rows before it go
	now := s.o.Clock()
	if kept := s.o.KeptFor; first.Place.Time() < now.Add(-kept-kept/slack).UnixMilli() {
		cut = key.FeedPlaceAt(now.Add(-kept).UnixMilli())
	}
	if most := uint64(s.o.RowsMax); end.Ordinal-first.Ordinal >= most+most/slack {
		cut = max(cut, f.place(first.Place, end.Place, end.Ordinal-most+1))
	}
	cut = min(cut, end.Place) // NB: the last row stays, it has the ordinal and the place behind which the next one comes
	if cut == 0 || f.err != nil || !before.Seek(key.Feed(nil, sh, cut)) {
		return 0, errors.Join(f.err, before.Err())
	}
	row, ok := persistence.ParseFeedRow(before.Key(), before.Value())
	if !ok {
		return 0, persistence.ErrCorrupt
	}
	return row.Place, nil
}

type shardFeed struct {
	sh     key.Shard
	cursor *persistence.Cursor
	err    error // the first one
}

func (f *shardFeed) at(place key.FeedPlace) persistence.FeedRow {
	if f.err != nil {
		return persistence.FeedRow{}
	}
	if !f.cursor.Seek(key.Feed(nil, f.sh, place)) {
		f.err = errors.Join(persistence.ErrCorrupt, f.cursor.Err())
		return persistence.FeedRow{}
	}
	row, ok := persistence.ParseFeedRow(f.cursor.Key(), f.cursor.Value())
	if !ok {
		f.err = persistence.ErrCorrupt
	}
	return row
}

// Ordinals grow with places: it halves what is left.
func (f *shardFeed) place(first, last key.FeedPlace, ordinal uint64) key.FeedPlace {
	for first < last && f.err == nil {
		middle := first + (last-first)/2
		if row := f.at(middle); row.Ordinal < ordinal {
			first = row.Place + 1
		} else {
			last = middle
		}
	}
	return first
}
