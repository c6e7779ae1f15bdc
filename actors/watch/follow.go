package watch

import (
	"bytes"

	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// follower has the feeds of a node told what becomes visible in its replicas, whichever node leads the instances.
type follower struct{ *Service }

// Written implements persistence.ShardFollower.
func (s follower) Written(sh key.Shard, each func(visit func(key, value []byte))) {
	if s.feeds.byKey.Size() == 0 {
		return
	}
	var record, entry []byte
	var of, at key.Parts
	var place key.FeedPlace
	each(func(rowKey, value []byte) {
		switch k, _ := key.Parse(rowKey); k.Table {
		case "record":
			of, record = k, value
		case "entry":
			at, entry = k, value
		case "feed":
			place = key.FeedPlace(max(uint64(place), k.Number)) // the other one is the floor
		}
	})
	if entry == nil || record == nil || at.ID != of.ID {
		return // no step of an instance
	}
	feeds := s.feeds.of(of.Workflow, of.ID)
	if feeds == nil {
		return
	}
	item := s.itemOf(of, record, entry)
	if item == nil {
		s.feeds.breakAll()
		return
	}
	item.Shard, item.Place = sh, place
	for _, f := range feeds {
		f.Publish(item)
	}
}

func (s follower) itemOf(of key.Parts, record, entry []byte) *Item {
	stored, err := statemachine.ParseRecord(bytes.Clone(record))
	if err != nil {
		return nil
	}
	definition, here := s.o.Catalog.VersionHere(of.Workflow, stored.Version)
	if !here {
		return nil
	}
	name := instanceid.Text(of.ID)
	state, err := definition.Restore(name, stored)
	text, ok := history.Ending(bytes.Clone(entry), state.Ends())
	if err != nil || !ok {
		return nil
	}
	return &Item{
		ID: of.ID, Name: name, Sequence: state.Sequence, Entry: text, States: definition.States(&state), State: state, Of: definition,
	}
}

// Skipped implements persistence.ShardFollower. Streams go on from the store when their clients come back.
func (s follower) Skipped(key.Shard) { s.feeds.breakAll() }
