package export

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

const (
	lookMin   = 100 * time.Millisecond // the least time between two looks at a feed that is written to
	lookMax   = time.Second            // the most: leaderships change without a write
	restShare = 3                      // how many times as long as a look took it rests, so that workflows have the processors
	againMin  = time.Second            // the pause after a failure doubles up to againMax
	againMax  = time.Minute
	keepEvery = time.Minute // how often a position is written although nothing was exported
)

// exporter runs one export on this node. Its goroutine has everything that mu does not guard.
type exporter struct {
	ctx context.Context //nolint:containedctx // of the service
	o   *Options
	of  Export

	led    map[key.Shard]uint64 // the epochs of the shards whose positions are known
	kept   changefeed.Cursor    // the positions as they are stored
	since  changefeed.Cursor    // behind what was gathered
	rows   []Row                // gathered and not confirmed
	bytes  int
	first  time.Time // when the first of them was gathered
	again  time.Duration
	keptAt time.Time

	failures atomic.Int64
	mu       struct {
		sync.Mutex
		through, waits key.FeedPlace // of the newest confirmed row, and of the oldest one that is not; 0: none
		rows, gaps     int64
		err            error // of the latest attempt
		failing        time.Time
	}
}

func newExporter(ctx context.Context, o *Options, e Export) *exporter {
	n := o.Store.Shards()
	return &exporter{ctx: ctx, o: o, of: e, led: map[key.Shard]uint64{}, kept: make(changefeed.Cursor, n), since: make(changefeed.Cursor, n)}
}

func (x *exporter) run() {
	x.led, x.rows, x.bytes = map[key.Shard]uint64{}, nil, 0 // NB: after a panic it begins at what is stored
	for x.ctx.Err() == nil {
		written := x.o.Store.Written() // NB: before the look
		begun := time.Now()
		more, err := x.look()
		took := time.Since(begun)
		rest := max(lookMin, restShare*took)
		switch {
		case err == nil && x.isDue():
			err = x.write()
		case err == nil && more:
			rest = restShare * took
		case err == nil:
			if len(x.rows) == 0 {
				x.recovered()
			}
			x.await(written)
		}
		if err != nil {
			rest = x.failed(err)
		}
		wait.Sleep(x.ctx, rest)
	}
}

// await waits until there may be more, or what there is must be written.
func (x *exporter) await(written <-chan struct{}) {
	most := lookMax
	if len(x.rows) > 0 {
		most = min(most, time.Until(x.first.Add(x.of.Target.Gathers().For)))
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	case <-x.ctx.Done():
	}
}

func (x *exporter) isDue() bool {
	g := x.of.Target.Gathers()
	return len(x.rows) > 0 && (x.bytes >= g.Bytes || time.Since(x.first) >= g.For)
}

// look gathers what follows, unless there is enough, or what there is failed: it is given again as it was. more says that
// it has not seen all.
func (x *exporter) look() (more bool, err error) {
	if x.o.Held != nil && x.o.Held() {
		return false, nil
	}
	if err := x.lead(); err != nil || len(x.led) == 0 || x.bytes >= x.of.Target.Gathers().Bytes || x.again > 0 && len(x.rows) > 0 {
		return false, err
	}
	shards := x.shards()
	now, err := x.o.Changes.Now(shards)
	if err != nil || x.since.Has(now) {
		return false, errors.Join(err, x.keepNowAndThen())
	}
	entries, more, err := x.o.Changes.Follow(x.ctx, shards, x.since, x.of.Workflows)
	switch failure.Of(err).Kind {
	case failure.ErrGone:
		return true, x.skip(shards)
	case failure.ErrNotLeader:
		return false, nil // the next look sees who leads
	}
	for _, e := range entries {
		x.gather(e.Place, RowOf(e))
	}
	return more, err
}

func (x *exporter) shards() (shards []key.Shard) {
	for sh := range x.led {
		shards = append(shards, sh)
	}
	slices.Sort(shards)
	return shards
}

func (x *exporter) gather(at key.FeedPlace, row Row) {
	if len(x.rows) == 0 {
		x.first = time.Now()
		x.mu.Lock()
		x.mu.waits = at
		x.mu.Unlock()
	}
	x.rows = append(x.rows, row)
	x.bytes += len(row.Text)
}

// lead finds out which shards are led here. When they are others than before, it begins again at the positions that are
// stored: another node may have gone on behind them.
func (x *exporter) lead() error {
	changed := false
	for sh := range key.Shard(x.o.Store.Shards()) {
		epoch := x.o.Store.Epoch(sh)
		if epoch == x.led[sh] {
			continue
		}
		changed = true
		delete(x.led, sh)
		if epoch == 0 {
			continue
		}
		place, err := x.load(sh, epoch)
		if err != nil {
			return err
		}
		x.led[sh], x.kept[sh] = epoch, place
	}
	if changed {
		copy(x.since, x.kept)
		x.clear()
	}
	return nil
}

func (x *exporter) clear() {
	x.rows, x.bytes = nil, 0
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.waits = 0
}

