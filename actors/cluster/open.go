// Package cluster makes several nodes one service: it decides which nodes keep which shards, has shards move when nodes
// come and go, and knows who leads what. The row "cluster" of the shard Meta says what is wanted; the leader of each
// shard brings its group there step by step. A vote goes from one node to another in one step (joint consensus), so a
// move never costs a vote. Nodes tell each other once a second what they have. DESIGN.md says what is promised.
//
// The life of a Node: Load, Claim, the store is opened with Replication, Run, HandOver, Stop, the store is closed,
// ClosePort.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"troupe/actors/cluster/peer"
	"troupe/actors/guard"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Load reads the node's files. Nothing runs yet.
func Load(o Options) (*Node, error) { return load(o, (*Node).connect) }

func load(o Options, connect func(*Node) (network, error)) (*Node, error) {
	o.EnsureDefaults()
	n := &Node{
		o: o, level: levelHere, boot: rand.Text(), files: files{o.Dir}, mux: http.NewServeMux(),
		rereads: make(chan struct{}, 1), leads: make(chan struct{}, 1), failed: make(chan error, 1), gone: make(chan struct{}),
		changing: make(chan struct{}, 1), strangers: rate.Sometimes{Interval: time.Second},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.full = func() bool { return errors.Is(n.store.Accepting(), persistence.ErrDiskFull) }
	n.others.by, n.others.news = map[peer.NodeID]*other{}, make(chan struct{})
	n.tending.stop = map[key.Shard]context.CancelFunc{}
	var err error
	if n.identity, err = peer.LoadIdentity(n.files.path(IdentityFile)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	n.self = n.identity.Node()
	if n.seeds, err = n.files.addresses(); err != nil {
		return nil, err
	}
	switch joined, err := n.files.shards(); {
	case err != nil:
		return nil, err
	case joined != 0 && n.o.Shards != 0 && joined != n.o.Shards:
		return nil, fmt.Errorf("the cluster has %d shards, not %d: remove the setting shards", joined, n.o.Shards)
	default:
		n.o.Shards = cmp.Or(joined, n.o.Shards)
	}
	Handle(n, pathHeartbeat, n.welcome)
	Handle(n, pathIndex, n.index)
	Handle(n, pathGroup, n.group)
	Handle(n, pathInvite, n.takeKey)
	Handle(n, pathAdmit, n.admit)
	Handle(n, pathRemove, n.remove)
	Handle(n, pathGoodbye, n.goodbye)
	n.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if h := n.calls.Load(); h != nil {
			(*h).ServeHTTP(w, r)
		} else {
			w.WriteHeader(http.StatusMisdirectedRequest) // nothing was done
		}
	})
	n.network, err = connect(n)
	return n, err
}

func (n *Node) connect() (network, error) {
	p, err := peer.New(peer.Options{
		Address: n.o.Listen, Identity: n.identity, Resolve: n.resolve, Log: n.o.Log,
		Admits: func(id peer.NodeID) bool { return !n.isGone(id) },
		Calls:  n.mux, Join: http.HandlerFunc(n.join),
	})
	streams := func(sh key.Shard) replica.Streams {
		s, err := p.Streams(uint16(sh))
		if err != nil {
			return noStreams{err}
		}
		return s
	}
	return network{port: p, streams: streams, nodeOf: peer.NodeOf, listen: listenTo}, err
}

// Shards is how many a store that is made shall have; 0: that is not said.
func (n *Node) Shards() int { return n.o.Shards }

// Replication is what the store of the node is opened with.
func (n *Node) Replication() *persistence.Replication {
	lost := func(node string) { n.port.Abandon(peer.NodeID(node)) }
	return &persistence.Replication{Node: string(n.self), Alone: len(n.known()) == 0, Streams: n.streams, Tick: n.o.Tick, Lost: lost}
}

type noStreams struct{ err error }

func (s noStreams) Accept() (net.Conn, error) { return nil, s.err }

func (s noStreams) Dial(string, time.Duration) (net.Conn, error) { return nil, s.err }

func (noStreams) Close() error { return nil }

