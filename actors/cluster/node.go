package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"troupe/actors/cluster/peer"
	"troupe/actors/guard"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Options says how a node works. Dir, Listen and Advertise must be set.
type Options struct {
	// Dir is the folder of the node's own files, below the store's.
	Dir string
	// Listen is the address of the cluster port, host:port, and Advertise the one that other nodes
	// reach it at.
	Listen, Advertise string
	// Replicas is how many nodes have a vote in each shard, once there are so many; the others keep it
	// without one. Zero is 3.
	Replicas int
	// Version is that of the program, for people; Settings is a digest of the settings that should
	// be the same on all nodes.
	Version, Settings string
	// Changed has a digest of each of those settings that is not its default, to name what differs.
	Changed map[string]string
	// Name is what people know the node by; empty: its address.
	Name string
	// Shards is how many a store that is made would have. Zero: nothing is said of it before the store is open.
	Shards int
	// Tick is that of persistence.Replication.
	Tick time.Duration
	// Pace is the time between two greetings of a node, and between two looks at what is and what
	// should be. Zero is one second. Tests that start many clusters have less.
	Pace time.Duration
	// Log gets who comes and goes (info, warn) and what fails (error).
	Log zerolog.Logger
}

// EnsureDefaults replaces zeroes by the defaults.
func (o *Options) EnsureDefaults() {
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	o.Pace = cmp.Or(o.Pace, paceDefault)
}

// Node is this process's part of the cluster. Its methods may be called at once, those that need
// the store after Run.
type Node struct {
	o     Options
	level int // levelHere
	self  peer.NodeID
	boot  string
	files files
	seeds map[peer.NodeID]string // where the others were when this process began

	identity *peer.Identity
	network
	mux   *http.ServeMux
	calls atomic.Pointer[http.Handler] // what is no call of this package

	started   atomic.Bool // Run has set store
	store     *persistence.Store
	directory atomic.Pointer[directory] // nil while the store has none
	changing  sync.Mutex                // held by change
	rereading sync.Mutex
	rereads   chan struct{}

	others    others
	warnings  warnings
	strangers rate.Sometimes            // warnings of machines that may not join
	fresh     atomic.Pointer[time.Time] // what was written before is visible here; nil: nothing is known
	stopping  atomic.Bool
	full      func() bool // the disk has no room for writes; after Run

	failed  chan error // holds one
	cancel  context.CancelFunc
	ctx     context.Context //nolint:containedctx // of the node's goroutines
	running sync.WaitGroup
	tending tending
	moves   atomic.Uint64
	handed  atomic.Uint64
}

// network is how a node reaches the others.
type network struct {
	port    port
	streams func(key.Shard) replica.Streams
	nodeOf  func(context.Context) peer.NodeID // whose call a request is
	listen  func(ctx context.Context, address string) (string, error)
}

// port is what a Node needs of peer.Port.
type port interface {
	Start() error
	Stop(ctx context.Context) error
	RoundTrip(*http.Request) (*http.Response, error)
	Disconnect(peer.NodeID)
	Metrics() peer.Metrics
}

// ErrIdentity is the error of a node whose key or certificate cannot be read.
var ErrIdentity = errors.New("read the identity of the node")

// Load reads the node's files. Nothing runs yet.
func Load(o Options) (*Node, error) { return load(o, (*Node).connect) }