// load reads the position in a shard. A new export begins at the oldest entry, and notes that: what is removed from then
// on is missing.
func (x *exporter) load(sh key.Shard, epoch uint64) (key.FeedPlace, error) {
	stored, err := x.o.Store.Load(key.Export(nil, sh, x.of.Name))
	if errors.Is(err, persistence.ErrNotFound) {
		oldest, err := x.o.Changes.Oldest([]key.Shard{sh})
		if err != nil {
			return 0, err
		}
		w := x.o.Store.NewBatchIn(sh, epoch)
		w.Set(key.Export(nil, sh, x.of.Name), appendPosition(nil, oldest[sh]))
		return oldest[sh], x.o.Store.Commit(w)
	}
	if err != nil {
		return 0, err
	}
	return parsePosition(stored)
}

const positionFormat = 1

func appendPosition(dst []byte, place key.FeedPlace) []byte {
	return binary.BigEndian.AppendUint64(append(dst, positionFormat), uint64(place))
}

func parsePosition(stored []byte) (key.FeedPlace, error) {
	if len(stored) != 9 || stored[0] != positionFormat {
		return 0, fmt.Errorf("%w: the position of an export", persistence.ErrCorrupt)
	}
	return key.FeedPlace(binary.BigEndian.Uint64(stored[1:])), nil
}

// skip goes on at the oldest entry where those before were removed.
func (x *exporter) skip(shards []key.Shard) error {
	oldest, err := x.o.Changes.Oldest(shards)
	if err != nil {
		return err
	}
	for _, sh := range shards {
		if x.since[sh] >= oldest[sh] {
			continue
		}
		row := gapRow(sh, x.since[sh], oldest[sh], time.Now())
		x.o.Log.Error().Str("export", x.of.Name).RawJSON("gap", row.Text).
			Msg("the feed of changes no longer has entries that were not exported: they are missing in the target; changesKeptFor and changesMax say how long it keeps them")
		x.gather(oldest[sh], row)
		x.mu.Lock()
		x.mu.gaps++
		x.mu.Unlock()
	}
	x.since.Raise(oldest)
	return nil
}

// write gives the target what was gathered, and moves the positions when it has confirmed that.
func (x *exporter) write() error {
	if err := x.of.Target.Write(x.ctx, x.rows); err != nil {
		return err
	}
	n := len(x.rows)
	x.clear()
	x.mu.Lock()
	x.mu.rows += int64(n)
	x.mu.through = slices.Max(x.since)
	x.mu.Unlock()
	x.recovered()
	return x.keep()
}

func (x *exporter) recovered() {
	x.again = 0
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.err != nil {
		x.mu.err = nil
		x.o.Log.Info().Str("export", x.of.Name).Msg("the export goes on")
	}
}

func (x *exporter) keepNowAndThen() error {
	if len(x.rows) > 0 || time.Since(x.keptAt) < keepEvery {
		return nil
	}
	return x.keep()
}

type confirmation struct {
	sh key.Shard
	to chan<- kept
}

type kept struct {
	sh  key.Shard
	err error
}

// Committed implements persistence.Waiter.
func (c confirmation) Committed(err error) { c.to <- kept{c.sh, err} }

// keep writes the positions. One that cannot be written is written with the next ones, or read again from the next epoch on.
func (x *exporter) keep() error {
	x.keptAt = time.Now()
	to, n := make(chan kept, len(x.led)), 0
	for sh, epoch := range x.led {
		if x.since[sh] == x.kept[sh] {
			continue
		}
		w := x.o.Store.NewBatchIn(sh, epoch)
		w.Set(key.Export(nil, sh, x.of.Name), appendPosition(nil, x.since[sh]))
		x.o.Store.Append(w, confirmation{sh, to})
		n++
	}
	var faults []error
	for range n {
		switch k := <-to; {
		case k.err == nil:
			x.kept[k.sh] = x.since[k.sh]
		case !errors.Is(k.err, persistence.ErrNotLed):
			faults = append(faults, k.err)
		}
	}
	return errors.Join(faults...)
}

// failed notes a failure, and returns how long to wait. Only the first one in a row is logged.
func (x *exporter) failed(err error) time.Duration {
	if x.ctx.Err() != nil {
		return 0
	}
	x.failures.Add(1)
	x.again = min(max(2*x.again, againMin), againMax)
	x.mu.Lock()
	if x.mu.err == nil {
		x.mu.failing = time.Now()
		x.o.Log.Warn().Err(err).Str("export", x.of.Name).Str("to", x.of.Target.String()).Msg("an export fails, and is tried again")
	}
	x.mu.err = err
	x.mu.Unlock()
	return x.again
}

func (x *exporter) status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := Status{Name: x.of.Name, Target: x.of.Target.String(), Workflows: x.of.Workflows, Rows: x.mu.rows, Gaps: x.mu.gaps}
	if x.mu.through > 0 {
		s.Position = time.UnixMilli(x.mu.through.Time()).UTC()
	}
	if x.mu.waits > 0 {
		s.LagSeconds = max(0, time.Since(time.UnixMilli(x.mu.waits.Time())).Seconds())
	}
	if x.mu.err != nil {
		s.Error = x.mu.err.Error()
	}
	return s
}

func (x *exporter) stuck() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.err == nil || time.Since(x.mu.failing) < failingMax {
		return nil
	}
	return fmt.Errorf("the export %s fails: %w", x.of.Name, x.mu.err)
}
