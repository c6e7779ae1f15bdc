package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/cluster"
	"troupe/cmd/internal/homedir"
	"troupe/persistence/key"
)

// openCluster makes the home the first node of a cluster and opens its service.
func openCluster(t *testing.T, dir string) *opened {
	t.Helper()
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	o := &opened{service: newService(dir), t: t, log: &strings.Builder{}}
	o.config.Cluster.Listen, o.config.Cluster.Tick, o.config.LogLevel = clitest.NodeAddress(), 50*time.Millisecond, "error"
	_, err := cluster.Init(o.config, o.config.Cluster.Listen, clitest.Example())
	must(err)
	must(o.claimNode(t.Context()))
	store, err := o.openReplica()
	must(err)
	must(o.node.Run(store))
	o.started.push(o.node)
	must(o.node.Current(t.Context(), key.Meta))
	o.openOn(store)
	must(o.takeCommands())
	if o.gateway, err = o.config.NewGateway(zerolog.Nop()); err == nil {
		err = o.gateway.Start()
	}
	must(err)
	o.serveRequests()
	return o
}

// TestPublish goes the ways on which a home gets into a cluster.
func TestPublish(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	o.service.log = zerolog.Nop() // NB: the follower is a goroutine of its own
	o.followPublished()
	o.wants("first", 3, 3)
	other := clitest.SmallHome(t)
	clitest.Edit(t, other, "identity.yaml", "id: john.doe", "id: jim.roe")
	clitest.RemoveFile(t, other, "workflows/purchase-order.yaml")
	clitest.RemoveFile(t, other, "forms/feedback.yaml")
	clitest.Edit(t, other, "identity.yaml", "privileges: [mod-workflows]", "privileges: [mod-workflows, mod-admin]")

	const users, wouldBe = " and 4 users", "OK: 2 workflows, 2 templates and 4 users would be in use\n"
	(&clitest.Invocation{Args: []string{"publish", "--home", dir, "--dry-run", other}, Stdout: wouldBe}).Run(t)
	o.wants("after a dry run", 3, 3)
	(&clitest.Invocation{Args: []string{"publish", "--home", dir, other}, Stdout: "in use now: 2 workflows, 2 templates" + users + "\n"}).Run(t)
	o.wants("published", 2, 2)
	d := o.identities.Directory()
	assert.True(t, d.Principal("jim.roe") != nil && d.Principal("john.doe") == nil, "the users are not those that were published")
	if now, err := o.published.Publication(); err != nil || now.By != homedir.AdminSocket {
		t.Errorf("got %+v, %v", now, err)
	}

	clitest.Edit(t, other, "workflows/leave-request.yaml", "name: Leave request", "name: Other")
	const fault = "workflows/leave-request.yaml:7: workflow leave-request version 1 has different content, and in a cluster a version never changes (raise version to 2)\n"
	(&clitest.Invocation{Args: []string{"publish", "--home", dir, other}, Code: cli.ExitFailed, Stdout: fault, Stderr: "1 problem in " + other + "; nothing was published"}).Run(t)
	secret, _, err := o.identities.Create(context.Background(), identity.Token, identity.CreateCredential{User: "paulo.santos"})
	require.NoError(t, err)
	t.Setenv("TROUPE_TOKEN", secret)
	address := "http://" + o.gateway.Addr().String()
	(&clitest.Invocation{Args: []string{"publish", "--address", address, other}, Code: cli.ExitFailed, Stdout: fault, Stderr: "1 problem in"}).Run(t)
	clitest.Edit(t, other, "workflows/leave-request.yaml", "name: Other", "name: Leave request")
	(&clitest.Invocation{Args: []string{"publish", "--address", address, "--dry-run", other}, Stdout: wouldBe}).Run(t)
	clitest.PutFile(t, other, "workflows/broken.yaml", "id: [\n")
	code, stdout, _ := clitest.Invoke("publish", "--home", dir, other)
	assert.True(t, code == cli.ExitFailed && strings.HasPrefix(stdout, "workflows/broken.yaml:"), "a file with faults: got %d %s", code, stdout)
	o.wants("after what was refused", 2, 2)
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
	for range 2 {
		o.compareHome()
	}
	o.wants("changed files", 3, 3)
	assert.Equal(t, 1, strings.Count(o.log.String(), "differ from what is published"), "the log, %s", o.log)
	err := o.reloads.definitionsReady()
	assert.True(t, err != nil && strings.Contains(err.Error(), "differ from what is published"), "/readyz: got %v", err)
	code, stdout, _ := clitest.Invoke("check", "--home", dir)
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, "warning: ") && strings.Contains(stdout, "differ from what is published"), "%v %v", code, stdout)
	(&clitest.Invocation{Args: []string{"publish", "--home", dir}, Stdout: "in use now: 3 workflows, 2 templates and 4 users\n"}).Run(t)
	assert.NoError(t, o.reloads.definitionsReady(), "published files")
	o.wants("published files", 3, 2)
	o.wantsOut("published files")
}

func TestPublishOnANodeThatStandsAlone(t *testing.T) {
	dir := clitest.SmallHome(t)
	code, _, stderr := clitest.Invoke("publish", "--home", dir)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "no server is running"), "without a server: got %d %s", code, stderr)
	o := mustOpenService(t, dir)
	defer o.close()
	require.NoError(t, o.takeCommands())
	code, _, stderr = clitest.Invoke("publish", "--home", dir)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "is not a node of a cluster: it applies changed files of its home automatically"), "%v %v", code, stderr)
	code, stdout, stderr := clitest.Invoke("publish", "--home", dir, "--dry-run")
	assert.True(t, code == cli.ExitDone && strings.HasPrefix(stdout, "OK; this server is not a node of a cluster"), "a dry run: got %d %s%s", code, stdout, stderr)
	clitest.Edit(t, dir, "workflows/leave-request.yaml", "target: review", "target: reveiw")
	code, stdout, _ = clitest.Invoke("publish", "--home", dir, "--dry-run")
	assert.True(t, code == cli.ExitFailed && strings.Contains(stdout, "reveiw"), "a dry run of faulty files: got %d %s", code, stdout)
	_, help, _ := clitest.Invoke("publish", "--help")
	assert.Contains(t, help, "Only clusters need this", "the help does not say that it is for clusters")
}
