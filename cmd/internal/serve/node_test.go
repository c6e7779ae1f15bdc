package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster"
	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/persistence"
)

func nodeOn(t *testing.T, home string) *service {
	t.Helper()
	s := newService(home)
	s.config.Store.Shards = 0 // as init made it
	require.NoError(t, s.config.Load())
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err, s.stop())
	}
	t.Cleanup(func() {
		assert.NoError(t, s.stop())
	})
	return s
}

// says runs a command that must be done, and print a text.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := clitest.Invoke(args...)
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, want), "%q: got %d %q %q, want %q", args, code, stdout, stderr, want)
}

// silence is what commands say of another node that did not answer in time.
var silence = regexp.MustCompile(context.DeadlineExceeded.Error() + "|no node leads the cluster's own shard|the outcome is unknown|connection ended")

// saysAtLast is says for a command that does no harm when it is repeated: a machine may stand still for longer than a node
// waits for another.
func saysAtLast(t *testing.T, want string, args ...string) {
	t.Helper()
	await(t, func() bool {
		code, stdout, stderr := clitest.Invoke(args...)
		if code == cli.ExitFailed && silence.MatchString(stderr) {
			return false
		}
		assert.True(t, code == cli.ExitDone && strings.Contains(stdout, want), "%q: got %d %q %q, want %q", args, code, stdout, stderr, want)
		return true
	})
}

// refuses runs a command that must fail with one line.
func refuses(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := clitest.Invoke(args...)
	assert.True(t, code == cli.ExitFailed && stdout == "" && strings.Contains(stderr, want) && strings.Count(stderr, "\n") == 1,
		"%q: got %d %q %q, want one line with %q", args, code, stdout, stderr, want)
}

// clusterOf is the status as a home's command shows it. It fails while shards have too few replicas.
func clusterOf(t *testing.T, home string) (status cluster.Status) {
	t.Helper()
	code, stdout, stderr := clitest.Invoke("cluster", "status", "--home", home, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(stdout), &status), "status: %d %s %s", code, stdout, stderr)
	short := len(status.Short) > 0
	require.True(t, short == (code == cli.ExitFailed) && short == strings.Contains(stderr, "under-replicated shard"), "status: %d %s %s", code, stdout, stderr)
	return status
}

func await(t *testing.T, met func() bool) {
	t.Helper()
	for !met() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the test's time is over")
		}
	}
}

func askNode(t *testing.T, n *service, token, path string, read func(*http.Response)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // a stream has no end
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.gateway.Addr().String()+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "svc.token "+token)
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	require.NoError(t, err)
	read(answer)
	_ = answer.Body.Close()
}

