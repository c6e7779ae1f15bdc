package shard_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/incident"
	"troupe/actors/shard"
	"troupe/actors/shard/shardtest"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// TestBackgroundWorkThatPanicsAgainAndAgain: it is restarted after pauses that grow, rests with an incident when it has panicked six times
// within a minute, and goes on when it can. The work of other shards, and other work of its own, notices nothing.
func TestBackgroundWorkThatPanicsAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := persistence.Open("store", persistence.Options{FS: storetest.NewSlowDisk(), Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		var seconds []int
		var others, ended atomic.Int64
		begun := time.Now()
		var fixed atomic.Bool
		work := shardtest.Start(
			store,
			shard.Background{Name: "spoiled", Begin: func(ctx context.Context, sh key.Shard, _ uint64) func() {
				return func() {
					if sh == 3 && !fixed.Load() {
						seconds = append(seconds, int(time.Since(begun)/time.Second))
						panic("planted")
					}
					<-ctx.Done()
					ended.Add(1)
				}
			}},
			shard.Background{Name: "fine", Begin: func(ctx context.Context, _ key.Shard, _ uint64) func() {
				return func() { others.Add(1); <-ctx.Done(); ended.Add(1) }
			}},
		)
		clocktest.Advance(100 * time.Second)
		if got, want := fmt.Sprint(seconds), "[0 1 3 7 15 31 91]"; got != want {
			t.Errorf("it ran at %s s, want %s", got, want)
		}
		if tree := work.System.Tree(); !strings.Contains(fmt.Sprintf("%+v", tree), "resting") {
			t.Errorf("the tree does not tell: %+v", tree)
		}
		var rows []*incident.Row
		if err := store.Scan(key.IncidentPrefix(nil, key.EveryShard), func(_, stored []byte) error {
			r, err := incident.Parse(stored)
			rows = append(rows, r)
			return err
		}); err != nil || len(rows) != 1 || rows[0].Workflow != incident.OfService || rows[0].Count != 2 || !strings.Contains(rows[0].Error, "spoiled of shard 3 failed") {
			t.Errorf("%d incidents, %v", len(rows), err)
		}
		shards := int64(store.Shards())
		if n := others.Load(); n != shards {
			t.Errorf("other work began %d times, want once for each of %d shards", n, shards)
		}
		fixed.Store(true)
		clocktest.Advance(time.Minute)
		work.Stop(t)
		if n := ended.Load(); n != 2*shards {
			t.Errorf("%d have ended, want all %d", n, 2*shards)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
