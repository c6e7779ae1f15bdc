package shard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/shard"
	"troupe/actors/shard/shardtest"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/storetest"
)

// TestAShardThatIsNotLedRests: a commit that was under way when the lead went may still begin a timer. NB: with a goroutine that does not
// rest, Wait does not return and the test ends by its timeout.
func TestAShardThatIsNotLedRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := persistence.Open("store", persistence.Options{FS: storetest.NewSlowDisk(), Log: zerolog.Nop(), Replication: storetest.Alone()})
		require.NoError(t, err)
		s := timer.New(timer.Options{Store: store, Clock: time.Now, Fire: func(timer.Row, func(error)) { t.Error("a timer came") }, Log: zerolog.Nop()})
		work := shardtest.Start(store, shard.Background{Name: "timers", Begin: s.Begin})
		s.Began(0, time.Now())
		synctest.Wait()
		work.Stop(t)
		assert.NoError(t, store.Close())
	})
}
