package workflow_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
	"troupe/statemachine"
)

const (
	clusterNodes     = 3
	clusterShards    = 2
	clusterInstances = 6
	clusterClients   = 6
)

// seeds is how many runs each test makes that draws what happens. One holds each promise; .ci/run
// makes more.
var seeds = flag.Uint64("seeds", 1, "how many runs the tests make that draw what happens")

// rounds is how long such a run is: in a short test, usually, and where more than one is made.
func rounds(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case *seeds > 1:
		return long
	}
	return usual
}

// cluster is some nodes that have the same shards, with a router on each.
type cluster struct {
	*replicatest.Cluster
	t *testing.T
	// moments counts the begins and ends of requests, of which several can be at one moment of virtual time.
	moments atomic.Int64
	// of has more nodes and shards than usual; zero: clusterNodes and clusterShards.
	of      replicatest.Options
	indexes []string // those of "stock"
	more    []string // definitions that others do not need
	// served is called when a node has its router. Nil: nothing is done.
	served func(*clusterNode)
	// treeMax is how many instances of a tree may run; 0: the default.
	treeMax int
	// options changes those of a node's catalog. Nil: nothing does.
	options func(*clusterNode, *catalog.Options)

	mu    sync.Mutex // guards the nodes' routers, which are nil while a node is down, and mute
	nodes []*clusterNode
	mute  string // a node that answers no question
}

type clusterNode struct {
	*replicatest.Node
	c       *cluster
	system  *actors.System
	catalog *catalog.Catalog
	router  *workflow.Router
	// stopFollowing ends what follows Meta; nil: nothing does.
	stopFollowing func()
	// after is called when the node has become current in a shard; nil: nothing is.
	after func(key.Shard)
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	c.start(c.publish)
	return c
}

// start begins with what before makes of the first node while that stands alone.
func (c *cluster) start(before func(*persistence.Store) error) {
	var err error
	if c.of.Nodes == 0 {
		c.of.Nodes, c.of.Shards = clusterNodes, clusterShards
	}
	c.of.Before = before
	c.Cluster, err = replicatest.Start(c.t.Context(), c.of)
	c.must(err)
	for _, n := range c.Nodes {
		c.nodes = append(c.nodes, &clusterNode{Node: n, c: c})
	}
	for _, n := range c.nodes {
		n.serve()
	}
}

// publish makes the definitions on a node that stands alone.
func (c *cluster) publish(store *persistence.Store) error {
	var set []catalog.Source
	usual := []string{stock("stock", 1, c.indexes...), remind, above, below, deepest, minutely, faulty, definition("@desk"), definition("@bomb"), definition("@hand")}
	for _, text := range append(usual, c.more...) {
		file := fmt.Sprintf("workflows/%d.yaml", len(set))
		parsed, err := c.parser().Parse(statemachine.Source{File: file, Text: []byte(text)})
		c.must(err)
		set = append(set, catalog.Source{File: file, Text: []byte(text), Parsed: parsed.Definition})
	}
	c.must(c.catalog(store).Publish(set))
	return nil
}

func (c *cluster) must(err error) {
	c.t.Helper()
	require.NoError(c.t, err)
}

// pass lets virtual time pass.
func (c *cluster) pass(d time.Duration) { <-time.After(d) }

func (c *cluster) parser() *statemachine.Parser {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	c.must(err)
	return parser
}

func (c *cluster) catalog(store *persistence.Store) *catalog.Catalog { return c.catalogOf(nil, store) }

// catalogOf opens the catalog of a node; nil: of one that stands alone.
func (c *cluster) catalogOf(n *clusterNode, store *persistence.Store) *catalog.Catalog {
	o := catalog.Options{Store: store, Parser: c.parser(), Log: zerolog.Nop()}
	if n != nil && c.options != nil {
		c.options(n, &o)
	}
	definitions, err := catalog.Open(o)
	c.must(err)
	return definitions
}

