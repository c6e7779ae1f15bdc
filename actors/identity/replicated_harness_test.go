package identity

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// freshMax is how long a node of a test counts as fresh after it was cut off.
const freshMax = 3 * time.Second

// cluster is three nodes with the credentials on each.
type cluster struct {
	*replicatest.Cluster
	*testing.T
	nodes []*clusterNode
	asked atomic.Int64 // calls of Current
	// stored is the directory that the store has; nil: that of SetDirectory.
	stored atomic.Pointer[Directory]
}

type clusterNode struct {
	*replicatest.Node
	*Replicated
	c   *cluster
	cut atomic.Int64 // Unix ms when it was cut off; 0: it is not
}

// onCluster runs a test on a cluster whose first node leads, in a bubble.
func onCluster(t *testing.T, o Options, test func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, o)
		test(c)
		c.end()
	})
}

func startCluster(t *testing.T, o Options) *cluster {
	c := &cluster{T: t}
	var err error
	c.Cluster, err = replicatest.Start(t.Context(), replicatest.Options{Nodes: 3, Shards: 1})
	c.must(err)
	o.Directory, o.PasswordCost = parse(t, staff), cheap
	for _, at := range c.Nodes {
		c.nodes = append(c.nodes, &clusterNode{Node: at, c: c})
	}
	for _, n := range c.nodes {
		n.Replicated, err = StartReplicated(ReplicatedOptions{
			Options: o, Store: n.Store, Fresh: n.fresh, Current: n.current, TellUses: n.tell, ReadDirectory: c.readDirectory,
		})
		c.must(err)
	}
	return c
}

func (c *cluster) end() {
	for _, n := range c.nodes {
		c.must(errors.Join(n.Stop(context.Background()), n.Store.Close()))
	}
}

func (c *cluster) readDirectory(take func(*Directory)) {
	if d := c.stored.Load(); d != nil {
		take(d)
	}
}

func (c *cluster) must(err error) {
	c.Helper()
	require.NoError(c, err)
}

// leader is the node that leads the credentials, and is not cut off. It waits for one.
func (c *cluster) leader() *clusterNode {
	for range 1000 {
		for _, n := range c.nodes {
			if n.cut.Load() == 0 && n.Writable() == nil {
				return n
			}
		}
		pass(10 * time.Millisecond)
	}
	c.Fatal("nobody leads")
	return nil
}

func (c *cluster) follower() *clusterNode {
	leader := c.leader()
	for _, n := range c.nodes {
		if n != leader {
			return n
		}
	}
	return nil
}

func (n *clusterNode) isolate(cut bool) {
	n.cut.Store(0)
	if cut {
		n.cut.Store(time.Now().UnixMilli())
	}
	n.Isolate(cut)
}

func (n *clusterNode) fresh() bool {
	at := n.cut.Load()
	return at == 0 || time.Since(time.UnixMilli(at)) < freshMax
}

// current asks the leader, as the cluster port will.
func (n *clusterNode) current(ctx context.Context) error {
	n.c.asked.Add(1)
	for ctx.Err() == nil {
		for _, to := range n.c.nodes {
			if n.cut.Load() != 0 || to.cut.Load() != 0 {
				continue
			}
			if at, err := to.Store.ReadIndex(ctx, key.Meta); err == nil {
				return n.Store.AwaitApplied(ctx, key.Meta, at)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ctx.Err()
}

func (n *clusterNode) tell(uses []Use) {
	for _, to := range n.c.nodes {
		if n.cut.Load() == 0 && to.cut.Load() == 0 {
			to.Used(uses)
		}
	}
}

// hand makes another node the leader; any other when to is empty.
func (c *cluster) hand(to string) {
	c.Helper()
	old := c.leader()
	c.must(old.Store.Replica(key.Meta).HandOver(c.Context(), to))
	for c.leader() == old {
		pass(10 * time.Millisecond)
	}
}

// ask has the leader do something, until it has done it: as the gateway does, it goes to another
// node after ErrNotLeader, and what has no known outcome is repeated.
func (c *cluster) ask(do func(*clusterNode) error) {
	c.Helper()
	for range 100 {
		err := do(c.leader())
		switch failure.Of(errors.Join(err, failure.ErrInternal)).Kind {
		case failure.ErrNotLeader, failure.ErrOutcomeUnknown, failure.ErrUnavailable:
			pass(100 * time.Millisecond)
		default:
			c.must(err)
			return
		}
	}
	c.Fatal("no answer for a long time")
}

func (c *cluster) token() (secret string) {
	c.Helper()
	c.ask(func(n *clusterNode) (err error) {
		secret, _, err = n.Create(c.Context(), Token, CreateCredential{User: "john.doe"})
		return err
	})
	return secret
}

func (c *cluster) session() (secret string) {
	c.Helper()
	c.ask(func(n *clusterNode) (err error) {
		secret, _, err = n.Create(c.Context(), Session, CreateCredential{User: "john.doe"})
		return err
	})
	return secret
}

func (c *cluster) since(secret string) time.Duration {
	c.Helper()
	e, err := c.leader().read(secret[:idChars])
	c.must(err)
	return time.Since(time.UnixMilli(e.created))
}

func (c *cluster) revoke(secret string) {
	c.Helper()
	c.ask(func(n *clusterNode) error { return n.Revoke(c.Context(), Token, secret) })
}

// wants checks what a node says of a credential; nil is that it works.
func (n *clusterNode) wants(what string, kind Kind, secret string, want error) {
	n.c.Helper()
	p, err := n.Authenticate(kind, secret)
	assert.True(n.c, errors.Is(err, want) && !(want == nil && (err != nil || p.ID != "john.doe")), "%s on %s: got %+v, %v, want %v", what, n.Name, p, err, want)
}

func (c *cluster) everywhere(what string, kind Kind, secret string, want error) {
	c.Helper()
	for _, n := range c.nodes {
		n.wants(what, kind, secret, want)
	}
}
