package workflow_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// indexPaths are those that definitions declare now and then.
var indexPaths = []string{"svcPublic.a", "svcPublic.t", "svcPublic.n"}

// indexCluster is a cluster whose definitions change.
type indexCluster struct {
	*cluster
	version int
	// held has a channel for a node that takes over nothing until that is closed.
	held map[string]chan struct{}
	// delay says how long a node needs to take over what was published.
	delay func() time.Duration
	// careless nodes do not wait until they know the indexes of a shard that they lead.
	careless bool

	paths  map[uint32]string // of the indexes that were ever seen, by number
	faults []string
	// checked counts the shards in which an index was compared with the instances, by state.
	checked map[string]int
}

// onIndexCluster runs a test on a cluster whose first node leads everything, and returns the
// faults that it found.
func onIndexCluster(t *testing.T, set func(*indexCluster), test func(*indexCluster)) (faults []string) {
	synctest.Test(t, func(t *testing.T) {
		c := &indexCluster{
			cluster: &cluster{t: t}, held: map[string]chan struct{}{},
			paths: map[uint32]string{}, checked: map[string]int{}, delay: func() time.Duration { return 0 },
		}
		if set != nil {
			set(c)
		}
		c.served = c.follow
		c.start(c.alone)
		test(c)
		for _, n := range c.nodes {
			if n.router != nil {
				n.stop()
			}
		}
		faults = c.faults
	})
	return faults
}

func (c *indexCluster) fault(format string, args ...any) {
	if len(c.faults) < 10 {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// alone makes instances and a whole index on a node that stands alone.
func (c *indexCluster) alone(store *persistence.Store) error {
	definitions, system := c.catalog(store), actors.NewSystem(zerolog.Nop())
	c.must(definitions.Publish(c.sources("svcPublic.a")))
	router, err := workflow.Start(workflow.Options{Store: store, System: system, Catalog: definitions, Log: zerolog.Nop(), Clock: time.Now})
	c.must(err)
	for _, public := range workflowtest.Publics(1, 12) {
		_, err := router.Create(context.Background(), &message.Create{Caller: boss, WorkflowID: "stock", Public: value(public)})
		c.must(err)
	}
	for !(*definitions.Indexes()).Find("stock", "svcPublic.a").Whole() {
		c.pass(time.Second)
	}
	return errors.Join(router.Stop(context.Background()), system.Stop(context.Background()))
}

// sources is the next version of stock, with indexes.
func (c *indexCluster) sources(indexes ...string) []catalog.Source {
	c.version++
	text := []byte(stock("stock", c.version, indexes...))
	parsed, err := c.parser().Parse(statemachine.Source{File: "workflows/stock.yaml", Text: text})
	c.must(err)
	return []catalog.Source{{File: "workflows/stock.yaml", Text: text, Parsed: parsed.Definition}}
}

// republish raises the version of stock and declares other indexes.
func (c *indexCluster) republish(indexes ...string) { c.publishAnywhere(c.sources(indexes...)) }

// publishAnywhere publishes through whichever node can.
func (c *indexCluster) publishAnywhere(sources []catalog.Source) {
	for range 2000 {
		for _, n := range c.nodes {
			c.mu.Lock()
			definitions, up := n.catalog, n.router != nil
			c.mu.Unlock()
			if !up {
				continue
			}
			err := definitions.Publish(sources)
			if err == nil {
				return
			}
			kind := failure.Of(err).Kind
			if !assert.False(c.t, kind != failure.ErrNotLeader && kind != failure.ErrUnavailable && kind != failure.ErrOutcomeUnknown, "publish: %v", err) {
				return
			}
		}
		c.pass(20 * time.Millisecond)
	}
	c.t.Error("nothing was published for a long time")
}

// follow has a node take over what is published, as package home does.
func (c *indexCluster) follow(n *clusterNode) {
	if c.careless {
		n.router.SkipIndexCheck()
	}
	f := &metaFollower{make(chan struct{}, 1)}
	n.Store.Follow(f)
	f.Replaced()
	stop, definitions := make(chan struct{}), n.catalog
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-f.changed:
			case <-stop:
				return
			}
			c.mu.Lock()
			held := c.held[n.Name]
			c.mu.Unlock()
			if held != nil {
				select {
				case <-held:
				case <-stop:
					return
				}
			}
			select {
			case <-time.After(c.delay()):
			case <-stop:
				return
			}
			if definitions.Reload() != nil {
				f.Replaced()
			}
		}
	})
	n.stopFollowing = func() { close(stop); running.Wait() }
}

// metaFollower implements persistence.Follower.
type metaFollower struct{ changed chan struct{} }

