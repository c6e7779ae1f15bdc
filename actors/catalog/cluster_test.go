package catalog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
	"troupe/statemachine"
)

// late is a cluster whose second node has not got what the first published last.
type late struct {
	*replicatest.Cluster
	first, second *Catalog
	current       func(context.Context) error // of the second
}

func startLate(t *testing.T) *late {
	l := &late{}
	open := func(store *persistence.Store) *Catalog {
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		must(t, err)
		c, err := Open(Options{Store: store, Parser: parser, Log: zerolog.Nop(), Current: func(ctx context.Context) error { return l.current(ctx) }})
		must(t, err)
		return c
	}
	var err error
	l.Cluster, err = replicatest.Start(t.Context(), replicatest.Options{Nodes: 3, Shards: 1})
	must(t, err)
	l.first, l.second = open(l.Nodes[0].Store), open(l.Nodes[1].Store)
	must(t, l.first.Publish(l.first.sources(t, plain)))
	clocktest.Advance(time.Second)
	must(t, l.second.Reload())
	l.Nodes[1].Isolate(true)
	must(t, l.first.Publish(l.first.sources(t, strings.Replace(plain, "version: 1", "version: 2", 1))))
	return l
}

func (l *late) stop(t *testing.T) {
	must(t, l.Close())
}

// TestAVersionThatIsNotHereYetIsWaitedFor: an instance that is led here may have been made
// elsewhere.
func TestAVersionThatIsNotHereYetIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		begun := time.Now()
		l.current = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		_, err := l.second.Version("plain", 2)
		assert.ErrorIs(t, err, failure.ErrUnavailable, "a node that is cut off")
		assert.Equal(t, currentWaitMax, time.Since(begun), "it took")
		l.current = func(context.Context) error {
			l.Nodes[1].Isolate(false) // NB: it takes some seconds until the streams are made again
			index, err := l.Nodes[0].Store.ReadIndex(t.Context(), key.Meta)
			return errors.Join(err, l.Nodes[1].Store.AwaitApplied(t.Context(), key.Meta, index))
		}
		d, err := l.second.Version("plain", 2)
		assert.True(t, err == nil && d.Version == 2, "got %v, %v", d, err)
		_, err = l.second.Version("plain", 3)
		assert.ErrorIs(t, err, failure.ErrExecution, "a version that is nowhere")
		d, err = l.second.Creatable("plain")
		assert.True(t, err == nil && d.Version == 1, "before it is reloaded: got %v, %v", d, err)
		must(t, l.first.Publish(l.first.sources(t, strings.Replace(plain, "version: 1", "version: 3", 1))))
		clocktest.Advance(time.Second)
		must(t, l.second.Reload())
		d, err = l.second.Creatable("plain")
		assert.True(t, err == nil && d.Version == 3, "after it is reloaded: got %v, %v", d, err)
	})
}

// TestCatchUp: a node goes by what another one knows as soon as it is in its store, also before it has heard that anything
// has changed.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		before := l.second.Known()
		assert.Greater(t, l.first.Known(), before, "what was published singly to one node")
		assert.NoError(t, l.second.CatchUp(before))
		assert.ErrorIs(t, l.second.CatchUp(l.first.Known()), failure.ErrUnavailable, "on a node that is cut off")
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		d, err := l.second.Newest("plain")
		assert.True(t, err == nil && d.Version == 1, "before: got %v, %v", d, err)
		assert.NoError(t, l.second.CatchUp(l.first.Known()))
		assert.GreaterOrEqual(t, l.second.Known(), l.first.Known())
		d, err = l.second.Newest("plain")
		assert.True(t, err == nil && d.Version == 2, "after: got %v, %v", d, err)
	})
}

func TestReloadKeepsWhatIsParsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		before, err := l.second.Version("plain", 1)
		must(t, err)
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		must(t, l.second.Reload())
		after, err := l.second.Version("plain", 1)
		assert.Same(t, before, after, "got another definition, %v", err)
		d, err := l.second.Creatable("plain")
		assert.True(t, err == nil && d.Version == 2, "got %v, %v", d, err)
	})
}

// TestInAClusterANumberIsForgottenAtOnce: each shard frees by itself what Meta does not declare. The
// number is not given again.
func TestInAClusterANumberIsForgottenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		for n, indexes := range []string{"[svcPublic.a, svcPublic.b]", "[svcPublic.b]", "[svcPublic.a, svcPublic.b]"} {
			text := strings.Replace(plain, "id: plain\nversion: 1", fmt.Sprintf("id: stock\nversion: %d\nindexes: %s", n+1, indexes), 1)
			must(t, l.first.Publish(l.first.sources(t, text)))
		}
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		must(t, l.second.Reload())
		want := storedIndexes{Last: 3, Indexes: []storedIndex{{2, "stock", "svcPublic.b", building}, {3, "stock", "svcPublic.a", building}}}
		for _, c := range []*Catalog{l.first, l.second} {
			ix := c.Indexes().Find("stock", "svcPublic.a")
			rows := c.settledIndexes()
			assert.True(t, reflect.DeepEqual(rows, want) && ix != nil && ix.number == 3 && !ix.Whole(), "got %+v and %+v, want %+v", rows, ix, want)
		}
	})
}

