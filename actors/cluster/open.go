package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
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

// Replication is what the store of the node is opened with.
func (n *Node) Replication() *persistence.Replication {
	return &persistence.Replication{Node: string(n.self), Streams: n.streams, Tick: n.o.Tick}
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
	for _, loop := range []func(){n.greetLoop, n.freshLoop, n.keepLoop, n.rereadLoop, n.renewLoop} {
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

func (n *Node) freshLoop() { n.every(n.o.Pace, n.freshen) }

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
	return fmt.Errorf("this node has not had all of the cluster's own shard for %s or longer: it is cut off from the leader, or has no room", readyMax)
}

// HandOver gives all leaderships to other nodes, where there is one that can take it, and waits until
// they have them or ctx ends. The node is given none again, but Raft may elect it once more.
func (n *Node) HandOver(ctx context.Context) {
	n.stopping.Store(true)
	n.greetAll(ctx)
	n.giveAll(ctx, func([]peer.NodeID, map[peer.NodeID]hello) bool { return true })
}

// Stop ends what the node does by itself. The store is closed after it, and then the port.
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
