package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// retireCluster is a cluster of three nodes on which versions are retired.
type retireCluster struct {
	*indexCluster
	// turn has an entry while a shard is asked: one at a time.
	turn chan struct{}
	// before and after are called for each shard that is asked. Nil: nothing is done.
	before func(asking *clusterNode, v catalog.Vacancy) error
	after  func(v catalog.Vacancy)
}

// onRetireCluster runs a test on one whose first node leads all, which has versions 1 and 2 of a workflow.
func onRetireCluster(t *testing.T, test func(*retireCluster)) {
	t.Helper()
	c := &retireCluster{}
	faults := onIndexCluster(t, func(on *indexCluster) {
		c.indexCluster, c.turn = on, make(chan struct{}, 1)
		on.options = func(n *clusterNode, o *catalog.Options) {
			o.Current = func(ctx context.Context) error { return n.current(ctx, key.Meta) }
			o.Vacate = func(ctx context.Context, v catalog.Vacancy) (uint64, error) { return c.vacate(ctx, n, v) }
		}
	}, func(*indexCluster) {
		c.door(1, nil)
		c.door(2, nil)
		c.pass(time.Second)
		test(c)
		c.noneWithoutDefinition()
	})
	for _, fault := range faults {
		t.Error(fault)
	}
}

// vacate asks the node that leads the shard, as package cluster does.
func (c *retireCluster) vacate(ctx context.Context, n *clusterNode, v catalog.Vacancy) (used uint64, err error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.before != nil {
		if err := c.before(n, v); err != nil {
			return 0, err
		}
	}
	for range 200 {
		for _, to := range c.nodes {
			if to.router == nil || c.Net.Cut(n.Name, to.Name) || c.Net.Cut(to.Name, n.Name) || to.Store.Epoch(key.Shard(v.Shard)) == 0 {
				continue
			}
			if used, err = to.catalog.Vacate(ctx, v); errors.Is(err, failure.ErrNotLeader) {
				continue
			}
			if c.after != nil {
				c.after(v)
			}
			return used, err
		}
		c.pass(50 * time.Millisecond)
	}
	return 0, failure.Refuse(failure.ErrUnavailable, "no node leads shard %d", v.Shard)
}

var keeper = workflowtest.Principal("keeper", nil, "mod-workflows")

// door publishes a version of the workflow, and wants an error.
func (c *retireCluster) door(version int, want error) {
	c.t.Helper()
	text := fmt.Sprintf("id: door\nversion: %d\nstateMachines: {m: {initial: open, states: {open: {on: {shut: shut}}, shut: {on: {open: open}}}}}\n", version)
	parsed, err := c.parser().Parse(statemachine.Source{File: "body.yaml", Text: []byte(text)})
	c.must(err)
	err = c.onMeta(func(n *clusterNode) error {
		_, err := n.catalog.PublishDefinition(catalog.Source{File: "body.yaml", Text: []byte(text), Parsed: parsed.Definition}, keeper)
		return err
	})
	assert.ErrorIs(c.t, err, want, "publish version %d", version)
}

// onMeta does something on the node that leads Meta.
func (c *retireCluster) onMeta(do func(*clusterNode) error) (err error) {
	for range 200 {
		for _, n := range c.nodes {
			if n.router == nil {
				continue
			}
			if err = do(n); !errors.Is(err, failure.ErrNotLeader) {
				return err
			}
		}
		c.pass(100 * time.Millisecond)
	}
	return err
}

// retires demands what becomes of a retirement.
func (c *retireCluster) retires(what string, version uint64, want error, gone ...uint64) error {
	c.t.Helper()
	var got []uint64
	err := c.onMeta(func(n *clusterNode) (err error) {
		got, err = n.catalog.Retire(context.Background(), "door", version, keeper)
		return err
	})
	assert.True(c.t, errors.Is(err, want) && slices.Equal(got, gone), "%s: got %v, %v, want %v, %v", what, got, err, gone, want)
	return err
}

// opens creates an instance through a node.
func (c *retireCluster) opens(n *clusterNode) (id string, err error) {
	r, err := n.router.Create(context.Background(), &message.Create{Caller: keeper, WorkflowID: "door"})
	if err != nil {
		return "", err
	}
	return r.InstanceID, nil
}