// serve starts a router on the store.
func (n *clusterNode) serve() {
	system, definitions := actors.NewSystem(zerolog.Nop()), n.c.catalogOf(n, n.Store)
	router, err := workflow.Start(workflow.Options{Store: n.Store, System: system, Catalog: definitions, Log: zerolog.Nop(), Clock: time.Now, Current: n.current, Peers: n, Sender: receiver{}, Elsewhere: n.elsewhere, PutElsewhere: n.putElsewhere, TreeInstancesMax: n.c.treeMax})
	n.c.must(err)
	n.c.mu.Lock()
	n.system, n.catalog, n.router = system, definitions, router
	n.c.mu.Unlock()
	if n.c.served != nil {
		n.c.served(n)
	}
}

// elsewhere has the leader of a shard take a message between instances, over links that are not cut.
func (n *clusterNode) elsewhere(ctx context.Context, sh uint16, m *child.Message) (string, error) {
	n.c.mu.Lock()
	nodes := slices.Clone(n.c.nodes)
	n.c.mu.Unlock()
	for _, to := range nodes {
		n.c.mu.Lock()
		router := to.router
		n.c.mu.Unlock()
		if router == nil || n.c.Net.Cut(n.Name, to.Name) || n.c.Net.Cut(to.Name, n.Name) || router.Store().Epoch(key.Shard(sh)) == 0 {
			continue
		}
		return router.Inside(ctx, m)
	}
	return "", failure.ErrUnavailable
}

