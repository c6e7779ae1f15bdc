package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"troupe/actors/audit"
	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/migration"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway"
	"troupe/gateway/leader"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// A node of a cluster opens the cluster port (claimNode), opens the store with Replication, greets the others, gets its
// shards (joinNode), waits for what is published, and answers the others (serveNode). It stops by handing its
// leaderships over.

// NB: those come to the same port with the paths that they have. pathAdminOfPeer cannot begin one: no route and no base
// path has a part that begins with a dot.
const (
	pathAdminOfPeer = "/cluster/.admin"
	pathUses        = "/cluster/uses"
	pathInside      = "/cluster/inside"
	pathMigrate     = "/cluster/migrate"
	pathIncidents   = "/cluster/incidents"
	pathHour        = "/cluster/hour"
	pathVacate      = "/cluster/vacate"
	pathAudit       = "/cluster/audit"
)

func (s *service) claimNode(ctx context.Context) (err error) {
	c := s.config
	if !c.IsNode() {
		return nil
	}
	if s.node, err = c.LoadNode(s.log); err != nil {
		return err
	}
	c.Store.Shards = s.node.Shards()
	s.started.push(&stopping{s.node.ClosePort})
	if err := s.node.Claim(ctx); err != nil {
		return config.ExplainAddress(err, "cluster.listen")
	}
	s.log.Info().Str("node", string(s.node.Self())).Str("cluster", cmp.Or(c.Cluster.Advertise, c.Cluster.Listen)).Msg("no other process runs this node")
	return nil
}

type stopping struct{ do func(context.Context) error }

func (s *stopping) Stop(ctx context.Context) error { return s.do(ctx) }

// spaceEvery is the pause between two looks whether a full disk has room.
const spaceEvery = 2 * time.Second

