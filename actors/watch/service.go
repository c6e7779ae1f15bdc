package watch

import (
	"context"
	"errors"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Instances is what watching asks of the instances.
type Instances interface {
	// Locate returns the id of an instance that the caller may see, and the sequence number of its last durable entry.
	Locate(ctx context.Context, caller *identity.Principal, workflowID, instanceID string) (key.ID, uint64, error)
}

// Options says how a Service works. All of it must be set.
type Options struct {
	Store     *persistence.Store
	Catalog   *catalog.Catalog
	Queries   *query.Service // for filters that take long
	Changes   *changefeed.Service
	Instances Instances
	Clock     func() time.Time
}

// Service tells watchers what is committed. Its methods are safe for concurrent use.
type Service struct {
	o       Options
	feeds   feeds
	stopped context.Context // stopped ends when Stop ends the watches
	stop    context.CancelFunc
}

var errStopped = errors.New("watching has stopped")

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{o: o, feeds: feeds{byKey: xsync.NewMap[feedKey, *Feed]()}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	o.Store.FollowShards(follower{s})
	return s
}

// Stop ends all calls of Watch, and refuses new ones.
func (s *Service) Stop() { s.stop() }

// Stopped is done when Stop was called.
func (s *Service) Stopped() context.Context { return s.stopped }

// Feeds lists the feeds that an instance's next entry goes to, when it is durable. In a cluster there are none: there
// the feeds get what becomes visible in the replicas of this node.
func (s *Service) Feeds(workflow string, id key.ID) []*Feed {
	if !s.o.Store.Alone() {
		return nil
	}
	return s.feeds.of(workflow, id)
}

// Sweep forgets feeds that nobody has watched for a while.
func (s *Service) Sweep(now time.Time) { s.feeds.sweep(now) }
