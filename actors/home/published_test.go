package home

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
	"troupe/statemachine/document"
)

// publishing is a cluster of three nodes, each with what it needs to publish and to follow.
type publishing struct {
	t *testing.T
	*replicatest.Cluster
	nodes []*publisher
}

type publisher struct {
	*replicatest.Node
	*Published
	took   int    // times that Took was called
	before uint64 // the version that was in use when users and rights were taken over last
}

func startPublishing(t *testing.T, first map[string]string) *publishing {
	c := &publishing{t: t}
	var err error
	c.Cluster, err = replicatest.Start(t.Context(), replicatest.Options{Nodes: 3, Shards: 1, Before: func(store *persistence.Store) error {
		return PublishFirst(c.options(store), load(t, os.DirFS(folder(t, first))), "first")
	}})
	c.must(err)
	for _, n := range c.Nodes {
		p := &publisher{Node: n}
		c.nodes = append(c.nodes, p)
		c.open(p)
	}
	return c
}

func (c *publishing) must(err error) {
	c.t.Helper()
	require.NoError(c.t, err)
}

func (c *publishing) options(store *persistence.Store) PublishedOptions {
	definitions, err := catalog.Open(catalog.Options{Store: store, Parser: parser(c.t), Log: zerolog.Nop()})
	c.must(err)
	templates, err := formportal.OpenTemplates(store, zerolog.Nop())
	c.must(err)
	return PublishedOptions{Store: store, Catalog: definitions, Templates: templates}
}

func (c *publishing) open(n *publisher) {
	o := c.options(n.Store)
	o.TookAccess = func(Access) {
		if d, err := n.o.Catalog.Creatable("simple"); err == nil {
			n.before = d.Version
		}
	}
	o.Took = func(error) { n.took++ }
	var err error
	n.Published, err = OpenPublished(o)
	c.must(err)
	n.Start()
}

func (c *publishing) stop() {
	for _, n := range c.nodes {
		c.must(errors.Join(n.Stop(c.t.Context()), n.Store.Close()))
	}
}

// set is a home with these files in place of those of base.
func (c *publishing) set(base map[string]string, files ...string) *Set {
	c.t.Helper()
	all := map[string]string{}
	for name, text := range base {
		all[name] = text
	}
	for i := 0; i < len(files); i += 2 {
		if all[files[i]] = files[i+1]; files[i+1] == "" {
			delete(all, files[i])
		}
	}
	return load(c.t, os.DirFS(folder(c.t, all)))
}

func (c *publishing) wants(version uint64, template, user string) {
	c.t.Helper()
	clocktest.Advance(time.Second)
	for _, n := range c.nodes {
		d, err := n.o.Catalog.Creatable("simple")
		assert.True(c.t, err == nil && d.Version == version, "%s has the definition %v, %v, want version %d", n.Name, d, err, version)
		got := n.o.Templates.Get(form.KindForm, "trip")
		assert.True(c.t, got != nil && got.Name.For() == template, "%s has the template %v, want %s", n.Name, got, template)
		assert.True(c.t, n.Access().Directory.Principal("ann") != nil && (n.Access().Directory.Principal("bob") != nil) == (user == "bob"), "%v %v", n.Name, user)
	}
}

const (
	people2 = people + "  - {id: bob, roles: [clerk]}\n"
	simple2 = "version: 2\n" + simple
)

var moreTrip = strings.Replace(trip, "name: Trip", "name: Journey", 1)

func TestWhatIsPublishedIsInUseOnEveryNodeWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startPublishing(t, wholeHome)
		defer c.stop()
		c.wants(1, "Trip", "ann")
		next := c.set(wholeHome, "identity.yaml", people2, "workflows/simple.yaml", simple2, "forms/trip.yaml", moreTrip)
		for _, other := range c.nodes[1:] {
			err := other.Publish(next, "other")
			assert.True(t, errors.Is(err, failure.ErrNotLeader) && failure.Of(err).Shard == uint16(key.Meta), "%v %v", other.Name, err)
		}
		c.wants(1, "Trip", "ann")
		c.must(c.nodes[0].Publish(next, "node0"))
		assert.NotNil(t, c.nodes[0].Access().Directory.Principal("bob"), "the node that published does not know the user yet")
		c.wants(2, "Journey", "bob")
		for _, n := range c.nodes {
			assert.False(t, n != c.nodes[0] && n.before != 1, "%s has taken over the definitions before the users", n.Name)
			got, err := n.Publication()
			assert.True(t, err == nil && got.Digest == next.TextDigest() && got.By == "node0", "%s: got %+v, %v", n.Name, got, err)
		}
		took := c.nodes[1].took
		w := c.nodes[0].Store.NewBatch(key.Meta)
		w.Set(key.Setting(nil, "other"), nil)
		c.must(c.nodes[0].Store.Commit(w))
		clocktest.Advance(time.Second)
		assert.Equal(t, took, c.nodes[1].took, "a row of something else was taken for a change")
	})
}

func TestAVersionKeepsItsContentInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startPublishing(t, wholeHome)
		defer c.stop()
		var faults document.Faults
		err := c.nodes[0].Publish(c.set(wholeHome, "identity.yaml", people2, "workflows/simple.yaml", simple+"# other\n"), "")
		assert.True(t, errors.As(err, &faults) && len(faults) == 1 && faults[0].Suggestion == "raise version to 2", err)
		c.wants(1, "Trip", "ann")
		c.must(c.nodes[0].Publish(c.set(wholeHome, "workflows/simple.yaml", "", "workflows/renamed.yaml", simple, "forms/trip.yaml", moreTrip), ""))
		c.wants(1, "Journey", "ann")
	})
}

// TestALeaderThatIsCutOffPublishesNothing: what nobody confirmed is in use nowhere.
func TestALeaderThatIsCutOffPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startPublishing(t, wholeHome)
		defer c.stop()
		first := c.nodes[0]
		first.Isolate(true)
		err := first.Publish(c.set(wholeHome, "workflows/simple.yaml", simple2), "")
		kind := failure.Of(err).Kind
		assert.True(t, err != nil && (kind == failure.ErrNotLeader || kind == failure.ErrOutcomeUnknown), "got %v, want ErrNotLeader or ErrOutcomeUnknown", err)
		c.wants(1, "Trip", "ann")
		clocktest.Advance(10 * time.Second)
		var leader *publisher
		for _, n := range c.nodes[1:] {
			if n.Store.Epoch(key.Meta) != 0 {
				leader = n
			}
		}
		c.must(leader.Publish(c.set(wholeHome, "forms/trip.yaml", moreTrip), ""))
		first.Isolate(false)
		clocktest.Advance(10 * time.Second)
		c.wants(1, "Journey", "ann")
	})
}

func TestARestartedNodeHasWhatIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startPublishing(t, wholeHome)
		defer c.stop()
		last := c.nodes[2]
		c.must(errors.Join(last.Stop(t.Context()), last.Store.Close()))
		c.must(c.nodes[0].Publish(c.set(wholeHome, "identity.yaml", people2, "workflows/simple.yaml", simple2), ""))
		c.must(last.Open())
		c.open(last)
		clocktest.Advance(10 * time.Second)
		c.wants(2, "Trip", "bob")
	})
}

func TestAStoreWithoutAPublishedHome(t *testing.T) {
	store, err := persistence.Open(t.TempDir(), persistence.Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	_, err = OpenPublished(PublishedOptions{Store: store})
	assert.ErrorIs(t, err, ErrUnpublished)
}