// TestThreeNodes builds a cluster of three by the commands, works through each node, ends one, and
// removes one.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	homes := []string{clitest.ExampleHome(t), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")}
	clitest.Edit(t, homes[0], "identity.yaml", "privileges: [mod-form-portal, mod-checklist]", "privileges: [mod-form-portal, mod-checklist, mod-admin]")
	says(t, "is the first of a new cluster", "cluster", "init", "--home", homes[0], "--cluster-listen", clitest.NodeAddress(), "--shards", "2")
	nodes := []*service{nodeOn(t, homes[0])}
	await(t, func() bool { return len(clusterOf(t, homes[0]).Short) == 0 })
	code, token, stderr := clitest.Invoke("token", "create", "--home", homes[0], "--user", "john.doe")
	require.Zero(t, code, "token, %s", stderr)
	token = strings.TrimSpace(token)
	for _, home := range homes[1:] {
		code, key, stderr := clitest.Invoke("cluster", "invite", "--home", homes[0])
		require.Zero(t, code, "invite, %s", stderr)
		says(t, "belongs to the cluster", "cluster", "join", strings.TrimSpace(key), "--home", home, "--cluster-listen", clitest.NodeAddress())
		refuses(t, "remove the setting shards", "serve", "--home", home, "--listen", "127.0.0.1:0", "--shards", "3", "--log-level", "error")
		joined := nodeOn(t, home)
		nodes = append(nodes, joined)
		await(t, joined.node.Fresh) // then it knows the token; it has not all shards yet
		code, stdout, stderr := clitest.Invoke("check", "--home", home)
		assert.True(t, code == cli.ExitDone && stdout == "", "check of a node without text files: %d %s %s", code, stdout, stderr)
		refuses(t, "no text files to publish in "+home, "publish", "--home", home)
		for _, path := range []string{"instances/leave-request?limit=1&count=true", "watch/leave-request"} {
			askNode(t, joined, token, "/workflow/api/v1/"+path, func(answer *http.Response) {
				assert.Equal(t, http.StatusOK, answer.StatusCode, "%s at a node that has just joined", path)
			})
		}
	}
	await(t, func() bool {
		status := clusterOf(t, homes[2])
		return len(status.Short) == 0 && !slices.ContainsFunc(status.Nodes, func(n cluster.NodeStatus) bool { return !n.Voter || n.Led != 1 })
	})

	services := make([]*client.Client, len(nodes))
	for i, n := range nodes {
		askNode(t, n, "", "/readyz?verbose", func(answer *http.Response) {
			var ready struct{ Cluster cluster.Status }
			err := json.NewDecoder(answer.Body).Decode(&ready)
			assert.True(t, err == nil && ready.Cluster.Self == n.node.Self() && len(ready.Cluster.Nodes) == len(nodes), "%v %v %v", i, ready, err)
		})
		made, err := client.New(client.Options{Address: "http://" + n.gateway.Addr().String(), Token: token, RetryMax: 50, CallMax: 5 * time.Minute})
		require.NoError(t, err)
		defer made.Close()
		services[i] = made
	}
	nodesOfLoad := func(n *service) (of [2]int) {
		askNode(t, n, token, "/admin/api/v1/load", func(answer *http.Response) {
			var load api.Load
			require.NoError(t, json.NewDecoder(answer.Body).Decode(&load))
			of = [2]int{load.Nodes, load.Missing}
		})
		return of
	}
	await(t, func() bool { return nodesOfLoad(nodes[1]) == [2]int{3, 0} }) // each has heard of all others then
	var ids []string
	for i, service := range services {
		made, err := service.Create(t.Context(), client.CreateRequest{WorkflowID: "leave-request"})
		require.NoError(t, err, "create at node %d", i)
		ids = append(ids, made.ID)
	}
	for i, service := range services {
		for _, id := range ids {
			_, err := service.Instance(t.Context(), client.InstanceRequest{WorkflowID: "leave-request", InstanceID: id})
			assert.NoError(t, err, "node %d: %s", i, id)
		}
	}

	assert.Error(t, gateway.CheckBasePath(pathAdminOfPeer), "%s can be a base path", pathAdminOfPeer)
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte(token), 0o600))
	for i, n := range nodes { // one of them leads what is published
		saysAtLast(t, "in use now", "publish", "--address", "http://"+n.gateway.Addr().String(), "--token-file", tokenFile, homes[0])
		saysAtLast(t, "in use now", "publish", "--home", homes[i], homes[0])
	}
	clitest.Edit(t, homes[0], "workflows/leave-request.yaml", "version: 1", "version: 2")
	saysAtLast(t, "in use now", "publish", "--home", homes[1], homes[0])
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	require.NoError(t, os.WriteFile(plan, []byte("from: 1\nto: 2\nassign: {svcPublic.node: all}\n"), 0o600))
	// NB: each node has created one of them, where it leads.
	says(t, "WOULD BE MIGRATED  3", "instance", "migrate", "leave-request", "--plan", plan, "--home", homes[1], "--dry-run", "--limit", "2")
	says(t, `{"matched":3,"migrated":3,"refused":[],"next":null}`, "instance", "migrate", "leave-request", "--plan", plan, "--home", homes[1], "--limit", "2", "-o", "json")
	says(t, "MIGRATED  0", "instance", "migrate", "leave-request", "--plan", plan, "--home", homes[2])

	last := clusterOf(t, homes[2]).Self
	assert.NoError(t, nodes[2].stop())
	assert.Equal(t, [2]int{2, 1}, nodesOfLoad(nodes[0]), "the last hour without a node")
	for i, id := range ids {
		_, err := services[i%2].Send(t.Context(), client.SendRequest{WorkflowID: "leave-request", InstanceID: id, Event: "submit", Data: []byte(`{"days": 5}`)})
		assert.NoError(t, err, "an event while a node is stopped")
	}
	refuses(t, "is a node of a cluster: start it", "token", "create", "--home", homes[2], "--user", "john.doe")
	refuses(t, "does not answer: start it, or give --lost", "cluster", "remove", "--home", homes[0], string(last))
	says(t, "was removed", "cluster", "remove", "--home", homes[0], string(last), "--lost")
	await(t, func() bool { return len(clusterOf(t, homes[1]).Nodes) == 2 })

	recovers := []string{"cluster", "recover", "--home", homes[1], "--i-accept-loss"}
	for _, node := range []*service{nodes[1], nodes[0]} {
		assert.NoError(t, node.stop())
		if node == nodes[1] {
			refuses(t, "1 of the cluster's 2 nodes answer", recovers...)
		}
	}
	says(t, "is the only node of a new cluster", recovers...)
}

