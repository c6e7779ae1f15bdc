package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/replica/replicatest"
)

// world is some nodes in memory, in a bubble of testing/synctest.
type world struct {
	t        *testing.T
	net      *replicatest.Network
	shards   int
	machines int

	mu    sync.Mutex
	nodes map[peer.NodeID]*process // that run
	words map[string]string        // what is said at an address by whoever wants to join
	// dismissed is asked before a node is told that it was removed. Nil: it is told.
	dismissed func(by *Node, id peer.NodeID) error
}

func (w *world) listen(_ context.Context, address string) (string, error) {
	word, there := w.words[address]
	if !there {
		return "", errSilent
	}
	return word, nil
}

// process is a node that runs, or has run.
type process struct {
	*Node
	w            *world
	machine      int
	dir, address string
	disk         persistence.Options
	store        *persistence.Store
	full         atomic.Bool // its disk
	past         atomic.Bool // its clock lies before all certificates of others
	log          io.Writer   // nil: nobody reads it
	shards       int         // Options.Shards
	level        int         // that of its program; 0: levelHere
}

func newWorld(t *testing.T, shards int) *world {
	return &world{t: t, net: replicatest.NewNetwork(), shards: shards, nodes: map[peer.NodeID]*process{}}
}

// inWorld runs a test in a bubble, with nodes that are stopped at its end.
func inWorld(t *testing.T, shards int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, shards)
		defer w.end()
		test(t, w)
	})
}

func (w *world) machine() *process {
	w.machines++
	address := fmt.Sprintf("machine%d:9400", w.machines)
	return &process{w: w, machine: w.machines, dir: filepath.Join(w.t.TempDir(), "node"), disk: replicatest.StoreOptions(address, 0), address: address}
}

func (w *world) first() *process {
	w.t.Helper()
	p := w.machine()
	p.disk.Shards = w.shards
	s, err := persistence.Open("store", p.options(nil))
	require.NoError(w.t, err)
	_, err = Found(s, p.dir, p.address)
	require.NoError(w.t, err)
	w.check(s.Close())
	w.check(p.start())
	return p
}

func (w *world) three() (a, b, c *process) {
	w.t.Helper()
	a = w.first()
	b, c = w.join(a), w.join(a)
	w.await("three nodes", func() bool { return w.whole(3) })
	return a, b, c
}

func (w *world) join(through *process) *process {
	w.t.Helper()
	p, err := w.joinAs(through, w.invite(through, time.Hour))
	w.check(err)
	w.check(p.start())
	return p
}

func (w *world) invite(through *process, expires time.Duration) peer.JoinKey {
	w.t.Helper()
	text, err := through.Invite(w.t.Context(), expires)
	w.check(err)
	key, err := peer.ParseJoinKey(text)
	w.check(err)
	return key
}

func (w *world) joinAs(through *process, key peer.JoinKey) (*process, error) {
	p := w.machine()
	j, err := joinBy(w.t.Context(), &http.Client{Transport: handled{through.join}}, Joining{Key: key, Advertise: p.address, Version: "test"})
	if err != nil {
		return nil, err
	}
	assert.Equal(w.t, w.shards, j.shards, "the cluster")
	return p, j.Save(p.dir)
}

// handled is a transport to a handler.
type handled struct{ to http.HandlerFunc }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	recorded := httptest.NewRecorder()
	h.to(recorded, r)
	return recorded.Result(), nil
}

func (p *process) options(r *persistence.Replication) persistence.Options {
	o := p.disk
	o.Replication = r
	return o
}

func (p *process) start() (err error) {
	if err := p.startNode(); err != nil {
		return err
	}
	p.w.mu.Lock()
	p.w.nodes[p.self] = p
	p.w.mu.Unlock()
	p.disk.Shards = cmp.Or(p.Shards(), p.disk.Shards)
	if p.store, err = persistence.Open("store", p.options(p.Replication())); err != nil {
		return err
	}
	return p.Run(p.store)
}

