// Package watch tells callers what is committed, while it happens. There is a feed for each workflow or instance that
// somebody watches; the store's goroutine puts entries into it, and never waits for a watcher. One that falls behind
// what is kept reads on in the store: of an instance in its history, of a workflow in the feed of package changefeed;
// what neither has, it is told as lost. Rights are asked again for each entry, and who the caller is before each event.
// When Watch has told Opened, every entry that is acknowledged from then on comes or is told as lost, also when another
// watch goes on behind its last event.
package watch

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Instances is what watching asks of the instances.
type Instances interface {
	// Locate returns the id of an instance that the caller may see, and the sequence number of its last durable entry.
	Locate(caller *identity.Principal, workflowID, instanceID string) (key.ID, uint64, error)
}

// Options says how a Service works. All but Fanout must be set.
type Options struct {
	Store     *persistence.Store
	Catalog   *catalog.Catalog
	Queries   *query.Service // for filters that take long
	Changes   *changefeed.Service
	Instances Instances
	Clock     func() time.Time
	Fanout    *fanout.Service // asks the nodes that lead the shards; nil: this node has all of them
}

// Service tells watchers what is committed. Its methods are safe for concurrent use.
type Service struct {
	o       Options
	feeds   feeds
	stopped context.Context // stopped ends when Stop ends the watches
	stop    context.CancelFunc
	kind    *fanout.Kind[partOf, event, struct{}] // nil: this node has all shards
}

var errStopped = errors.New("watching has stopped")

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{o: o, feeds: feeds{byKey: xsync.NewMap[feedKey, *Feed]()}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	o.Store.FollowShards(follower{s})
	if o.Fanout != nil {
		s.kind = fanout.NewKind(o.Fanout, "watch", s.readPart)
		s.kind.Live = true
	}
	return s
}

// Stop ends all calls of Watch, and refuses new ones.
func (s *Service) Stop() { s.stop() }

// Stopped is done when Stop was called.
func (s *Service) Stopped() context.Context { return s.stopped }

// Feeds lists the feeds that an instance's next entry goes to, when it is durable. In a cluster there are none: there
// the feeds get what becomes visible in the replicas of this node.
func (s *Service) Feeds(workflow string, id key.ID) []*Feed {
	if !s.o.Store.Standalone() {
		return nil
	}
	return s.feeds.of(workflow, id)
}

// Sweep forgets feeds that nobody has watched for a while.
func (s *Service) Sweep(now time.Time) { s.feeds.sweep(now) }

// follower has the feeds of a node told what becomes visible in its replicas, whichever node leads the instances.
type follower struct{ *Service }

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
	gone := of.Table != "" && record == nil
	if !gone && (entry == nil || record == nil || at.ID != of.ID) {
		return // no step of an instance
	}
	feeds := s.feeds.of(of.Workflow, of.ID)
	if feeds == nil {
		return
	}
	if gone {
		publish(feeds, &Item{Gone: true, Shard: sh})
		return
	}
	item := s.itemOf(of, record, entry)
	if item == nil {
		s.feeds.breakAll()
		return
	}
	item.Shard, item.Place = sh, place
	publish(feeds, item)
}

func publish(feeds []*Feed, item *Item) {
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

// Request asks for what is committed from now on.
type Request struct {
	Caller      *identity.Principal
	Reauthorize func() (*identity.Principal, error) // Reauthorize returns the caller as of now, or an error that ends the watch
	WorkflowID  string
	InstanceID  string // the one instance to watch; empty: all that the caller may see
	// Filter is the text of the filter parameter; empty matches all. It looks at the instance as the entry left it.
	Filter      string
	LastEventID string // the position after which to go on; empty: the present
	// ByPrivilege is set before Opened: the caller is an operator who may read all of the workflow, or filter by
	// svcPrivate, only because of a privilege.
	ByPrivilege bool
}

// Event is one thing that a watcher is told.
type Event struct {
	Kind Kind
	ID   string // the position in the stream, which resumes it; empty for most of the Heartbeats
	Data []byte // a JSON object, valid during the call; nil for Opened and Heartbeat
}

// Kind is what an Event says.
type Kind uint8

const (
	Opened    Kind = iota // Opened comes first: the request is accepted
	Entry                 // one history entry with the positions that it led to
	Lost                  // Lost says that entries are missing here
	Heartbeat             // Heartbeat says that nothing happened for a while
)
