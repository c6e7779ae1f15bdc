package shard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/schedule"
	"troupe/actors/shard"
	"troupe/actors/shard/shardtest"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// bench runs schedules whose instances are made by a test. The bubble's clock begins at midnight.
type bench struct {
	*schedule.Service
	work  *shardtest.Work
	t     testing.TB
	store *persistence.Store
	all   []catalog.Schedule
	// broken has the next look panic, and looks counts them.
	broken atomic.Bool
	looks  atomic.Int64

	mu     sync.Mutex
	create func(c *schedule.Creation) error // guarded by mu
	made   []run                            // guarded by mu
}

// run is one that was made.
type run struct {
	workflow string
	due      time.Time
}

func testRuns(t *testing.T, test func(b *bench), workflows ...string) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, create: func(*schedule.Creation) error { return nil }}
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		b.must(err)
		for _, text := range workflows {
			d, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text + "stateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n")})
			b.must(err)
			for _, s := range d.Schedules {
				b.all = append(b.all, catalog.Schedule{Workflow: string(d.ID), Schedule: s})
			}
		}
		disk := storetest.NewDisk()
		b.store, err = disk.Open(persistence.Options{Log: zerolog.Nop()})
		b.must(err)
		b.begin()
		clocktest.Advance(time.Second)
		test(b)
		b.work.Stop(t)
		b.must(b.store.Close())
	})
}

func (b *bench) begin() {
	b.Service = schedule.New(schedule.Options{
		Held:  func() bool { return false },
		Store: b.store, Clock: func() time.Time { b.looks.Add(1); return time.Now() }, Log: zerolog.Nop(), Create: b.make,
		Schedules: func() []catalog.Schedule {
			if b.broken.Swap(false) {
				panic("the look")
			}
			return b.all
		},
	})
	b.work = shardtest.Start(b.store, shard.Background{Name: "schedules", Begin: b.Begin})
}

func (b *bench) must(err error) {
	if err != nil {
		b.t.Helper()
		b.t.Fatal(err)
	}
}

// make is Options.Create.
func (b *bench) make(_ context.Context, c *schedule.Creation) error {
	b.mu.Lock()
	create := b.create
	b.mu.Unlock()
	if err := create(c); err != nil {
		return err
	}
	w := b.store.NewBatch(b.store.ShardOf(c.ID))
	c.Writes(w)
	if err := b.store.Commit(w); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, run{c.Workflow, c.At})
	return nil
}

// by sets how instances are made from now on.
func (b *bench) by(create func(c *schedule.Creation) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.create = create
}

// of returns the times of the runs of a workflow, as minutes behind midnight.
func (b *bench) of(workflow string) (minutes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.made {
		if r.workflow == workflow {
			minutes = append(minutes, int(r.due.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))/time.Minute))
		}
	}
	return minutes
}

func upTo(from, to int) (out []int) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// many is a workflow with the most schedules that a definition has, all due each minute.
func many() string {
	var out strings.Builder
	out.WriteString("id: many\nschedules:\n")
	for n := range 100 {
		fmt.Fprintf(&out, "  s%d: {cron: '* * * * *'}\n", n)
	}
	return out.String()
}

const one = "id: one\nschedules: {often: {cron: '* * * * *', missed: skip}}\n"

// TestWorkflowsTakeTurns: one with a hundred schedules has no more of the pool than one with a single one, and each run holds up
// only its own.
func TestWorkflowsTakeTurns(t *testing.T) {
	testRuns(t, func(b *bench) {
		next, waiting := make(chan struct{}), 0
		b.by(func(*schedule.Creation) error {
			b.mu.Lock()
			waiting++
			b.mu.Unlock()
			<-next
			return nil
		})
		clocktest.Advance(time.Minute)
		assert.Equal(t, 4, waiting, "runs are made at a time, want 4")
		for range 4 { // those that were there first
			next <- struct{}{}
		}
		synctest.Wait()
		for range 4 { // and the next four
			next <- struct{}{}
		}
		synctest.Wait()
		assert.Equal(t, []int{1}, b.of("one"), "behind eight runs the one schedule of the other workflow")
		close(next)
		b.by(func(*schedule.Creation) error { return nil })
		synctest.Wait()
		assert.Len(t, b.of("many"), 100, "runs in all, want 100")
	}, many(), one)
}

