package cluster

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/home"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
	"troupe/gateway/admin"
	"troupe/persistence/key"
)

// tellers answer one after the other how the cluster is.
type tellers []func() (cluster.Status, error)

func (a *tellers) ClusterStatus(context.Context) ([]byte, error) {
	status, err := (*a)[0]()
	*a = (*a)[1:]
	if err != nil {
		return nil, err
	}
	return json.Marshal(status)
}

func TestWhenANodeCountsAsRemoved(t *testing.T) {
	nodes := func(ids ...peer.NodeID) func() (cluster.Status, error) {
		var status cluster.Status
		for _, id := range ids {
			status.Nodes = append(status.Nodes, cluster.NodeStatus{ID: id})
		}
		return func() (cluster.Status, error) { return status, nil }
	}
	silent := func() (cluster.Status, error) { return cluster.Status{}, admin.ErrNoServer }
	for name, c := range map[string]struct {
		answers tellers
		itself  bool
		want    error
	}{
		"not listed":                {tellers{nodes("A", "B"), nodes("A")}, false, nil},
		"a node without its store":  {tellers{nodes(), nodes("A", "B"), nodes("A")}, false, nil},
		"the node itself ends":      {tellers{nodes("A", "B"), silent}, true, nil},
		"another one does not tell": {tellers{nodes("A", "B"), silent}, false, admin.ErrNoServer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				assert.ErrorIs(t, awaitRemoved(t.Context(), &c.answers, "B", c.itself, io.Discard), c.want)
				assert.Empty(t, c.answers, "it ended")
			})
		})
	}
}

// dead answers that B keeps its shards and that C does not answer.
type dead struct{}

func (dead) ClusterStatus(context.Context) ([]byte, error) {
	return json.Marshal(cluster.Status{Nodes: []cluster.NodeStatus{{ID: "A", Alive: true}, {ID: "B", Alive: true, Held: 3}, {ID: "C"}}})
}

func TestARemovalSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var progress strings.Builder
		err := awaitRemoved(t.Context(), dead{}, "B", false, &progress)
		const still = "node B still has 3 shards, and node C does not answer: start it, or run `troupe cluster remove C --lost`"
		require.ErrorContains(t, err, still+"; the removal goes on")
		assert.Equal(t, 11, strings.Count(progress.String(), still+"\n"))
	})
}

func TestWhatIsLostHasAName(t *testing.T) {
	for sh, want := range map[key.Shard]string{3: "shard 3", key.Meta: "credentials and definitions"} {
		assert.Contains(t, shardName(sh), want)
	}
}

func TestPublishFirstRefusesAHomeWithFaults(t *testing.T) {
	dir := clitest.SmallHome(t)
	clitest.PutFile(t, dir, "workflows/broken.yaml", "id: [\n")
	c := config.New()
	c.Home, c.Store.Shards = dir, 2
	store, err := c.OpenStore(zerolog.Nop())
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	err = publishFirst(store, dir, zerolog.Nop())
	assert.True(t, err != nil && strings.Contains(err.Error(), "workflows/broken.yaml"), "got %v, want the fault", err)
	_, err = home.OpenPublished(home.PublishedOptions{Store: store})
	assert.Error(t, err, "something was published")
}
