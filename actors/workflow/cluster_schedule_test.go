package workflow_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"troupe/persistence/key"
)

const minutely = `
id: minutely
schedules: {often: {cron: '* * * * *', missed: all}}
stateMachines: {main: {initial: open, states: {open: {on: {go: end}}, end: {type: final}}}}
`

// TestSchedulesOnACluster: each run is made once, whichever node leads at its time.
func TestSchedulesOnACluster(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c := newCluster(t)
		r := rand.New(rand.NewPCG(5, 11))
		for range rounds {
			c.fault(r)
			c.pass(30 * time.Second)
		}
		c.pass(2 * time.Minute)
		now := time.Now()
		want := int64(now.Sub(begun) / time.Minute)
		if now.Truncate(time.Minute).Equal(now) {
			c.pass(time.Second)
		}
		for _, n := range c.nodes {
			made, err := n.Store.CountAll(key.CountPrefix(nil, key.EveryShard, "minutely"))
			records := int64(0)
			c.must(n.Store.Scan(key.RecordPrefix(nil, key.EveryShard, "minutely"), func(_, _ []byte) error { records++; return nil }))
			if err != nil || made != want || records != want {
				t.Errorf("%s: %d runs and %d instances in %s, %v, want %d", n.Name, made, records, now.Sub(begun), err, want)
			}
			n.stop()
		}
	})
}