func (p *process) startNode() error {
	log := zerolog.Nop()
	if testing.Verbose() {
		log = zerolog.New(zerolog.ConsoleWriter{Out: p.w.t.Output(), NoColor: true}).With().Timestamp().Logger()
	}
	if p.log != nil {
		log = zerolog.New(p.log)
	}
	n, err := load(Options{Dir: p.dir, Advertise: p.address, Version: "test", Shards: p.shards, Log: log}, func(n *Node) (network, error) {
		streams := p.w.net.Streams(string(n.self))
		return network{port: memoryPort{p.w, n, &p.past}, streams: streams, nodeOf: callerOf, listen: p.w.listen}, nil
	})
	if err != nil {
		return err
	}
	n.full = p.full.Load
	n.level = cmp.Or(p.level, levelHere)
	p.w.mu.Lock()
	p.Node = n
	p.w.mu.Unlock()
	return p.Claim(context.Background())
}

func (p *process) stop(inOrder bool) {
	p.w.t.Helper()
	if inOrder {
		p.HandOver(context.Background())
		p.forget()
	} else {
		p.vanish()
		defer p.isolate(false)
	}
	p.w.check(p.Stop(context.Background()))
	p.w.check(p.store.Close())
	p.w.check(p.ClosePort(context.Background()))
}

func (p *process) forget() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	delete(p.w.nodes, p.self)
}

// vanish has nobody reach the node, nor it anybody.
func (p *process) vanish() {
	p.forget()
	p.isolate(true)
}

func (p *process) isolate(cut bool) {
	for _, id := range append(p.known(), "nobody") {
		p.w.net.Set(string(p.self), string(id), cut)
		p.w.net.Set(string(id), string(p.self), cut)
	}
}

func (w *world) end() {
	w.mu.Lock()
	var all []*process
	for _, p := range w.nodes {
		all = append(all, p)
	}
	w.mu.Unlock()
	for _, p := range all {
		p.stop(true)
	}
}

func (w *world) check(err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

// await waits for at most two minutes.
func (w *world) await(what string, met func() bool) {
	w.t.Helper()
	for range 1200 {
		if met() {
			return
		}
		clocktest.Advance(100 * time.Millisecond)
	}
	w.t.Fatalf("within two minutes: not %s", what)
}

// memoryPort is a port to the nodes of the world.
type memoryPort struct {
	w    *world
	n    *Node
	past *atomic.Bool
}

func (memoryPort) Start() error                 { return nil }
func (memoryPort) Stop(context.Context) error   { return nil }
func (memoryPort) Disconnect(peer.NodeID)       {}
func (memoryPort) Abandon(peer.NodeID)          {}
func (memoryPort) Metrics() (none peer.Metrics) { return none }

type callerKey struct{}

func callerOf(ctx context.Context) peer.NodeID {
	id, _ := ctx.Value(callerKey{}).(peer.NodeID)
	return id
}

var errSilent = errors.New("nothing comes back")

// RoundTrip has the other node answer, unless the links are cut.
func (m memoryPort) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.URL.Host
	m.w.mu.Lock()
	var there *Node // NB: that of the process that runs now; the next process of it may start meanwhile
	if p := m.w.nodes[peer.NodeID(to)]; p != nil {
		there = p.Node
	}
	m.w.mu.Unlock()
	if there == nil {
		return nil, fmt.Errorf("%w: %w", peer.ErrNotSent, errSilent)
	}
	if m.w.net.Cut(string(m.n.self), to) || m.w.net.Cut(to, string(m.n.self)) {
		<-r.Context().Done()
		return nil, errSilent
	}
	if there.isGone(m.n.self) {
		return nil, peer.ErrRefused
	}
	if r.URL.Path == pathGoodbye && m.w.dismissed != nil {
		if err := m.w.dismissed(m.n, there.self); err != nil {
			return nil, err
		}
	}
	if m.past.Load() {
		return nil, fmt.Errorf("call node %s: %w", to, peer.ErrExpired)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	recorded := httptest.NewRecorder()
	asked := httptest.NewRequestWithContext(context.WithValue(r.Context(), callerKey{}, m.n.self), r.Method, r.URL.Path, nil)
	asked.Body = io.NopCloser(bytes.NewReader(body))
	there.mux.ServeHTTP(recorded, asked)
	return recorded.Result(), nil
}
