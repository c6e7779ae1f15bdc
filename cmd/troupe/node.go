package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/migration"
	"troupe/gateway"
	"troupe/persistence"
)

// What a node of a cluster has that a server alone has not:
//
//	claimNode     the cluster port opens; no other process is this node
//	store         is opened with Replication
//	joinNode      the node greets the others, gets its shards and leads some
//	awaitHome     what is published is here
//	serveNode     other nodes' requests are answered
//
// It stops by handing its leaderships over, before anything else.

// Paths of the calls between nodes that are no requests of users. NB: those come to the same port with the
// paths that they have. pathAdminOfPeer cannot begin one: no route and no base path has a part that begins with a dot.
const (
	pathAdminOfPeer = "/cluster/.admin"
	pathUses        = "/cluster/uses"
	pathInside      = "/cluster/inside"
	pathMigrate     = "/cluster/migrate"
	pathIncidents   = "/cluster/incidents"
	pathVacate      = "/cluster/vacate"
)

// isNode says whether the home is that of a node of a cluster.
func (c *config) isNode() bool { return cluster.Exists(nodeFolder(c.home)) }

// wasNode says whether the home had a store and wants to be a node, whatever has become of its identity.
func (c *config) wasNode() bool {
	return !c.isNode() && c.cluster.Listen != "" && exists(filepath.Join(c.home, storeIDFile))
}

// adviceForNode adds to an error about a node what to do. NB: an empty store, or a copy of an earlier
// day, has not what the node has confirmed to others.
func (c *config) adviceForNode(err error) error {
	id := "NODE"
	if identity, err := peer.LoadIdentity(filepath.Join(nodeFolder(c.home), cluster.IdentityFile)); err == nil {
		id = string(identity.Node())
	}
	return fmt.Errorf("%w. The other nodes count on what this one had, so neither an empty store nor a backup can take its place: "+
		"on one of them `troupe cluster remove %s --lost`, then empty %s and have it join anew; if there are no others, put a backup of %s back, then `troupe cluster recover`",
		err, id, c.home, filepath.Join(c.home, dataFolder))
}

// boundFile lies beside a node's identity, from its first start on, and has what .store has: the
// identity is of use with that store alone.
const boundFile = "store"

