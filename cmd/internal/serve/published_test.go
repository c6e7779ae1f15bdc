package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/cluster"
	"troupe/persistence/key"
)

func openCluster(t *testing.T, dir string) *opened {
	t.Helper()
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	o := &opened{service: newService(dir), t: t, log: &strings.Builder{}}
	o.config.Cluster.Listen, o.config.Cluster.Tick, o.config.LogLevel, o.config.Admin = clitest.NodeAddress(), 50*time.Millisecond, "error", ""
	_, err := cluster.Init(o.config, o.config.Cluster.Listen, clitest.Example())
	must(err)
	must(o.claimNode(t.Context()))
	store, err := o.openReplica(t.Context())
	must(err)
	must(o.node.Run(store))
	o.started.push(o.node)
	must(o.node.Current(t.Context(), key.Meta))
	o.openOn(store)
	must(o.takeCommands())
	if o.gateway, err = o.config.NewGateway(nil, zerolog.Nop()); err == nil {
		err = o.gateway.Start()
	}
	must(err)
	o.serveRequests()
	return o
}

// TestOwnFilesOfANodeOfACluster: they are not taken over, and whoever looks is told.
func TestOwnFilesOfANodeOfACluster(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	assert.NoError(t, o.reloads.definitionsReady(), "the first node's own files")
	o.log.Reset()
	clitest.RemoveFile(t, dir, "forms/feedback.yaml")
	disable(t, dir)
	assert.NoError(t, os.RemoveAll(filepath.Join(dir, "tests")), "they are of the user that is disabled, as check would say")
	for range 2 {
		o.compareHome()
	}
	o.wants("changed files", 3, 3)
	assert.Equal(t, 1, strings.Count(o.log.String(), "differ from what is published"), "the log, %s", o.log)
	err := o.reloads.definitionsReady()
	assert.True(t, err != nil && strings.Contains(err.Error(), "differ from what is published"), "/readyz: got %v", err)
	code, stdout, _ := clitest.Invoke("check", "--home", dir)
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, "warning: ") && strings.Contains(stdout, "differ from what is published"), "%v %v", code, stdout)
	says(t, "in use now: 3 workflows, 2 templates and 5 users\n", "publish", "--home", dir)
	assert.NoError(t, o.reloads.definitionsReady(), "published files")
	o.wants("published files", 3, 2)
	o.wantsOut("published files")
}