func load(o Options, connect func(*Node) (network, error)) (*Node, error) {
	o.EnsureDefaults()
	n := &Node{
		o: o, level: levelHere, boot: rand.Text(), files: files{o.Dir}, mux: http.NewServeMux(),
		rereads: make(chan struct{}, 1), failed: make(chan error, 1), strangers: rate.Sometimes{Interval: time.Second},
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
	Handle(n, pathHello, n.welcome)
	Handle(n, pathIndex, n.index)
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

// connect makes the cluster port.
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

// Self is the id of this node.
func (n *Node) Self() peer.NodeID { return n.self }

// Serve has calls that are none of this package's, and none of Handle's, answered by h. Before,
// they are answered 421.
func (n *Node) Serve(h http.Handler) { n.calls.Store(&h) }

// Transport sends calls to other nodes: https://NODE/PATH.
func (n *Node) Transport() http.RoundTripper { return n.port }

// Replication is what the store of the node is opened with.
func (n *Node) Replication() *persistence.Replication {
	return &persistence.Replication{Node: string(n.self), Streams: n.streams, Tick: n.o.Tick}
}

// noStreams are those of a port that has stopped.
type noStreams struct{ err error }

func (s noStreams) Accept() (net.Conn, error)                    { return nil, s.err }
func (s noStreams) Dial(string, time.Duration) (net.Conn, error) { return nil, s.err }
func (noStreams) Close() error                                   { return nil }

// resolve implements peer.Options.Resolve.
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

func (n *Node) isGone(id peer.NodeID) bool {
	d := n.directory.Load()
	return d != nil && slices.Contains(d.Gone, id)
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
	for _, loop := range []func(){n.greetLoop, n.freshLoop, n.keepLoop, n.rereadLoop, n.renewLoop} {
		n.running.Go(loop)
	}
	s.FollowLeads(n)
	return nil
}

// Failed has an error when this process must end: another one is this node, or the node was removed.
func (n *Node) Failed() <-chan error { return n.failed }

func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

// every calls do again and again until the node stops.
func (n *Node) every(pause time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for n.ctx.Err() == nil {
		_ = guard.Try(n.o.Log, "loop of the node", func() { do(n.ctx) }) // the log has it
		select {
		case <-ticker.C:
		case <-n.ctx.Done():
		}
	}
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

// freshMax is how old what this node knows may be.
const freshMax = 3 * time.Second

// freshLoop keeps Fresh true while Meta can be read.
func (n *Node) freshLoop() { n.every(n.o.Pace, n.freshen) }

func (n *Node) freshen(ctx context.Context) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, freshMax)
	defer cancel()
	if n.Current(ctx, key.Meta) == nil {
		n.fresh.Store(&asked)
	}
}

// Fresh reports whether everything that was acknowledged in Meta more than three seconds ago is
// visible here.
func (n *Node) Fresh() bool { return n.staleFor() <= freshMax }

// staleFor is by the clock that nobody sets: it does not go back.
func (n *Node) staleFor() time.Duration {
	if at := n.fresh.Load(); at != nil {
		return time.Since(*at)
	}
	return time.Since(time.Unix(0, 0))
}

// readyMax is how long a node may be cut off before it is not ready.
const readyMax = 5 * time.Second

// Ready returns nil while the node reaches the majority of Meta.
func (n *Node) Ready() error {
	if n.staleFor() <= readyMax {
		return nil
	}
	return fmt.Errorf("this node has not had all of the cluster's own shard for %s or longer: it is cut off from the leader, or has no room", readyMax)
}

// HandOver gives all leaderships to other nodes, where there is one that can take it, and waits until
// they have them or ctx ends. The node is given none again, but Raft may elect it once more.
func (n *Node) HandOver(ctx context.Context) {
	n.stopping.Store(true)
	n.greetAll(ctx)
	n.giveAll(ctx, func([]peer.NodeID, map[peer.NodeID]hello) bool { return true })
}

// giveAll hands every shard over that another node can lead, and whose voters may have another leader.
func (n *Node) giveAll(ctx context.Context, may func(voters []peer.NodeID, said map[peer.NodeID]hello) bool) {
	taken, said := map[peer.NodeID]int{}, n.heard()
	var all sync.WaitGroup
	for _, sh := range n.led() {
		var to peer.NodeID
		voters := n.replicas(sh).voters
		if !may(voters, said) {
			continue
		}
		for _, id := range voters {
			if id == n.self || !n.isCaughtUp(sh, id) || !said[id].mayLead() {
				continue
			}
			if better := n.isSettled(id); to == "" || better && !n.isSettled(to) || better == n.isSettled(to) && taken[id] < taken[to] {
				to = id
			}
		}
		if to != "" {
			taken[to]++
			all.Go(func() { n.handOver(ctx, sh, to) })
		}
	}
	all.Wait()
}

// Stop ends what the node does by itself, and waits for that until ctx ends. The store is closed after it,
// and then the port.
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
		return fmt.Errorf("what the node does by itself has not ended: %w", ctx.Err())
	}
}

// ClosePort closes the cluster port. It may be called without Run.
func (n *Node) ClosePort(ctx context.Context) error { return n.port.Stop(ctx) }
