// Package shardtest runs background work below the actors of a store's shards in a test, without instances. Only tests import it.
package shardtest

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/incident"
	"troupe/actors/instance"
	"troupe/actors/shard"
	"troupe/persistence"
)

// Work is background work under supervision.
type Work struct {
	System    *actors.System
	Incidents *incident.Service
	shards    *shard.Shards
}

// Start begins it in all shards that are led.
func Start(store *persistence.Store, background ...shard.Background) *Work {
	w := &Work{System: actors.NewSystem(zerolog.Nop()), Incidents: incident.New(incident.Options{Store: store, Log: zerolog.Nop()})}
	w.shards = shard.New(shard.Options{
		Env: &instance.Env{Store: store, System: w.System, Clock: time.Now, Log: zerolog.Nop(), Incidents: w.Incidents}, Background: background,
	})
	w.Incidents.Start()
	w.shards.Start()
	return w
}

// Stop returns when all has ended.
func (w *Work) Stop(t testing.TB) {
	t.Helper()
	w.shards.Refuse()
	w.shards.StopBackground()
	if err := w.shards.Stop(context.Background(), func() string { return "" }); err != nil {
		t.Error(err)
	}
	w.Incidents.Stop()
	_ = w.System.Stop(context.Background())
}