func (n *Node) resolve(id peer.NodeID) (string, bool) {
	n.others.mu.Lock()
	o := n.others.by[id]
	n.others.mu.Unlock()
	if o != nil && o.said.Address != "" {
		return o.said.Address, true
	}
	if d := n.directory.Load(); d != nil {
		if m, ok := d.Nodes[id]; ok {
			return m.Address, true
		}
	}
	address, ok := n.seeds[id]
	return address, ok
}

// Run begins to take part with the store, which was opened with Replication.
func (n *Node) Run(s *persistence.Store) error {
	n.store = s
	n.started.Store(true)
	s.Follow(n)
	n.reread()
	if d := n.directory.Load(); d != nil && d.Level > n.level {
		return fmt.Errorf("this is version %s of level %d, and all nodes of the cluster have had level %d: start a newer program", n.o.Version, n.level, d.Level)
	}
	if err := s.Join(key.Meta); err != nil {
		return err
	}
	for _, loop := range []func(){n.heartbeatLoop, n.tellLoop, func() { n.every(n.o.Pace, n.freshen) }, n.keepLoop, n.rereadLoop, n.renewLoop} {
		n.running.Go(loop)
	}
	s.FollowLeads(n)
	return nil
}

func (n *Node) rereadLoop() {
	for {
		select {
		case <-n.rereads:
			if guard.Try(n.o.Log, "reading of the directory", n.reread) != nil {
				time.AfterFunc(n.o.Pace, n.Replaced) // again
			}
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) freshen(ctx context.Context) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, freshMax)
	defer cancel()
	if n.Current(ctx, key.Meta) == nil {
		n.fresh.Store(&asked)
	}
}

const readyMax = 5 * time.Second

// Ready returns nil while the node reaches the majority of Meta.
func (n *Node) Ready() error {
	if n.staleFor() <= readyMax {
		return nil
	}
	why := "it is cut off from the leader, or has no room"
	if err := n.refused.Load(); err != nil {
		why = (*err).Error()
	}
	return fmt.Errorf("this node has not had all of the cluster's own shard for %s or longer: %s", readyMax, why)
}

// HandOver gives all leaderships to other nodes, where there is one that can take it, and waits until
// they have them or ctx ends. The node is given none again, but Raft may elect it once more.
func (n *Node) HandOver(ctx context.Context) {
	n.stopping.Store(true)
	n.sendHeartbeats(ctx)
	n.transferLeaderships(ctx, func([]peer.NodeID, map[peer.NodeID]heartbeat) bool { return true })
}

// Stop ends what the node does on its own. The store is closed after it, and then the port.
func (n *Node) Stop(ctx context.Context) error {
	n.stopping.Store(true)
	n.tending.mu.Lock()
	n.cancel()
	n.tending.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		n.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("background work of the node has not ended: %w", ctx.Err())
	}
}

// ClosePort closes the cluster port. It may be called without Run.
func (n *Node) ClosePort(ctx context.Context) error { return n.port.Stop(ctx) }

// Status is the cluster as this node knows it.
type Status struct {
	Self  peer.NodeID  `json:"self"`
	Nodes []NodeStatus `json:"nodes"`
	// Short are the shards that have fewer voters alive than they should, by number; key.Meta is the cluster's own.
	Short []key.Shard `json:"short"`
}

// NodeStatus is one node. What a node has that is not alive is as it was heard last.
type NodeStatus struct {
	ID                peer.NodeID `json:"id"`
	Name              string      `json:"name,omitempty"` // for people; empty: it has none but its address
	Address           string      `json:"address,omitempty"`
	Alive             bool        `json:"alive"`
	Voter             bool        `json:"voter"` // it has a vote in every shard in which it shall vote, and that is at least one
	Leaving           bool        `json:"leaving,omitempty"`
	Full              bool        `json:"full,omitempty"` // its disk
	Version           string      `json:"version"`
	Led               int         `json:"led"`  // shards, the cluster's own included
	Held              int         `json:"held"` // the same; one that it has nothing of yet does not count
	Lag               uint64      `json:"lag"`  // entries that the replica lacks that is behind the most, a second ago
	SettingsDiffer    bool        `json:"settingsDiffer"`
	DifferingSettings []string    `json:"differingSettings,omitempty"` // their names, as far as the node says them
}