// demandStore has .store demand the store that the node had.
func (c *config) demandStore() error {
	bound, err := os.ReadFile(filepath.Join(nodeFolder(c.home), boundFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(c.home, storeIDFile)
	if err == nil {
		err = wantFile(path)
	}
	if err != nil {
		return err
	}
	demanded, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(path, bound, 0o644)
	case err == nil && !bytes.Equal(demanded, bound):
		err = c.adviceForNode(fmt.Errorf("%w: %s demands another one than the node had", persistence.ErrOtherStore, path))
	}
	return err
}

// bindStore binds the identity of the node to the store that is open.
func (c *config) bindStore() error {
	text, err := os.ReadFile(filepath.Join(c.home, storeIDFile))
	path := filepath.Join(nodeFolder(c.home), boundFile)
	if err != nil || exists(path) {
		return err
	}
	return peer.ReplaceFile(path, text)
}

// errNeedsServer is the error of commands that would write into a replica.
func (c *config) errNeedsServer() error {
	return fmt.Errorf("%s is a node of a cluster: start it with `troupe serve --home %s`; without its server nothing can be changed here, because the other nodes would not have it", c.home, c.home)
}

// claimNode opens the cluster port; nothing on a server that stands alone.
func (s *service) claimNode(ctx context.Context) (err error) {
	c := s.config
	if !c.isNode() {
		return nil
	}
	of, err := c.fileOnly()
	if err != nil {
		return err
	}
	if joined := of.store.Shards; joined != 0 && joined != c.store.Shards {
		return fmt.Errorf("%s has shards: %d, as many as the cluster, and not %d: leave --shards and TROUPE_SHARDS away", settingsFile, joined, c.store.Shards)
	}
	if s.node, err = c.loadNode(s.log); err != nil {
		return err
	}
	s.started.push(&stopping{s.node.ClosePort})
	if err := s.node.Claim(ctx); err != nil {
		return explainAddress(err, "cluster.listen")
	}
	s.log.Info().Str("node", string(s.node.Self())).Str("cluster", cmp.Or(c.cluster.Advertise, c.cluster.Listen)).Msg("no other process is this node")
	return nil
}

// loadNode reads what the home's node is.
func (c *config) loadNode(log zerolog.Logger) (_ *cluster.Node, err error) {
	o := c.cluster
	o.Dir, o.Log = nodeFolder(c.home), log
	if o.Advertise, err = c.advertised(); err != nil {
		return nil, fmt.Errorf("%s is a node of a cluster: %w", c.home, err)
	}
	o.Version, o.Shards = buildOf(buildInfo()).Version, c.store.Shards
	o.Settings, o.Changed = c.sharedSettings()
	node, err := cluster.Load(o)
	if errors.Is(err, cluster.ErrIdentity) {
		err = c.adviceForNode(err)
	}
	return node, err
}

// stopping is a part that only has to be stopped.
type stopping struct{ do func(context.Context) error }

// Stop implements part.
func (s *stopping) Stop(ctx context.Context) error { return s.do(ctx) }

// localSettings may differ between the nodes of a cluster without any harm.
var localSettings = []string{"home", "listen", "admin", "cluster.listen", "cluster.advertise", "cluster.name", "log-level", "log-format", "shards"}

// sharedSettings is a digest of those that should be the same on all nodes, and one of each that is not
// its default.
func (c *config) sharedSettings() (all string, changed map[string]string) {
	h := sha256.New()
	changed = map[string]string{}
	standard := newConfig()
	for i, s := range c.settings {
		if slices.Contains(localSettings, s.name) {
			continue
		}
		line := fmt.Sprintf("%s=%q\n", s.name, s.value.String())
		_, _ = io.WriteString(h, line)
		if s.value.String() != standard.settings[i].value.String() {
			sum := sha256.Sum256([]byte(line))
			changed[keyName(s.name)] = hex.EncodeToString(sum[:8])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), changed
}

// openReplica opens the store of the node.
func (s *service) openReplica() (*persistence.Store, error) {
	if err := s.config.demandStore(); err != nil {
		return nil, err
	}
	o := storeOptions(s.config, s.log)
	o.Replication = s.node.Replication()
	store, err := persistence.Open(filepath.Join(s.config.home, dataFolder), o)
	if err != nil {
		return nil, withAdvice(s.config, err)
	}
	if err := s.config.bindStore(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// homeEvery is the pause between two looks whether what is published has come.
const homeEvery = 50 * time.Millisecond

// joinNode begins to take part in the cluster, and waits until what is published there is here:
// at its first start a node has nothing.
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
			s.log.Info().Msg("waiting for the cluster: what is published there is not here yet")
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

// errStopped: a signal came before the server was ready.
var errStopped = errors.New("stopped before it was ready")

// current waits until everything that was acknowledged in Meta is visible here.
func (s *service) current(ctx context.Context) error { return s.node.Current(ctx, persistence.Meta) }

// startReplicated starts the service of identities of a node.
func (s *service) startReplicated(directory *identity.Directory) (identity.Identities, error) {
	o := identity.ReplicatedOptions{Options: s.config.identity, Store: s.store, Fresh: s.node.Fresh, Current: s.current}
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
		ctx, cancel := context.WithTimeout(context.Background(), askMax)
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
	return used, nil
}

// insideAnswer is what becomes of a message between a parent and its child.
type insideAnswer struct {
	Refused string `json:"refused,omitempty"`
}

// takeInside carries out a message whose instance is led here.
func (s *service) takeInside(ctx context.Context, _ peer.NodeID, m child.Message) (a insideAnswer, err error) {
	a.Refused, err = s.router.Inside(ctx, &m)
	return a, err
}

// tellElsewhere has the node that leads a shard carry out a message.
func (s *service) tellElsewhere(ctx context.Context, shard uint16, m *child.Message) (refused string, err error) {
	a, err := cluster.AskIn(ctx, s.node, persistence.Shard(shard), pathInside, s.takeInside, *m)
	return a.Refused, err
}

// incidentRows are what failed on one node and belong into a shard that another one leads.
type incidentRows struct {
	Shard uint16         `json:"shard"`
	Rows  []incident.Row `json:"rows"`
}

// takeIncidents puts incidents into a shard that is led here.
func (s *service) takeIncidents(ctx context.Context, _ peer.NodeID, m incidentRows) (struct{}, error) {
	return struct{}{}, s.router.PutIncidents(ctx, m.Shard, m.Rows)
}

// putElsewhere has the node that leads a shard put incidents there.
func (s *service) putElsewhere(ctx context.Context, shard uint16, rows []incident.Row) error {
	_, err := cluster.AskIn(ctx, s.node, persistence.Shard(shard), pathIncidents, s.takeIncidents, incidentRows{shard, rows})
	return err
}

// takeVacancy says whether instances of a shard that is led here use a definition that is to be retired: which version, or 0.
func (s *service) takeVacancy(ctx context.Context, _ peer.NodeID, v catalog.Vacancy) (used uint64, err error) {
	return s.catalog.Vacate(ctx, v)
}

// vacate has the node that leads a shard say so.
func (s *service) vacate(ctx context.Context, v catalog.Vacancy) (used uint64, err error) {
	return cluster.AskIn(ctx, s.node, persistence.Shard(v.Shard), pathVacate, s.takeVacancy, v)
}

// newMigrations has other nodes migrate what they lead.
func (s *service) newMigrations() *migration.Service {
	o := migration.Options{Instances: s.router, Parser: s.parser, Newest: s.catalog.Newest, Pin: s.catalog.PinVersion, MayAssign: s.catalog.MayAssign, Log: s.log}
	if s.node != nil {
		o.Elsewhere = func(ctx context.Context, shard uint16, p *migration.Part) ([]migration.Outcome, error) {
			return cluster.AskIn(ctx, s.node, persistence.Shard(shard), pathMigrate, s.takeMigration, *p)
		}
	}
	return migration.New(o)
}

// takeMigration migrates instances that are led here.
func (s *service) takeMigration(ctx context.Context, _ peer.NodeID, p migration.Part) ([]migration.Outcome, error) {
	return s.migrations.Here(ctx, &p)
}

// usesTeller tells the leader of last uses.
type usesTeller struct {
	ask  func([]identity.Use) error
	busy atomic.Bool
}

// usesMax bounds the uses of one call.
const usesMax = 1000

// tell does not wait. NB: what is not told now, is told again.
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

// flowKey is what the nodes of a cluster share for sign-ins through a provider; nil on a server that
// stands alone.
func (s *service) flowKey() func() ([]byte, error) {
	if !s.config.isNode() {
		return nil
	}
	return func() ([]byte, error) { return s.identities.(*identity.Replicated).FlowKey() } // NB: requests come when it is there
}

// serveNode answers the requests of other nodes, and sends them those that they lead.
func (s *service) serveNode() {
	mux := http.NewServeMux()
	mux.Handle(pathAdminOfPeer+"/", http.StripPrefix(pathAdminOfPeer, s.admin.PeerHandler()))
	mux.Handle("/", s.gateway.PeerHandler(func(r *http.Request) string { return string(peer.NodeOf(r.Context())) }))
	s.node.Serve(mux)
}

// peers are the other nodes as the gateway sees them.
type peers struct{ node *cluster.Node }

// Leader implements gateway.Peers.
func (p peers) Leader(ctx context.Context, shard uint16) (gateway.Peer, error) {
	find := func() (peer.NodeID, error) { return p.node.Leader(ctx, persistence.Shard(shard)) }
	if persistence.Shard(shard) == persistence.EveryShard {
		find = p.node.Complete
	}
	id, err := find()
	if err != nil || id == p.node.Self() {
		return gateway.Peer{Node: string(id)}, err
	}
	return gateway.Peer{Node: string(id), Transport: p.node.Transport()}, nil
}

// publicStatus is what everybody may see of a cluster who can reach a node: all but where the nodes listen.
func publicStatus(status cluster.Status) cluster.Status {
	status = contractOf(status)
	for i := range status.Nodes {
		status.Nodes[i].Address = ""
	}
	return status
}

// members is the cluster as the command line sees it.
type members struct{ *cluster.Node }

// Remove implements admin.Cluster.
func (m members) Remove(ctx context.Context, id string, lost bool) error {
	return m.Node.Remove(ctx, peer.NodeID(strings.ToUpper(id)), lost)
}

// Status implements admin.Cluster.
func (m members) Status() any { return m.Node.Status() }

// passToLeader implements admin.Options.Leader.
func (s *service) passToLeader(r *http.Request) (*http.Response, error) {
	id, err := s.node.Leader(r.Context(), persistence.Meta)
	if err != nil || id == s.node.Self() {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host, r.URL.Path = "https", string(id), pathAdminOfPeer+r.URL.Path
	answer, err := s.node.Transport().RoundTrip(r)
	if errors.Is(err, peer.ErrNotSent) {
		return nil, failure.Elsewhere(uint16(persistence.Meta))
	}
	return answer, err
}