// Leader implements fanout.Peers.
func (n *clusterNode) Leader(ctx context.Context, sh key.Shard) (string, error) {
	for {
		switch name := n.c.leader(sh, func(of *clusterNode) bool { return !n.isCutFrom(of.Name) }); name { // NB: a node need not have a replica to hear of it
		case n.Name:
			return "", nil
		case "":
		default:
			return name, nil
		}
		select {
		case <-ctx.Done():
			return "", failure.Errorf(failure.ErrUnavailable, "leader of shard %d: %w", sh, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// leader is the node that serves and leads a shard, of those that may be asked; "" for none.
func (c *cluster) leader(sh key.Shard, may func(*clusterNode) bool) (name string) {
	for of, store := range c.serving(may) {
		if store.Epoch(sh) != 0 {
			name = of
		}
	}
	return name
}

// serving is the stores of the nodes that serve, by name.
func (c *cluster) serving(may func(*clusterNode) bool) map[string]*persistence.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	stores := map[string]*persistence.Store{}
	for _, of := range c.nodes {
		if of.router != nil && may(of) {
			stores[of.Name] = of.router.Store()
		}
	}
	return stores
}

func (n *clusterNode) isCutFrom(other string) bool {
	return n.Name != other && (n.c.Net.Cut(n.Name, other) || n.c.Net.Cut(other, n.Name))
}

// Ask implements fanout.Peers, over links that are not cut.
func (n *clusterNode) Ask(ctx context.Context, node string, question []byte) (io.ReadCloser, error) {
	n.c.mu.Lock()
	var router *workflow.Router
	for _, of := range n.c.nodes {
		if of.Name == node {
			router = of.router
		}
	}
	isMute := node == n.c.mute
	n.c.mu.Unlock()
	if isMute {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if router == nil || n.isCutFrom(node) {
		return nil, failure.ErrUnavailable
	}
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	a := &answered{PipeReader: in, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		_ = out.CloseWithError(router.Fanout.Answer(ctx, question, cuttable{out, func() bool { return n.isCutFrom(node) }}, func() error { return nil }))
	}()
	return a, nil
}

// answered is the answer of another node. Close ends it.
type answered struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan struct{}
}

func (a *answered) Close() error {
	a.cancel()
	_ = a.PipeReader.Close() // it never fails
	<-a.done
	return nil
}

type cuttable struct {
	io.Writer
	isCut func() bool
}

func (c cuttable) Write(p []byte) (int, error) {
	if c.isCut() {
		return 0, failure.ErrUnavailable
	}
	return c.Writer.Write(p)
}

// current asks the leader of Meta, as the cluster port does; other shards are read where they are led.
func (n *clusterNode) current(ctx context.Context, sh key.Shard) error {
	if n.after != nil {
		defer n.after(sh)
	}
	if sh != key.Meta {
		_, err := n.Store.ReadIndex(ctx, sh)
		return failure.OfStore(err)
	}
	return n.catchUp(ctx, sh)
}

// catchUp waits until the node's replica of a shard has what its leader has now.
func (n *clusterNode) catchUp(ctx context.Context, sh key.Shard) error {
	for ctx.Err() == nil {
		for _, to := range n.c.serving(func(of *clusterNode) bool { return !n.isCutFrom(of.Name) }) {
			if at, err := to.ReadIndex(ctx, sh); err == nil {
				return n.Store.AwaitApplied(ctx, sh, at)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// stop ends a node.
func (n *clusterNode) stop() {
	n.c.mu.Lock()
	router := n.router
	n.router = nil
	n.c.mu.Unlock()
	if n.stopFollowing != nil {
		n.stopFollowing()
	}
	ctx := context.Background()
	n.c.must(errors.Join(router.Stop(ctx), n.system.Stop(ctx), n.Store.Close()))
}

// crash takes the power from a node, and starts it again after some time.
func (n *clusterNode) crash(r *rand.Rand, down time.Duration) {
	n.CutPower(r)
	n.stop()
	n.c.pass(down)
	n.c.must(n.Restore())
	n.serve()
}

// ask has one node after the other try until there is an answer: as the gateway does, it goes
// to the leader of a shard that is led elsewhere, and what has no known outcome is
// repeated with its key.
func (c *cluster) ask(r *rand.Rand, try func(*workflow.Router) error) error {
	next := ""
	for range 2000 {
		c.mu.Lock()
		at := c.nodes[r.IntN(len(c.nodes))]
		for _, n := range c.nodes {
			if n.Name == next {
				at = n
			}
		}
		router := at.router
		c.mu.Unlock()
		next = ""
		if router != nil {
			err := try(router)
			of := failure.Of(cmp.Or(err, error(failure.ErrInternal)))
			switch {
			case err == nil:
				return nil
			case of.Kind == failure.ErrNotLeader:
				next = c.leader(key.Shard(of.Shard), func(*clusterNode) bool { return true })
			case of.Kind != failure.ErrUnavailable && of.Kind != failure.ErrBusy && of.Kind != failure.ErrOutcomeUnknown:
				return err
			}
		}
		c.pass(time.Duration(5+r.IntN(20)) * time.Millisecond)
	}
	return errors.New("no answer for a long time")
}

// TestInstancesAreLinearizableOnACluster has clients create, send and look through any node
// while nodes lose power and links: the history of each instance is that of one that
// exists once.
func TestInstancesAreLinearizableOnACluster(t *testing.T) {
	rounds := rounds(2, 5, 10)
	for seed := range *seeds {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			r := rand.New(rand.NewPCG(seed, 1))
			clients := make([]client, clusterClients)
			var running sync.WaitGroup
			stop := make(chan struct{})
			instances := make([]string, clusterInstances)
			for i := range instances {
				instances[i] = c.create(r, fmt.Sprint("first-", i))
			}
			for i := range clients {
				clients[i] = client{c: c, number: i, r: rand.New(rand.NewPCG(seed, uint64(10+i))), instances: instances}
				running.Go(func() { clients[i].run(stop) })
			}
			for range rounds {
				c.fault(r)
			}
			close(stop)
			running.Wait()
			var history []porcupine.Operation
			created := 0
			for _, client := range clients {
				history = append(history, client.history...)
				created += client.created
			}
			assert.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(instanceModel, history, 0), "%v %v", seed, len(history))
			assert.GreaterOrEqual(t, len(history), 50*rounds, "seed %d: only", seed)
			c.checkCount(created + clusterInstances)
			for _, n := range c.nodes {
				n.stop()
			}
			t.Logf("seed %d: %d operations, %d creates", seed, len(history), created)
		})
	}
}

// client sends one request after the other.
type client struct {
	c         *cluster
	number    int
	r         *rand.Rand
	instances []string
	history   []porcupine.Operation
	created   int
}

func (cl *client) run(stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		key := fmt.Sprintf("%d-%d", cl.number, n)
		if cl.r.IntN(20) == 0 {
			cl.c.create(cl.r, key)
			cl.created++
			continue
		}
		o := operation{instance: cl.instances[cl.r.IntN(len(cl.instances))]}
		if cl.r.IntN(3) > 0 {
			o.sets = fmt.Sprint(1000*n + cl.number)
		}
		called := cl.c.moments.Add(1)
		var seen glance
		err := cl.c.ask(cl.r, func(router *workflow.Router) (err error) {
			seen, err = o.ask(router, key)
			return err
		})
		if !assert.NoError(cl.c.t, err, "client %d", cl.number) {
			return
		}
		cl.history = append(cl.history, porcupine.Operation{ClientId: cl.number, Input: o, Output: seen, Call: called, Return: cl.c.moments.Add(1)})
		cl.c.pass(time.Duration(cl.r.IntN(10)) * time.Millisecond)
	}
}

// create makes one instance, however often it has to ask.
func (c *cluster) create(r *rand.Rand, key string) (id string) {
	return c.createWith(r, key, "stock", `{"a":0}`)
}

func (c *cluster) createWith(r *rand.Rand, key, workflowID, public string) (id string) {
	err := c.ask(r, func(router *workflow.Router) error {
		reply, err := router.Create(context.Background(), &message.Create{
			Caller: boss, WorkflowID: workflowID, Public: value(public), Retry: event(boss, "", "", "", "", key).Retry,
		})
		if err == nil {
			id = reply.InstanceID
		}
		return err
	})
	assert.NoError(c.t, err, "create %s", key)
	return id
}

// fault does something bad to the cluster while clients work, and ends it.
func (c *cluster) fault(r *rand.Rand) {
	n := c.nodes[r.IntN(clusterNodes)]
	switch r.IntN(4) {
	case 0:
		n.crash(r, time.Duration(r.IntN(3000))*time.Millisecond)
	case 1:
		n.Isolate(true)
		c.pass(time.Duration(500+r.IntN(4000)) * time.Millisecond)
		n.Isolate(false)
	case 2:
		other := c.nodes[r.IntN(clusterNodes)]
		c.Net.Set(n.Name, other.Name, true)
		c.pass(time.Duration(500+r.IntN(4000)) * time.Millisecond)
		c.Net.Set(n.Name, other.Name, false)
	case 3:
		for sh := range n.Store.AllShards() {
			_ = n.Store.Replica(sh).HandOver(c.t.Context(), "") // it may lead nothing
		}
	}
	c.pass(time.Duration(r.IntN(1500)) * time.Millisecond)
}

// checkCount says that there are so many instances, on the node that leads them.
func (c *cluster) checkCount(want int) {
	c.pass(10 * time.Second) // all followers have what was acknowledged
	for _, n := range c.nodes {
		got, err := n.Store.CountAll(key.CountPrefix(nil, key.EveryShard, "stock"))
		c.must(err)
		assert.Equal(c.t, want, int(got), "%s has %d instances", n.Name, got)
	}
}

// TestALeaderThatIsCutOffShowsNothing: another node may lead already, whatever this one's
// clock says (persistence/PROMISES.md, "P24").
func TestALeaderThatIsCutOffShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		id := c.create(rand.New(rand.NewPCG(1, 1)), "one")
		first := c.nodes[0] // it leads everything
		look := func(id string) error {
			_, err := first.router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "stock", InstanceID: id})
			return err
		}
		c.must(look(id))
		last := "0"
		if strings.HasSuffix(id, last) {
			last = "1"
		}
		missing := id[:len(id)-1] + last
		assert.ErrorIs(t, look(missing), failure.ErrNotFound, "what is not there")
		first.Isolate(true)
		for what, id := range map[string]string{"awake": id, "missing": missing} {
			assert.ErrorIs(t, look(id), failure.ErrNotLeader, what)
		}
		_, err := first.router.Send(context.Background(), event(boss, "stock", id, "set", `{"a":2}`, ""))
		assert.False(t, !errors.Is(err, failure.ErrNotLeader) && !errors.Is(err, failure.ErrOutcomeUnknown), "an event: got %v", err)
		first.Isolate(false)
		c.pass(10 * time.Second)
		for _, n := range c.nodes {
			n.stop()
		}
	})
}