// Status returns the cluster as this node knows it.
func (n *Node) Status() Status {
	status := Status{Self: n.self, Nodes: []NodeStatus{}, Short: []key.Shard{}}
	d := n.directory.Load()
	if d == nil {
		return status
	}
	said := map[peer.NodeID]heartbeat{}
	n.others.mu.Lock()
	for id, o := range n.others.by {
		said[id] = o.said
	}
	n.others.mu.Unlock()
	said[n.self] = n.heartbeat()

	alive := n.heard()
	alive[n.self] = said[n.self]
	best := newest(alive, func(h heartbeat) map[key.Shard]groupState { return h.shards })
	for _, id := range slices.Sorted(maps.Keys(d.Nodes)) {
		m, h := d.Nodes[id], said[id]
		node := NodeStatus{ID: id, Address: m.Address, Alive: n.isAlive(id), Leaving: m.Leaving, Full: h.Full, Version: h.Version}
		node.Name = h.Name
		if node.SettingsDiffer = h.Settings != n.o.Settings && h.Node != ""; node.SettingsDiffer {
			node.DifferingSettings = differing(h.Changed, n.o.Changed)
		}
		shall, votes := 0, 0
		for sh := range n.store.AllShards() {
			g, kept := h.shards[sh]
			if g.Epoch != 0 && node.Alive {
				node.Led++
			}
			if kept {
				node.Lag = max(node.Lag, max(best[sh].Applied, g.Applied)-g.Applied)
			}
			if g.Applied > 0 {
				node.Held++
			}
			if slices.Contains(d.Placement[d.first(sh)], id) {
				shall++
				if slices.Contains(best[sh].Voters, id) {
					votes++
				}
			}
		}
		node.Voter = shall > 0 && votes == shall
		status.Nodes = append(status.Nodes, node)
	}
	for sh := range n.store.AllShards() {
		alive, voters := 0, best[sh].Voters
		for _, id := range voters {
			if n.isAlive(id) {
				alive++
			}
		}
		placed := d.Placement[d.first(sh)]
		if 2*alive <= len(voters) || alive < len(placed) || slices.ContainsFunc(placed, func(id peer.NodeID) bool { return !n.isAlive(id) }) {
			status.Short = append(status.Short, sh)
		}
	}
	return status
}

// Metrics are what a node counts, and how the cluster is as it knows.
type Metrics struct {
	Nodes, Alive int    // that belong to the cluster, and that are alive, this one included
	Led, Held    int    // shards, the cluster's own included
	Short        int    // shards with fewer voters alive than they should have
	Lag          uint64 // entries that this node's most backward replica lacks
	Moves        uint64 // changes of replicas that this node made
	HandOvers    uint64 // leaderships that this node gave to others
	SecondsStale float64
	Port         peer.Metrics
}

// Metrics may be called at any time after Run.
func (n *Node) Metrics() Metrics {
	status := n.Status()
	m := Metrics{
		Nodes: len(status.Nodes), Short: len(status.Short), Moves: n.moves.Load(), HandOvers: n.handed.Load(),
		SecondsStale: n.staleFor().Seconds(), Port: n.port.Metrics(),
	}
	for _, node := range status.Nodes {
		if node.Alive {
			m.Alive++
		}
		if node.ID == n.self {
			m.Led, m.Held, m.Lag = node.Led, node.Held, node.Lag
		}
	}
	return m
}

// Contract is the status as programs see it: its fields are a contract. What it leaves out is for people.
func (s Status) Contract() Status {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Leaving, s.Nodes[i].Full = false, false
	}
	return s
}

// Public is what everybody may see who can reach a node: all but where the nodes listen.
func (s Status) Public() Status {
	s = s.Contract()
	for i := range s.Nodes {
		s.Nodes[i].Address = ""
	}
	return s
}