// wantVersion demands of which version an instance is that a node creates.
func (c *retireCluster) wantVersion(what string, n *clusterNode, want uint64) (id string) {
	c.t.Helper()
	id, err := c.opens(n)
	for tries := 0; errors.Is(err, failure.ErrUnavailable) && tries < 100; tries++ {
		c.pass(100 * time.Millisecond)
		id, err = c.opens(n)
	}
	if !assert.NoError(c.t, err, "%s: %s creates nothing", what, n.Name) {
		return ""
	}
	parsed, _ := instanceid.Parse(id)
	text, err := n.Store.Load(key.Record(nil, n.Store.ShardOf(parsed), "door", parsed))
	c.must(err)
	record, err := statemachine.ParseRecord(text)
	assert.True(c.t, err == nil && record.Version == want, "%s: %s creates version %d, %v, want %d", what, n.Name, record.Version, err, want)
	return id
}

// moves gives an instance another version.
func (c *retireCluster) moves(n *clusterNode, id string, from, to uint64) {
	c.t.Helper()
	plan, err := c.parser().ParsePlan("plan", fmt.Appendf(nil, "from: %d\nto: %d\n", from, to), func(number uint64) (*statemachine.Definition, error) {
		return n.catalog.Find("door", number)
	})
	c.must(err)
	moved, err := n.router.Migrate("door", id, &message.Migration{Plan: plan, Caller: catalog.CallerOf(keeper)})
	assert.True(c.t, err == nil && moved, "%s is not migrated to version %d: %v", id, to, err)
}

// noneWithoutDefinition is the invariant: whatever version an instance has is there on every node.
func (c *retireCluster) noneWithoutDefinition() {
	c.pass(10 * time.Second)
	for _, n := range c.nodes {
		for sh := range key.Shard(clusterShards) {
			c.must(n.Store.Scan(key.RecordPrefix(nil, sh, "door"), func(_, text []byte) error {
				record, err := statemachine.ParseRecord(slices.Clone(text))
				if _, missing := n.Store.Load(key.Definition(nil, "door", record.Version)); missing != nil {
					c.fault("%s, shard %d: an instance of version %d: %v", n.Name, sh, record.Version, missing)
				}
				return err
			}))
		}
	}
}

// TestAVersionIsRetiredInACluster: when no shard has an instance of it, whoever leads that. Its number cannot be used again.
func TestAVersionIsRetiredInACluster(t *testing.T) {
	onRetireCluster(t, func(c *retireCluster) {
		c.give(c.nodes[1])
		id := c.wantVersion("at first", c.nodes[1], 2)
		_ = c.retires("a version that an instance has", 2, failure.ErrInUse)
		_ = c.retires("all of them", 0, failure.ErrInUse)
		c.wantVersion("after it was refused", c.nodes[1], 2)
		_, err := c.nodes[2].catalog.Retire(context.Background(), "door", 1, keeper)
		assert.ErrorIs(t, err, failure.ErrNotLeader, "another node than the one that leads")
		_ = c.retires("one that nothing uses", 1, nil, 1)
		c.door(1, failure.ErrExists)
		c.door(3, nil)
		c.pass(time.Second)
		_ = c.retires("the newest", 3, nil, 3)
		c.pass(time.Second)
		for _, n := range c.nodes {
			for _, gone := range []uint64{1, 3} {
				_, err := n.catalog.Find("door", gone)
				assert.ErrorIs(t, err, failure.ErrNotFound, "%s has version %d", n.Name, gone)
			}
		}
		c.wantVersion("the one before", c.nodes[1], 2)
		c.door(3, failure.ErrExists)
		c.door(4, nil)
		c.pass(time.Second)
		c.moves(c.nodes[1], id, 2, 4)
		_ = c.retires("what others use still", 2, failure.ErrInUse)
		c.nodes[0].crash(rand.New(rand.NewPCG(1, 1)), 10*time.Second)
		c.wantVersion("after a restart", c.nodes[1], 4)
		c.door(1, failure.ErrExists)
	})
}