func (f *metaFollower) Changed([][]byte) { f.Replaced() }

func (f *metaFollower) Replaced() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// learn notes the indexes that a node's Meta has.
func (c *indexCluster) learn(at workflowtest.Moment) {
	c.must(at.Scan(key.Setting(nil, "indexes"), func(_, text []byte) error {
		var rows struct{ Indexes []workflowtest.Index }
		if err := json.Unmarshal(text, &rows); err != nil {
			return err
		}
		for _, row := range rows.Indexes {
			if path, known := c.paths[row.Number]; known && path != row.Path {
				c.fault("index %d was on %s and is on %s", row.Number, path, row.Path)
			}
			c.paths[row.Number] = row.Path
		}
		return nil
	}))
}

// storedInstance is an instance as a shard has it.
type storedInstance struct {
	id  key.ID
	doc filter.Document
}

func (c *indexCluster) instances(at workflowtest.Moment, sh key.Shard) (all []storedInstance) {
	c.must(at.Scan(key.RecordPrefix(nil, sh, "stock"), func(k, text []byte) error {
		id, _ := key.RecordID(k)
		record, err := statemachine.ParseRecord(slices.Clone(text))
		all = append(all, storedInstance{id, filter.Document{
			ID: instanceid.Text(id), WorkflowID: "stock", States: record.States, Public: record.Public, Private: record.Private,
		}})
		return err
	}))
	return all
}

// checkShards is the invariant of each replica at each moment: where a shard calls an index whole,
// it has the entries of its instances, no more and no less, and where it calls it kept, it has no
// others.
func (c *indexCluster) checkShards() {
	for _, n := range c.nodes {
		if n.router != nil {
			c.learn(n.Store)
		}
	}
	for _, n := range c.nodes {
		if n.router == nil {
			continue
		}
		sn := n.Store.Snapshot()
		for sh := range key.Shard(clusterShards) {
			c.checkShard(n.Name, sn, sh)
		}
		c.must(sn.Close())
	}
}

func (c *indexCluster) checkShard(node string, at workflowtest.Moment, sh key.Shard) {
	states, got, marked := map[uint32]string{}, map[uint32]map[string]bool{}, map[uint32]bool{}
	c.must(at.Scan(key.ShardPrefix(nil, sh), func(text, stored []byte) error {
		key, ok := key.Parse(text)
		number := uint32(key.Number)
		switch {
		case !ok:
			return fmt.Errorf("key %x", text)
		case key.Table == "indexstate":
			states[number] = string(stored)
		case key.Table == "index" && number == 0:
			marked[binary.BigEndian.Uint32([]byte(key.Value))] = true
		case key.Table == "index":
			if got[number] == nil {
				got[number] = map[string]bool{}
			}
			got[number][string(text)] = true
		}
		return nil
	}))
	instances := c.instances(at, sh)
	for number, state := range states {
		path, known := c.paths[number]
		if !known {
			continue
		}
		want, field := map[string]bool{}, workflowtest.FieldOf(c.t, path)
		for _, s := range instances {
			values := field.Keys(s.doc)
			if len(values) > 1 && !marked[number] && state == "whole" {
				c.fault("%s, shard %d: index %d has no mark, but %x has several values", node, sh, number, s.id)
			}
			for _, value := range values {
				want[string(key.Index(nil, sh, number, value, s.id))] = true
			}
		}
		missing, extra := without(want, got[number]), without(got[number], want)
		if extra > 0 || missing > 0 && state == "whole" {
			c.fault("%s, shard %d: index %d on %s, which is %s, lacks %d entries and has %d too many; %s",
				node, sh, number, path, state, missing, extra, c.replicasOf(sh))
		}
		c.checked[state]++
	}
}

// replicasOf says how far the replicas of a shard are, and how many indexes they have rows of.
func (c *indexCluster) replicasOf(sh key.Shard) (text string) {
	for _, n := range c.nodes {
		if n.router == nil {
			continue
		}
		rows := 0
		c.must(n.Store.Scan(key.IndexStatePrefix(nil, sh), func([]byte, []byte) error { rows++; return nil }))
		text += fmt.Sprintf("%s: %+v, epoch %d, %d rows; ", n.Name, n.Store.Replica(sh).Stats(), n.Store.Epoch(sh), rows)
	}
	return text
}

func without(a, b map[string]bool) (n int) {
	for key := range a {
		if !b[key] {
			n++
		}
	}
	return n
}

