// Package retention deletes instances that have been done for as long as the newest version of their workflow says. The
// commit in which an instance is done notes when that was, whatever the workflow says then; so what is due is the
// beginning of a list, and another version changes it at once. A goroutine for each shard looks there every few seconds
// while the shard is led here. It remembers nothing that a start could lose.
package retention

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

const (
	// lookEvery is the time between two looks at a shard.
	lookEvery = 10 * time.Second
	// atOnce is how many instances all shards together delete at a time: it leaves the store and the processors to callers.
	atOnce = 2
	// pageMax is how many rows are read at a time.
	pageMax = 64
	// loggedMax is how many instances that cannot be deleted a shard remembers, so that each is logged once.
	loggedMax = 1000
)

// Put writes when an instance was done, into the commit in which it is.
func Put(w *persistence.Batch, sh key.Shard, workflow string, id key.ID, at time.Time) {
	ms := at.UnixMilli()
	w.Set(key.Done(nil, sh, workflow, ms, id), nil)
	w.Set(key.DoneTime(nil, sh, id), binary.AppendVarint(nil, ms))
}

// Rows are the keys of what Put has written. They go with an instance, or when it is done no more.
func Rows(store *persistence.Store, sh key.Shard, workflow string, id key.ID) ([][]byte, error) {
	own := key.DoneTime(nil, sh, id)
	stored, err := store.Load(own)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	ms, err := ParseTime(stored)
	if err != nil {
		return nil, failure.Errorf(failure.ErrExecution, "when an instance was done: %w", err)
	}
	return [][]byte{own, key.Done(nil, sh, workflow, ms, id)}, nil
}

// StillDone is failure.ErrPrecondition unless an instance has been done since a time, in Unix milliseconds: it goes on, or was done again.
func StillDone(store *persistence.Store, sh key.Shard, workflow string, id key.ID, since int64) error {
	_, err := store.Load(key.Done(nil, sh, workflow, since, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return failure.Refuse(failure.ErrPrecondition, "it has gone on")
	}
	return failure.OfStore(err)
}

// ParseTime reads the row of when an instance was done, in Unix milliseconds.
func ParseTime(stored []byte) (int64, error) {
	ms, n := binary.Varint(stored)
	if n != len(stored) || n == 0 {
		return 0, persistence.ErrCorrupt
	}
	return ms, nil
}

// Options configures a Service. All fields are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	Log   zerolog.Logger
	// Retentions returns those of the newest versions.
	Retentions func() []catalog.Retention
	// Delete deletes an instance that is StillDone, and returns when that is durable.
	Delete func(ctx context.Context, workflow string, id key.ID, since int64) error
}

// Service deletes what is due in all shards that are led here.
type Service struct {
	o     Options
	turns chan struct{} // has room for atOnce

	mu      sync.Mutex
	deleted map[string]int // guarded by mu; by workflow, since told
	told    time.Time      // guarded by mu
}

// New returns a service that deletes nothing before Begin.
func New(o Options) *Service {
	return &Service{o: o, turns: make(chan struct{}, atOnce), deleted: map[string]int{}}
}

// tell logs how many instances all shards have deleted, once between two looks.
func (s *Service) tell() {
	now := s.o.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.deleted) == 0 || now.Sub(s.told) < lookEvery {
		return
	}
	for workflow, n := range s.deleted {
		s.o.Log.Info().Str("workflow", workflow).Int("instances", n).Msg("instances were deleted: they were done for as long as the retention of their workflow says")
	}
	clear(s.deleted)
	s.told = now
}

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, _ uint64) (run func()) {
	x := &shard{Service: s, number: sh, ctx: ctx, logged: map[key.ID]struct{}{}}
	return x.run
}

type shard struct {
	*Service
	number key.Shard
	ctx    context.Context //nolint:containedctx // of the epoch
	logged map[key.ID]struct{}
}

func (x *shard) run() {
	for x.ctx.Err() == nil {
		for _, r := range x.o.Retentions() {
			if err := x.delete(r); err != nil && x.ctx.Err() == nil && !errors.Is(err, failure.ErrNotLeader) && !errors.Is(err, persistence.ErrClosed) {
				x.o.Log.Warn().Err(err).Str("workflow", r.Workflow).Msg("instances that are due are not deleted now")
			}
		}
		x.tell()
		wait.Sleep(x.ctx, lookEvery)
	}
}

// delete deletes what is due of a workflow, the oldest first. Its error is of the shard; what keeps a single instance
// keeps no other one.
func (x *shard) delete(r catalog.Retention) error {
	var from []byte
	for x.ctx.Err() == nil {
		of := due(x.number, r, x.o.Clock())
		of.From = from
		all, last, err := x.page(of)
		if err != nil || len(all) == 0 {
			return err
		}
		from = append(last, 0)
		for _, d := range all {
			if err := x.deleteOne(r.Workflow, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// due has the instances of a shard that a retention deletes.
func due(sh key.Shard, r catalog.Retention, now time.Time) key.Range {
	return key.Range{Prefix: key.DonePrefix(nil, sh, r.Workflow), To: key.TimePlace(now.Add(-r.Done).UnixMilli() + 1)}
}

var errEnough = errors.New("enough")

// done is an instance, and since when it is done.
type done struct {
	id    key.ID
	since int64
}

func (x *shard) page(of key.Range) (all []done, last []byte, err error) {
	err = x.o.Store.ScanRanges(func(row, _ []byte) error {
		place, since, id, ok := key.ParseDone(row)
		if !ok {
			return fmt.Errorf("%w: list of done instances", persistence.ErrCorrupt)
		}
		all, last = append(all, done{id, since}), append(last[:0], place...)
		if len(all) == pageMax {
			return errEnough
		}
		return nil
	}, of)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, last, failure.OfStore(err)
}

func (x *shard) deleteOne(workflow string, d done) error {
	select {
	case x.turns <- struct{}{}:
		defer func() { <-x.turns }()
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
	err := x.o.Delete(x.ctx, workflow, d.id, d.since)
	if err == nil {
		x.mu.Lock()
		x.deleted[workflow]++
		x.mu.Unlock()
	}
	switch {
	case err == nil, errors.Is(err, failure.ErrNotFound), errors.Is(err, failure.ErrInUse), errors.Is(err, failure.ErrPrecondition): // the next look tries again what is due then
		return nil
	case errors.Is(err, failure.ErrExecution): // its row cannot be read
		if _, known := x.logged[d.id]; !known && len(x.logged) < loggedMax {
			x.logged[d.id] = struct{}{}
			x.o.Log.Error().Err(err).Str("workflow", workflow).Str("instance", instanceid.Text(d.id)).Msg("an instance is due to be deleted, and cannot be")
		}
		return nil
	}
	return err
}