// TestOnlyTheLeaderListsDefinitions: any other may not have the newest yet.
func TestOnlyTheLeaderListsDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		_, err := l.second.List()
		_, textErr := l.second.Text("plain", 0)
		assert.True(t, errors.Is(err, failure.ErrNotLeader) && errors.Is(textErr, failure.ErrNotLeader), "another node: got %v and %v, want ErrNotLeader", err, textErr)
		checkListed(t, l.first)
	})
}

// checkListed wants two versions of plain.
func checkListed(t *testing.T, c *Catalog) {
	t.Helper()
	all, err := c.List()
	want := []Listed{{ID: "plain", Name: "plain", Current: 2, Creatable: true, Versions: []uint64{1, 2}}}
	assert.True(t, err == nil && reflect.DeepEqual(all, want), "got %+v, %v, want %+v", all, err, want)
	for number, version := range map[uint64]uint64{0: 2, 1: 1, 2: 2} {
		got, err := c.Text("plain", number)
		assert.True(t, err == nil && got.Version == version && got.Current == (version == 2) && (got.Text == plain) == (version == 1), "%v %v %v", number, got, err)
	}
	for workflow, number := range map[string]uint64{"plain": 3, "other": 0} {
		_, err := c.Text(workflow, number)
		assert.ErrorIs(t, err, failure.ErrNotFound, "%s version %d", workflow, number)
	}
}

// TestARetirementWaitsForCommits: one that has looked before the version is being retired is counted, however long it takes.
func TestARetirementWaitsForCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		c := l.first
		commit := c.BeginCommit(0)
		must(t, c.MayHave("plain", 1))
		ended := make(chan error, 1)
		go func() {
			_, err := c.Retire(t.Context(), "plain", 1, users()["root"])
			ended <- err
		}()
		clocktest.Advance(time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		assert.ErrorIs(t, c.MayHave("plain", 1), failure.ErrUnavailable, "a commit that begins meanwhile")
		w := c.store.NewBatchIn(0, c.store.Epoch(0))
		w.Add(key.Count(nil, 0, "plain", 1), 1)
		c.store.Append(w, make(confirmation, 1))
		c.EndCommit(commit)
		err := <-ended
		assert.ErrorIs(t, err, failure.ErrInUse)
		must(t, c.MayHave("plain", 1))
	})
}

// TestANumberThatAClusterHasRetired: no file can use it again.
func TestANumberThatAClusterHasRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		s := &script{t: t, users: users(), Catalog: l.first}
		for _, step := range [][2]string{
			{"retire root plain 1", "retired [1]"},
			{"check root plain 3", "conflict: workflow plain comes from workflows/0.yaml of the home: change that file"},
			{"publish ann door 1", "current"},
			{"retire ann door 1", "retired [1]"},
			{"bounds 100 2", "before: {workflows:100 versions:500}"},
			{"publish ann door 2", "current"},
			{"publish ann door 3", "conflict: workflow door has had 2 versions, which is the limit: ask a holder of mod-admin"},
		} {
			assert.Equal(t, step[1], s.run(step[0], ""), step[0])
		}
		must(t, l.first.Check(l.first.sources(t, strings.Replace(plain, "version: 1", "version: 3", 1))))
		err := l.first.Check(l.first.sources(t, plain))
		assert.EqualError(t, err, "workflows/0.yaml:2: workflow plain version 1 was retired, and in a cluster its number cannot be reused (raise version to 3)")
	})
}

// TestADefinitionPublishedInACluster: the leader takes it, and every node reads it and its owners from its store.
func TestADefinitionPublishedInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		first, second := &script{t: t, users: users(), Catalog: l.first}, &script{t: t, users: users(), Catalog: l.second}
		assert.Contains(t, second.run("publish root door 1", ""), failure.ErrNotLeader.Error(), "another node")
		creatable := func(when string, c *Catalog) {
			t.Helper()
			d, err := c.Creatable("door")
			must(t, err)
			assert.Equal(t, uint64(1), d.Version, when)
		}
		assert.Equal(t, "current", first.run("publish ann door 1", ""))
		creatable("at the leader", l.first)
		assert.Contains(t, first.run("publish root door 1", "name: Other"), failure.ErrExists.Error(), "other content")
		assert.Contains(t, first.run("publish mallory door 2", ""), "only the owners of workflow door (user ann)")
		must(t, l.first.Publish(l.first.sources(t, strings.Replace(plain, "version: 1", "version: 2", 1))))
		creatable("after a home was published", l.first)
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		must(t, l.second.Reload())
		creatable("at another node", l.second)
		l.second.publishing.Lock()
		defer l.second.publishing.Unlock()
		owners, err := l.second.loadOwners()
		assert.True(t, err == nil && owners["door"].By == "ann", "at another node: got %+v, %v", owners, err)
	})
}