// TestACreateBesideARetirement: it gets the version, and the retirement is refused; or the version goes, and it gets another. Each order of events that there
// can be is made to happen.
func TestACreateBesideARetirement(t *testing.T) {
	t.Run("a create comes before its shard is asked", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			c.give(c.nodes[1])
			release := c.hold(c.nodes[1]) // NB: it has not heard that the version is being retired
			c.before = func(*clusterNode, catalog.Vacancy) error {
				c.before = nil
				c.wantVersion("meanwhile", c.nodes[1], 2)
				return nil
			}
			_ = c.retires("what was created meanwhile", 2, failure.ErrInUse)
			release()
			c.wantVersion("afterwards", c.nodes[1], 2)
		})
	})
	t.Run("a create comes after its shard was asked", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			c.give(c.nodes[1])
			asked := 0
			c.after = func(catalog.Vacancy) {
				if asked++; asked == clusterShards {
					_, err := c.opens(c.nodes[1])
					assert.True(t, errors.Is(err, failure.ErrUnavailable) && strings.Contains(err.Error(), "version 2 of workflow door is being retired: try again"), err)
				}
			}
			_ = c.retires("what nobody has", 2, nil, 2)
			c.wantVersion("afterwards", c.nodes[1], 1)
		})
	})
	t.Run("another node leads the shard that was asked, and has not heard of it", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			release := c.hold(c.nodes[2])
			asked := 0
			c.after = func(catalog.Vacancy) {
				if asked++; asked < clusterShards {
					return
				}
				c.give(c.nodes[2])
				id, err := c.opens(c.nodes[2])
				assert.ErrorIs(t, err, failure.ErrUnavailable, "a node that has not heard of it creates %s", id)
			}
			_ = c.retires("what nobody has", 2, nil, 2)
			id, err := c.opens(c.nodes[2])
			assert.ErrorIs(t, err, failure.ErrUnavailable, "a node that has not heard that it is gone creates %s", id)
			release()
			c.wantVersion("afterwards", c.nodes[2], 1)
		})
	})
}

// TestARetirementThatCannotEnd: it is refused with the reason, and the version is what new instances get.
func TestARetirementThatCannotEnd(t *testing.T) {
	t.Run("nobody leads a shard", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			c.before = func(_ *clusterNode, v catalog.Vacancy) error {
				if v.Shard == 1 {
					return failure.Refuse(failure.ErrUnavailable, "no node leads shard 1: are most of its nodes running?")
				}
				return nil
			}
			err := c.retires("a shard without a leader", 2, failure.ErrUnavailable)
			const reason = "cannot tell whether instances of shard 1 use workflow door, so nothing was retired: no node leads shard 1: are most of its nodes running?"
			assert.Equal(t, reason, failure.Of(err).Reason, "got %v", err)
			c.wantVersion("afterwards", c.nodes[0], 2)
		})
	})
	t.Run("the node that leads Meta is cut off", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			c.give(c.nodes[1])
			c.before = func(asking *clusterNode, _ catalog.Vacancy) error {
				c.before = nil
				assert.Same(t, c.nodes[0], asking, "retires")
				c.nodes[0].Isolate(true)
				return nil
			}
			_, err := c.nodes[0].catalog.Retire(context.Background(), "door", 2, keeper)
			assert.Error(t, err, "a node that is cut off has retired a version")
			c.wantVersion("without it", c.nodes[1], 2) // NB: another one leads Meta, and gives the retirement up
			c.nodes[0].Isolate(false)
			c.pass(10 * time.Second)
			_ = c.retires("what was created meanwhile", 2, failure.ErrInUse)
			_ = c.retires("the other one", 1, nil, 1)
		})
	})
	t.Run("a node that is down is not needed, and learns of it when it is back", func(t *testing.T) {
		onRetireCluster(t, func(c *retireCluster) {
			down := c.nodes[2]
			down.Isolate(true)
			down.stop()
			_ = c.retires("without it", 2, nil, 2)
			release := c.hold(down)
			c.must(down.Open())
			down.serve() // NB: with what it had when it went down
			down.Isolate(false)
			c.pass(10 * time.Second)
			c.give(down)
			id, err := c.opens(down)
			assert.ErrorIs(t, err, failure.ErrUnavailable, "before it has heard of it: got %s", id)
			release()
			c.wantVersion("afterwards", down, 1)
		})
	})
}
