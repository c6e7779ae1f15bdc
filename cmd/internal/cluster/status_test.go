package cluster

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence/key"
)

// toldCluster is a node that tells a status.
type toldCluster struct {
	admin.Cluster

	status cluster.Status
}

func (c *toldCluster) Status() any { return c.status }

// TestTooFewReplicasFail: while a shard has too few replicas, the command shows the cluster all the same, names the shard on standard
// error and fails, so that a script need not read what it shows.
func TestTooFewReplicasFail(t *testing.T) {
	home := t.TempDir()
	node := &toldCluster{status: cluster.Status{Self: "A", Nodes: []cluster.NodeStatus{{ID: "A", Alive: true, Voter: true, Led: 2}}}}
	s, err := admin.Start(admin.Options{Path: filepath.Join(home, homedir.AdminSocket), Cluster: node, Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, s.Stop(t.Context()))
	}()
	for _, of := range []struct {
		short  []key.Shard
		code   int
		stderr string
	}{
		{[]key.Shard{}, cli.ExitDone, ""},
		{[]key.Shard{3, key.Meta}, cli.ExitFailed, "troupe: 2 under-replicated shards: 3, the cluster's own\n"},
	} {
		node.status.Short = of.short
		code, stdout, stderr := clitest.Invoke("cluster", "status", "--home", home)
		assert.True(t, code == of.code && stderr == of.stderr && strings.Contains(stdout, "this node"), "short of %v: got %d %q %q", of.short, code, stdout, stderr)
		var status cluster.Status
		code, stdout, stderr = clitest.Invoke("cluster", "status", "--home", home, "-o", "json")
		err := json.Unmarshal([]byte(stdout), &status)
		assert.True(t, code == of.code && stderr == of.stderr && err == nil && slices.Equal(status.Short, of.short), "%v %v %v %v", of.short, code, stdout, stderr)
	}
}

// TestHowAClusterIsShown: people are told what is unusual, and programs have the same fields always.
func TestHowAClusterIsShown(t *testing.T) {
	status := cluster.Status{Self: "A", Short: []key.Shard{}, Nodes: []cluster.NodeStatus{
		{ID: "A", Address: "a:1", Alive: true, Voter: true, Version: "v1", Led: 2, Held: 3, Full: true, Leaving: true, SettingsDiffer: true, DifferingSettings: []string{"mail.host", "quota.historyEntries"}},
	}}
	if rows := clusterTable(status); rows[1][9] != "this node, leaving, disk is full, different settings: mail.host quota.historyEntries" || rows[1][0] != "a:1" {
		t.Errorf("got %q", rows[1])
	}
	const want = `{"self":"A","nodes":[{"id":"A","address":"a:1","alive":true,"voter":true,"version":"v1","led":2,"held":3,"lag":0,"settingsDiffer":true,"differingSettings":["mail.host","quota.historyEntries"]}],"short":[]}`
	got := errShort([]key.Shard{1, 7, key.Meta})
	assert.True(t, got != nil && got.Error() == "3 under-replicated shards: 1, 7, the cluster's own", "got %q", got)
	assert.EqualError(t, errShort([]key.Shard{0, 1, 2, 5, 7, 8, key.Meta}), "7 under-replicated shards: 0-2, 5, 7-8, the cluster's own")
	assert.NoError(t, errShort(nil), "nothing is short")
	status.Nodes[0].Name = "berlin-1"
	if rows := clusterTable(status); rows[1][0] != "berlin-1" || rows[1][1] != "A" {
		t.Errorf("got %q", rows[1])
	}
	status.Nodes[0].Name = ""
	if got, err := json.Marshal(status.Contract()); err != nil || string(got) != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	public := strings.Replace(want, `"address":"a:1",`, "", 1)
	if got, err := json.Marshal(status.Public()); err != nil || string(got) != public {
		t.Errorf("everybody sees %s %v, want %s", got, err, public)
	}
	assert.True(t, status.Nodes[0].Full && status.Nodes[0].Address != "", "the status itself has changed")
	status.Nodes = []cluster.NodeStatus{{ID: "A", Alive: true}, {ID: "B"}}
	if rows := clusterTable(status); rows[1][9] != "this node, no leader" || rows[2][9] != "does not answer" {
		t.Errorf("got the notes %q and %q", rows[1][9], rows[2][9])
	}
}