// openReplica opens the store of a node, which needs room for that, and waits for it.
func (s *service) openReplica(ctx context.Context) (*persistence.Store, error) {
	if err := s.config.DemandStore(); err != nil {
		return nil, err
	}
	o := s.config.StoreOptions(s.log)
	o.Replication = s.node.Replication()
	store, err := persistence.Open(homedir.Data(s.config.Home), o)
	for waiting := false; errors.Is(err, persistence.ErrDiskFull); store, err = persistence.Open(homedir.Data(s.config.Home), o) {
		if !waiting {
			s.log.Warn().Err(err).Msg("the node starts when there is room")
			waiting = true
		}
		select {
		case <-time.After(spaceEvery):
		case <-ctx.Done():
			return nil, errStopped
		}
	}
	if err != nil {
		return nil, s.config.WithAdvice(err)
	}
	if err := s.config.BindStore(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

const homeEvery = 50 * time.Millisecond

// joinNode waits until what is published is here: at its first start a node has nothing.
func (s *service) joinNode(ctx context.Context) error {
	if err := s.node.Run(s.store); err != nil {
		return err
	}
	s.started.push(s.node)
	waiting := false
	for {
		if here, err := home.IsPublished(s.store); here || err != nil {
			return err
		}
		if !waiting {
			s.log.Info().Msg("waiting for the cluster's published files")
			waiting = true
		}
		select {
		case <-time.After(homeEvery):
		case err := <-s.node.Failed():
			return err
		case <-ctx.Done():
			return errStopped
		}
	}
}

var errStopped = errors.New("stopped before it was ready")

func (s *service) current(ctx context.Context) error { return s.node.Current(ctx, key.Meta) }

func (s *service) startReplicated(directory *identity.Directory) (identity.Identities, error) {
	o := identity.ReplicatedOptions{Options: s.config.Identity, Store: s.store, Fresh: s.node.Fresh, Current: s.current}
	o.Directory, o.Log = directory, s.log
	o.ReadDirectory = func(take func(*identity.Directory)) {
		_ = s.published.ReadAccess(func(access home.Access) { take(access.Directory) }) // it is told when it is taken over
	}
	var used *identity.Replicated
	take := func(_ context.Context, _ peer.NodeID, uses []identity.Use) (struct{}, error) {
		used.Used(uses)
		return struct{}{}, nil
	}
	tell := usesTeller{ask: func(uses []identity.Use) error {
		ctx, cancel := context.WithTimeout(context.Background(), homedir.AskMax)
		defer cancel()
		_, err := cluster.Ask(ctx, s.node, pathUses, take, uses)
		return err
	}}
	o.TellUses = tell.tell
	var err error
	if used, err = identity.StartReplicated(o); err != nil {
		return nil, err
	}
	cluster.Handle(s.node, pathUses, take)
	return &audit.Identities{Identities: used, Log: s.audit}, nil
}

type insideAnswer struct {
	Refused string `json:"refused,omitempty"`
}

func (s *service) takeInside(ctx context.Context, _ peer.NodeID, m child.Message) (a insideAnswer, err error) {
	a.Refused, err = s.router.Inside(ctx, &m)
	return a, err
}

func (s *service) tellElsewhere(ctx context.Context, shard uint16, m *child.Message) (refused string, err error) {
	a, err := cluster.AskIn(ctx, s.node, key.Shard(shard), pathInside, s.takeInside, *m)
	return a.Refused, err
}

type incidentRows struct {
	Shard uint16         `json:"shard"`
	Rows  []incident.Row `json:"rows"`
}

func (s *service) takeIncidents(ctx context.Context, _ peer.NodeID, m incidentRows) (struct{}, error) {
	return struct{}{}, s.router.Incidents.Put(ctx, m.Shard, m.Rows)
}

func (s *service) putElsewhere(ctx context.Context, shard uint16, rows []incident.Row) error {
	_, err := cluster.AskIn(ctx, s.node, key.Shard(shard), pathIncidents, s.takeIncidents, incidentRows{shard, rows})
	return err
}

func (s *service) takeVacancy(ctx context.Context, _ peer.NodeID, v catalog.Vacancy) (used uint64, err error) {
	return s.catalog.Vacate(ctx, v)
}

func (s *service) vacate(ctx context.Context, v catalog.Vacancy) (used uint64, err error) {
	return cluster.AskIn(ctx, s.node, key.Shard(v.Shard), pathVacate, s.takeVacancy, v)
}

func (s *service) newMigrations() *migration.Service {
	o := migration.Options{Instances: s.router, Queries: s.router.Queries, Parser: s.parser, Newest: s.catalog.Newest, Pin: s.catalog.PinVersion, MayAssign: s.catalog.MayAssign, Log: s.log}
	if s.node != nil {
		o.Elsewhere = func(ctx context.Context, shard uint16, p *migration.Part) ([]migration.Outcome, error) {
			return cluster.AskIn(ctx, s.node, key.Shard(shard), pathMigrate, s.takeMigration, *p)
		}
	}
	return migration.New(o)
}

func (s *service) takeMigration(ctx context.Context, _ peer.NodeID, p migration.Part) ([]migration.Outcome, error) {
	return s.migrations.Here(ctx, &p)
}

type usesTeller struct {
	ask  func([]identity.Use) error
	busy atomic.Bool
}

const usesMax = 1000

// NB: what is not told now, is told again.
func (t *usesTeller) tell(uses []identity.Use) {
	if !t.busy.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer t.busy.Store(false)
		for chunk := range slices.Chunk(uses, usesMax) {
			if t.ask(chunk) != nil {
				return
			}
		}
	}()
}

// flowKey is what the nodes of a cluster share for sign-ins through a provider; nil on a standalone server.
func (s *service) flowKey() func() ([]byte, error) {
	if !s.config.IsNode() {
		return nil
	}
	return func() ([]byte, error) {
		return s.identities.(*audit.Identities).Identities.(*identity.Replicated).FlowKey()
	} // NB: requests come when it is there
}

func (s *service) serveNode() {
	mux := http.NewServeMux()
	mux.Handle(pathAdminOfPeer+"/", http.StripPrefix(pathAdminOfPeer, s.admin.PeerHandler()))
	mux.Handle("/", s.gateway.PeerHandler(func(r *http.Request) string { return string(peer.NodeOf(r.Context())) }))
	s.node.Serve(mux)
}

type peers struct{ node *cluster.Node }

func (p peers) Leader(ctx context.Context, shard uint16) (gateway.Peer, error) {
	id, err := p.node.Leader(ctx, key.Shard(shard))
	if err != nil || id == p.node.Self() {
		return gateway.Peer{Node: string(id)}, err
	}
	return gateway.Peer{Node: string(id), Transport: p.node.Transport()}, nil
}

// Locate implements gateway.Services.
func (p peers) Locate(instance string) (leader.Place, bool) {
	s, ok := p.node.Locate(instance)
	return leader.Place{Node: string(s.Leader), Self: string(p.node.Self()), First: s.First, Last: s.Last, Slots: s.N}, ok
}

type members struct {
	*cluster.Node
	audit *audit.Log
}

func (m members) Remove(ctx context.Context, id string, lost bool) error {
	id = strings.ToUpper(id)
	if err := m.Node.Remove(ctx, peer.NodeID(id), lost); err != nil {
		return err
	}
	return m.audit.Record(ctx, statemachine.System, audit.NodeRemove, id)
}

func (m members) Status() any { return m.Node.Status() }

// passToLeader implements admin.Options.Leader.
func (s *service) passToLeader(r *http.Request) (*http.Response, error) {
	id, err := s.node.Leader(r.Context(), key.Meta)
	if err != nil || id == s.node.Self() {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host, r.URL.Path = "https", string(id), pathAdminOfPeer+r.URL.Path
	answer, err := s.node.Transport().RoundTrip(r)
	if errors.Is(err, peer.ErrNotSent) {
		return nil, failure.Elsewhere(uint16(key.Meta))
	}
	return answer, err
}