// TestAnInitThatWasCutOff: the node has its identity, and its store stands alone. Nothing but another init goes on.
func TestAnInitThatWasCutOff(t *testing.T) {
	t.Parallel()
	home, address := clitest.ExampleHome(t), clitest.NodeAddress()
	alone := nodeOn(t, home)
	require.NoError(t, alone.stop())
	cut, err := cluster.NewAgain(address)
	require.NoError(t, err)
	require.NoError(t, cut.Save(homedir.NodeFolder(home)))
	refuses(t, "the store is standalone: `troupe cluster init` was interrupted; run it again on --home "+home,
		"serve", "--home", home, "--listen", "127.0.0.1:0", "--cluster.listen", address, "--log-level", "error")
	refuses(t, "start it with `troupe serve", "cluster", "recover", "--home", home, "--cluster-listen", address, "--i-accept-loss")
	refuses(t, "is a node of a cluster: start it", "token", "create", "--home", home, "--user", "john.doe")
	says(t, "node "+string(cut.Node())+" is the first of a new cluster", "cluster", "init", "--home", home, "--cluster-listen", address)
	nodeOn(t, home)
	await(t, func() bool { return len(clusterOf(t, home).Short) == 0 })
}

// TestANodeAloneWithNothing: an init without a definition that was cut off may have left no row. There is nobody to wait for.
func TestANodeAloneWithNothing(t *testing.T) {
	t.Parallel()
	home, address := bareHome(t), clitest.NodeAddress()
	cut, err := cluster.NewAgain(address)
	require.NoError(t, err)
	require.NoError(t, cut.Save(homedir.NodeFolder(home)))
	refuses(t, "`troupe cluster init` was interrupted; run it again on --home "+home,
		"serve", "--home", home, "--listen", "127.0.0.1:0", "--cluster.listen", address, "--log-level", "error")
	says(t, "node "+string(cut.Node())+" is the first of a new cluster", "cluster", "init", "--home", home, "--cluster-listen", address)
	nodeOn(t, home)
}

// TestARecoverThatWasCutOff: the store is that of the new node, and the folder that of the old one. Another
// recover goes on.
func TestARecoverThatWasCutOff(t *testing.T) {
	t.Parallel()
	home, address := bareHome(t), clitest.NodeAddress()
	says(t, "is the first", "cluster", "init", "--home", home, "--cluster-listen", address, "--shards", "1")
	first := nodeOn(t, home)
	require.NoError(t, first.stop())
	cut, err := cluster.NewAgain(address)
	require.NoError(t, err)
	lost := fmt.Sprintf(`{%q: %q, %q: %q}`, first.node.Self(), address, "01K3Q4V7Z9W2M8N5P6R0S1T2A3", clitest.NodeAddress())
	require.NoError(t, os.WriteFile(filepath.Join(homedir.NodeFolder(home), "nodes.json"), []byte(lost), 0o600))
	_, err = persistence.Recover(homedir.Data(home), first.config.StoreOptions(first.log), string(cut.Node()))
	require.NoError(t, err)
	says(t, "is the only node of a new cluster", "cluster", "recover", "--home", home, "--i-accept-loss")
	nodeOn(t, home)
	await(t, func() bool {
		status := clusterOf(t, home)
		return len(status.Short) == 0 && len(status.Nodes) == 1 && status.Self != cut.Node()
	})
}