var indexFilters = []string{
	`{"svcPublic.a":1}`, `{"svcPublic.a":{"$gte":0,"$lt":3}}`, `{"svcPublic.a":{"$in":["x","y",2]}}`, `{"svcPublic.t":"t03"}`,
	`{"$or":[{"svcPublic.a":1},{"svcPublic.t":"t01"}]}`, `{"svcPublic.n":{"$gt":4,"$lt":2}}`, `{}`,
}

// checkQueries compares what a node answers with what its store has, while nobody writes. It
// returns the plans.
func (c *indexCluster) checkQueries(n *clusterNode) (plans []string) {
	for _, text := range indexFilters {
		req := query.Request{Caller: boss, WorkflowID: "stock", Filter: text, Explain: true}
		got, end, err := c.eventually(n, req)
		if err != nil {
			c.fault("%s: %s: %v", n.Name, text, err)
			continue
		}
		f, err := filter.Parse([]byte(text), filter.Options{})
		c.must(err)
		want := []string{}
		for sh := range key.Shard(clusterShards) {
			c.must(n.catchUp(c.t.Context(), sh)) // NB: the query asked the leader, and did not wait for this node's replica
			for _, s := range c.instances(n.Store, sh) {
				if f.Match(s.doc) {
					want = append(want, s.doc.ID)
				}
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			c.fault("%s: %s by %s: got %d instances, want %d", n.Name, text, end.Explain.Plan, len(got), len(want))
		}
		plans = append(plans, end.Explain.Plan)
	}
	return plans
}

// checkAll is checkShards, and checkQueries of all nodes.
func (c *indexCluster) checkAll() {
	c.checkShards()
	for _, n := range c.nodes {
		c.checkQueries(n)
	}
}

// checkReplicas compares the rows of all nodes, while nobody writes.
func (c *indexCluster) checkReplicas() {
	rows := func(n *clusterNode, sh key.Shard) map[string]string {
		all := map[string]string{}
		c.must(n.Store.Scan(key.ShardPrefix(nil, sh), func(text, stored []byte) error {
			if key, _ := key.Parse(text); key.Table != "replica" {
				all[string(text)] = string(stored)
			}
			return nil
		}))
		return all
	}
	for sh := range c.nodes[0].Store.AllShards() {
		want := rows(c.nodes[0], sh)
		for _, n := range c.nodes[1:] {
			if got := rows(n, sh); !maps.Equal(got, want) {
				c.fault("shard %d: %s has %d rows that are not those of %s, %d", sh, n.Name, len(got), c.nodes[0].Name, len(want))
			}
		}
	}
}

// eventually asks a node until it can answer.
func (c *indexCluster) eventually(n *clusterNode, req query.Request) (ids []string, end *query.End, err error) {
	for range 20 {
		if ids, end, err = workflowtest.IDs(c.t, n.router.Queries.Query, req); !errors.Is(err, failure.ErrUnavailable) {
			break
		}
		c.pass(time.Second)
	}
	return ids, end, err
}

// areFinished reports whether all shards of a node have the indexes that Meta has, whole, and no
// others.
func (c *indexCluster) areFinished(n *clusterNode) bool {
	paths := map[uint32]string{}
	was := c.paths
	c.paths = paths
	c.learn(n.Store)
	c.paths = was
	for sh := range key.Shard(clusterShards) {
		states, numbers := map[uint32]string{}, map[uint32]bool{}
		c.must(n.Store.Scan(key.ShardPrefix(nil, sh), func(text, stored []byte) error {
			key, _ := key.Parse(text)
			switch {
			case key.Table == "indexstate":
				states[uint32(key.Number)] = string(stored)
			case key.Table == "index" && key.Number == 0:
				numbers[binary.BigEndian.Uint32([]byte(key.Value))] = true
			case key.Table == "index":
				numbers[uint32(key.Number)] = true
			}
			return nil
		}))
		for number := range paths {
			if states[number] != "whole" {
				return false
			}
			numbers[number] = true
		}
		if len(numbers) != len(paths) || len(states) != len(paths) {
			return false
		}
	}
	return true
}

// awaitFinished returns when every node has what was published, and all indexes are whole.
func (c *indexCluster) awaitFinished() {
	for range 30 {
		c.pass(10 * time.Second) // NB: longer than a node needs to take over what its store has
		if !slices.ContainsFunc(c.nodes, func(n *clusterNode) bool { return n.router != nil && !c.areFinished(n) }) {
			return
		}
	}
	c.fault("the indexes are not finished after five minutes")
}

// setEverywhere sends each instance an event that changes what is indexed, through whichever node takes it.
func (c *indexCluster) setEverywhere(r *rand.Rand, data string) {
	for sh := range key.Shard(clusterShards) {
		for _, s := range c.instances(c.nodes[0].Store, sh) {
			c.must(c.ask(r, func(router *workflow.Router) error {
				_, err := router.Send(context.Background(), event(boss, "stock", s.doc.ID, "set", data, ""))
				return err
			}))
		}
	}
}

// load has clients create and change instances until stop is closed.
func (c *indexCluster) load(seed uint64, round int, stop <-chan struct{}) *sync.WaitGroup {
	running := &sync.WaitGroup{}
	var ids []string
	for sh := range key.Shard(clusterShards) {
		for _, s := range c.instances(c.nodes[0].Store, sh) {
			ids = append(ids, s.doc.ID)
		}
	}
	for g := range 4 {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(100*round+g)))
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(5+r.IntN(60)) * time.Millisecond):
				}
				key := fmt.Sprintf("%d-%d-%d", round, g, i)
				if r.IntN(12) == 0 {
					c.createWith(r, key, "stock", workflowtest.RandomPublic(r, r.IntN(10)))
					continue
				}
				id, data := ids[r.IntN(len(ids))], workflowtest.RandomSet(r)
				err := c.ask(r, func(router *workflow.Router) error {
					_, err := router.Send(context.Background(), event(boss, "stock", id, "set", data, key))
					return err
				})
				assert.NoError(c.t, err, "set %s", data)
			}
		})
	}
	return running
}

