package form

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/persistence"
)

// splitSetting is kept when the lists of a store are as this program writes them.
const splitSetting = "form-lists"

const (
	// splitRows is how many rows one set of writes moves.
	splitRows = 1000
	// splitAgain is how often Run looks whether the store takes writes, and splitRetry
	// how long it waits after a failure.
	splitAgain = time.Second
	splitRetry = 30 * time.Second
)

// Lists brings the lists of a store to where this program writes them. Programs of the
// store's format 1 had all rows in what is the list of current forms now. Until that is
// done the lists can be read (ListRequest.Unsplit), and no instance may commit: it would
// take its rows to be where they are not. Its methods are safe for concurrent use.
type Lists struct {
	store *persistence.Store
	split atomic.Bool
}

// OpenLists splits the lists, once in the life of a store; where a crash cut that off it
// goes on. A store that takes no writes now, on a full disk, is left to Run. A store gets
// replicas when its lists are split, so it has nothing to do there.
func OpenLists(store *persistence.Store) (*Lists, error) {
	l := &Lists{store: store}
	if !store.Alone() {
		l.split.Store(true)
		return l, nil
	}
	if err := l.bring(context.Background()); err != nil && store.Accepting() == nil {
		return nil, err
	}
	return l, nil
}

// Run returns when the lists are split, which it does as soon as the store takes writes, or
// when ctx ends.
func (l *Lists) Run(ctx context.Context, log zerolog.Logger) {
	wait := splitAgain
	for !l.split.Load() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = splitAgain
		if l.store.Accepting() != nil {
			continue
		}
		if err := l.bring(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("the lists of forms are not as this program writes them, writes are refused")
			wait = splitRetry
		}
	}
}

// Ready returns nil once the lists are split; before, failure.ErrUnavailable.
func (l *Lists) Ready() error {
	if l.split.Load() {
		return nil
	}
	return failure.Errorf(failure.ErrUnavailable, "the lists of forms are being brought to this program's format")
}

// bring splits the lists unless that has been done.
func (l *Lists) bring(ctx context.Context) error {
	done := persistence.SettingKey(nil, splitSetting)
	_, err := l.store.Load(done)
	if errors.Is(err, persistence.ErrNotFound) {
		err = l.splitAll(ctx, done)
	}
	if err == nil {
		l.split.Store(true)
	}
	return err
}

func (l *Lists) splitAll(ctx context.Context, done []byte) error {
	for _, lists := range listsOf {
		for sh := range persistence.Shard(l.store.Shards()) {
			if err := l.splitOne(ctx, sh, lists.current); err != nil {
				return fmt.Errorf("split the lists of forms: %w", err)
			}
		}
	}
	w := l.store.NewWrites(persistence.Meta)
	w.Set(done, nil)
	return l.store.Commit(w)
}

// splitOne moves the rows of one list in one shard. A row that cannot be read stays:
// the list says so.
func (l *Lists) splitOne(ctx context.Context, sh persistence.Shard, list byte) error {
	w := l.store.NewWrites(sh)
	err := l.store.Scan(persistence.ListsPrefix(nil, sh, list), func(key, value []byte) error {
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
		err, w = l.store.Commit(w), l.store.NewWrites(sh)
		return errors.Join(err, ctx.Err())
	})
	return errors.Join(err, l.store.Commit(w), ctx.Err())
}