// TestWhatIsLateIsNotMissed: a service that was there and could not create anything makes all runs, although the schedule says skip.
func TestWhatIsLateIsNotMissed(t *testing.T) {
	for what, refusal := range map[string]error{"the store takes nothing": failure.ErrUnavailable, "the quota is used up": failure.ErrQuota} {
		t.Run(what, func(t *testing.T) {
			testRuns(t, func(b *bench) {
				b.by(func(*schedule.Creation) error { return refusal })
				clocktest.Advance(30 * time.Minute)
				b.by(func(*schedule.Creation) error { return nil })
				clocktest.Advance(time.Second)
				got := b.of("one")
				assert.True(t, slices.Equal(got, upTo(1, 30)), "got the runs of %v, want those of each minute up to 30", got)
			}, one)
		})
	}
	t.Run("a run takes long", func(t *testing.T) {
		testRuns(t, func(b *bench) {
			b.by(func(*schedule.Creation) error { <-time.After(10 * time.Minute); return nil })
			clocktest.Advance(10*time.Minute + 30*time.Second)
			b.by(func(*schedule.Creation) error { return nil })
			clocktest.Advance(time.Minute)
			got := b.of("one")
			assert.True(t, slices.Equal(got, upTo(1, 11)), "got the runs of %v, want those of each minute up to 11", got)
		}, one)
	})
}

// TestWhatNobodyWasThereForIsMissed, but for the minute before the start.
func TestWhatNobodyWasThereForIsMissed(t *testing.T) {
	testRuns(t, func(b *bench) {
		b.work.Stop(t)
		clocktest.Advance(10*time.Minute + 30*time.Second)
		b.begin()
		clocktest.Advance(time.Second)
		assert.Equal(t, []int{10}, b.of("one"), "skip: got the runs")
		got := b.of("all")
		assert.True(t, slices.Equal(got, upTo(1, 10)), "all: got the runs of %v, want those up to 10", got)
		clocktest.Advance(time.Minute)
		assert.Equal(t, []int{10, 11}, b.of("one"), "a minute later: got the runs")
	}, one, "id: all\nschedules: {often: {cron: '* * * * *', missed: all}}\n")
}

// TestAPausedScheduleCostsNothing: its shard looks at the clock once a second, also when the time of its next run has passed.
func TestAPausedScheduleCostsNothing(t *testing.T) {
	testRuns(t, func(b *bench) {
		b.must(b.Change(t.Context(), "one", "often", schedule.Pause))
		clocktest.Advance(2 * time.Minute)
		before := b.looks.Load()
		clocktest.Advance(time.Minute)
		assert.LessOrEqual(t, b.looks.Load()-before, int64(61*b.store.Shards()), "looks in a minute")
		assert.Empty(t, b.of("one"))
	}, one)
}

// TestSchedulesGoOnAfterAPanic, of the goroutine that looks at the clock and of a run.
func TestSchedulesGoOnAfterAPanic(t *testing.T) {
	testRuns(t, func(b *bench) {
		before, once := guard.Panics(), true
		b.by(func(*schedule.Creation) error {
			if once {
				once = false
				panic("a run")
			}
			return nil
		})
		clocktest.Advance(time.Minute + 2*time.Second)
		b.broken.Store(true)
		clocktest.Advance(time.Minute + 2*time.Second)
		got := b.of("one")
		assert.True(t, slices.Equal(got, []int{1, 2}) && !b.broken.Load(), "got the runs of %v, want both", got)
		n := guard.Panics() - before
		assert.Equal(t, int64(2), n, "panics were counted, want 2")
	}, one)
}