// TestADamagedReplicaHasAdvice, as the other stores of testdata/transcripts/node.txt have.
func TestADamagedReplicaHasAdvice(t *testing.T) {
	c := config.New()
	c.Home = bareHome(t)
	node, err := cluster.NewAgain(clitest.NodeAddress())
	require.NoError(t, err)
	require.NoError(t, node.Save(homedir.NodeFolder(c.Home)))
	err = c.WithAdvice(fmt.Errorf("open store: %w", persistence.ErrReplicaDamaged))
	assert.ErrorIs(t, err, persistence.ErrReplicaDamaged)
	assert.ErrorContains(t, err, "`troupe cluster remove "+string(node.Node())+" --lost` on another node, then empty "+c.Home)
}

// TestWhatBindsANodeIsWrittenAsAWhole: what a crash has left beside the file is of no use, and its mode neither.
func TestWhatBindsANodeIsWrittenAsAWhole(t *testing.T) {
	c := config.New()
	c.Home = t.TempDir()
	bound := filepath.Join(homedir.NodeFolder(c.Home), config.BoundFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(bound), 0o700))
	for path, text := range map[string]string{filepath.Join(c.Home, homedir.StoreIDFile): "its store\n", bound + ".tmp": "half"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, c.BindStore())
	info, err := os.Stat(bound)
	require.NoError(t, err)
	if text, err := os.ReadFile(bound); err != nil || string(text) != "its store\n" || info.Mode() != 0o600 {
		t.Errorf("got %q of mode %v, %v, want that of .store, of mode 0600", text, info.Mode(), err)
	}
}

// TestANodeIsToldThatItWasRemoved: at a real port its connections are closed at that moment.
func TestANodeIsToldThatItWasRemoved(t *testing.T) {
	t.Parallel()
	homes := []string{bareHome(t), filepath.Join(t.TempDir(), "b")}
	says(t, "is the first of a new cluster", "cluster", "init", "--home", homes[0], "--cluster-listen", clitest.NodeAddress(), "--shards", "1")
	nodeOn(t, homes[0])
	code, key, stderr := clitest.Invoke("cluster", "invite", "--home", homes[0])
	require.Zero(t, code, "invite, %s", stderr)
	says(t, "belongs to the cluster", "cluster", "join", strings.TrimSpace(key), "--home", homes[1], "--cluster-listen", clitest.NodeAddress())
	joined := nodeOn(t, homes[1])
	await(t, func() bool {
		status := clusterOf(t, homes[0])
		return len(status.Short) == 0 && !slices.ContainsFunc(status.Nodes, func(n cluster.NodeStatus) bool { return !n.Voter })
	})
	says(t, "was removed", "cluster", "remove", "--home", homes[0], strings.ToLower(string(joined.node.Self())))
	assert.Len(t, clusterOf(t, homes[0]).Nodes, 1, "said to be removed, and the cluster")
	select {
	case err := <-joined.node.Failed():
		assert.Contains(t, err.Error(), "its folder is no longer needed", "it ends")
	case <-t.Context().Done():
		t.Fatal("the test's time is over")
	}
}

// TestAllUsesAreTold: also those that one call does not take.
func TestAllUsesAreTold(t *testing.T) {
	told := make(chan int)
	tell := usesTeller{ask: func(uses []identity.Use) error {
		told <- len(uses)
		return nil
	}}
	tell.tell(make([]identity.Use, 2*usesMax+1))
	for i, want := range []int{usesMax, usesMax, 1} {
		got := <-told
		assert.Equal(t, want, got, "call %d", i)
	}
}

func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			names = append(names, path)
		}
		return nil
	})
	return names
}