// TestIndexesOfAClusterAgreeWithScans: whatever happens to nodes and links while definitions
// declare and drop indexes, at each moment each replica has the entries that it says it has, and
// each node finds by its indexes what it finds without. Nodes learn late what was published.
func TestIndexesOfAClusterAgreeWithScans(t *testing.T) {
	for seed := range *seeds {
		for _, fault := range runIndexes(t, seed, false) {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
}

// TestIndexesControl plants the mistake that a new leader does not wait until it knows the
// indexes of its shard: the run must see it at the first change of leaders, which it forces.
func TestIndexesControl(t *testing.T) {
	if testing.Short() {
		t.Skip("it plants a mistake")
	}
	assert.NotEmpty(t, runIndexes(t, 0, true), "leaders that write before they know the indexes were not found")
}

func runIndexes(t *testing.T, seed uint64, careless bool) []string {
	rounds := rounds(1, 2, 5)
	r := rand.New(rand.NewPCG(seed, 7))
	delays := rand.New(rand.NewPCG(seed, 8))
	var mu sync.Mutex
	set := func(c *indexCluster) {
		c.careless = careless
		c.delay = func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(delays.IntN(3)*delays.IntN(2500)) * time.Millisecond
		}
	}
	return onIndexCluster(t, set, func(c *indexCluster) {
		stop := make(chan struct{})
		running := c.load(seed, rounds, stop)
		c.lateLeader(func(late *clusterNode) {
			if err := c.setAll(late, `{"a":7,"t":"t03"}`); err != nil && !errors.Is(err, failure.ErrUnavailable) {
				c.fault("an event: %v", err)
			}
		})
		close(stop)
		running.Wait()
		c.checkShards()
		if careless { // what follows needs indexes that are right
			return
		}
		for round := range rounds {
			stop := make(chan struct{})
			running := c.load(seed, round, stop)
			for range 2 {
				var indexes []string
				for _, path := range indexPaths {
					if r.IntN(3) > 0 {
						indexes = append(indexes, path)
					}
				}
				sources := c.sources(indexes...)
				running.Go(func() { c.publishAnywhere(sources) })
				c.pass(time.Duration(r.IntN(2000)) * time.Millisecond)
				c.checkShards()
				c.cluster.fault(r)
				c.checkShards()
			}
			c.pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			c.checkShards()
			close(stop)
			running.Wait()
			for _, n := range c.nodes {
				c.checkQueries(n)
			}
		}
		c.republish(indexPaths[:2]...)
		c.awaitFinished()
		c.checkShards()
		for _, n := range c.nodes {
			c.checkQueries(n)
		}
		// Where nothing is found, an index and a union of two cost less than a scan, whatever the random data were.
		c.setEverywhere(r, `{"a":7,"t":"t07"}`)
		for _, n := range c.nodes {
			if plans := c.checkQueries(n); len(plans) != len(indexFilters) || plans[0] != "index" || plans[3] != "index" || plans[4] != "union" {
				c.fault("%s: once all is quiet the plans are %q", n.Name, plans)
			}
		}
		c.checkReplicas()
		if c.checked["whole"] < 20 {
			c.fault("only %d shards with a whole index were looked at", c.checked["whole"])
		}
		t.Logf("seed %d: %d indexes, shards looked at: %v", seed, len(c.paths), c.checked)
	})
}
