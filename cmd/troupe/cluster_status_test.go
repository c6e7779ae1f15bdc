package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"troupe/actors/cluster"
	"troupe/gateway/admin"
	"troupe/persistence"
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
	s, err := admin.Start(admin.Options{Path: filepath.Join(home, adminSocket), Cluster: node, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, of := range []struct {
		short  []persistence.Shard
		code   int
		stderr string
	}{
		{[]persistence.Shard{}, exitDone, ""},
		{[]persistence.Shard{3, persistence.Meta}, exitFailed, "troupe: 2 under-replicated shards: 3, the cluster's own\n"},
	} {
		node.status.Short = of.short
		code, stdout, stderr := invoke("cluster", "status", "--home", home)
		if code != of.code || stderr != of.stderr || !strings.Contains(stdout, "this node") {
			t.Errorf("short of %v: got %d %q %q", of.short, code, stdout, stderr)
		}
		var status cluster.Status
		code, stdout, stderr = invoke("cluster", "status", "--home", home, "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &status); code != of.code || stderr != of.stderr || err != nil || !slices.Equal(status.Short, of.short) {
			t.Errorf("short of %v as JSON: got %d %q %q", of.short, code, stdout, stderr)
		}
	}
}
