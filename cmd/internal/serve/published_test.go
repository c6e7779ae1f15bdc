package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

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
		if err != nil {
			t.Fatal(err)
		}
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
	if d := o.identities.Directory(); d.Principal("jim.roe") == nil || d.Principal("john.doe") != nil {
		t.Error("the users are not those that were published")
	}
	if now, err := o.published.Publication(); err != nil || now.By != homedir.AdminSocket {
		t.Errorf("got %+v, %v", now, err)
	}

	clitest.Edit(t, other, "workflows/leave-request.yaml", "name: Leave request", "name: Other")
	const fault = "workflows/leave-request.yaml:7: workflow leave-request version 1 has other content, and in a cluster a version never gets another (raise version to 2)\n"
	(&clitest.Invocation{Args: []string{"publish", "--home", dir, other}, Code: cli.ExitFailed, Stdout: fault, Stderr: "1 problem in " + other + "; nothing was published"}).Run(t)
	secret, _, err := o.identities.Create(context.Background(), identity.Token, identity.CreateCredential{User: "paulo.santos"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TROUPE_TOKEN", secret)
	address := "http://" + o.gateway.Addr().String()
	(&clitest.Invocation{Args: []string{"publish", "--address", address, other}, Code: cli.ExitFailed, Stdout: fault, Stderr: "1 problem in"}).Run(t)
	clitest.Edit(t, other, "workflows/leave-request.yaml", "name: Other", "name: Leave request")
	(&clitest.Invocation{Args: []string{"publish", "--address", address, "--dry-run", other}, Stdout: wouldBe}).Run(t)
	clitest.PutFile(t, other, "workflows/broken.yaml", "id: [\n")
	if code, stdout, _ := clitest.Invoke("publish", "--home", dir, other); code != cli.ExitFailed || !strings.HasPrefix(stdout, "workflows/broken.yaml:") {
		t.Errorf("a file with faults: got %d %s", code, stdout)
	}
	o.wants("after what was refused", 2, 2)
}

// TestOwnFilesOfANodeOfACluster: they are not taken over, and whoever looks is told.
func TestOwnFilesOfANodeOfACluster(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	if err := o.reloads.definitionsReady(); err != nil {
		t.Errorf("the first node's own files: got %v", err)
	}
	o.log.Reset()
	clitest.RemoveFile(t, dir, "forms/feedback.yaml")
	disable(t, dir)
	for range 2 {
		o.compareHome()
	}
	o.wants("changed files", 3, 3)
	if got := strings.Count(o.log.String(), "differ from what is published"); got != 1 {
		t.Errorf("the log has %d warnings, want one:\n%s", got, o.log)
	}
	if err := o.reloads.definitionsReady(); err == nil || !strings.Contains(err.Error(), "differ from what is published") {
		t.Errorf("/readyz: got %v", err)
	}
	if code, stdout, _ := clitest.Invoke("check", "--home", dir); code != cli.ExitDone || !strings.Contains(stdout, "warning: ") || !strings.Contains(stdout, "differ from what is published") {
		t.Errorf("troupe check: got %d %s", code, stdout)
	}
	(&clitest.Invocation{Args: []string{"publish", "--home", dir}, Stdout: "in use now: 3 workflows, 2 templates and 4 users\n"}).Run(t)
	if err := o.reloads.definitionsReady(); err != nil {
		t.Errorf("published files: got %v", err)
	}
	o.wants("published files", 3, 2)
	o.wantsOut("published files")
}

func TestPublishOnANodeThatStandsAlone(t *testing.T) {
	dir := clitest.SmallHome(t)
	if code, _, stderr := clitest.Invoke("publish", "--home", dir); code != cli.ExitFailed || !strings.Contains(stderr, "no server is running") {
		t.Errorf("without a server: got %d %s", code, stderr)
	}
	o := mustOpenService(t, dir)
	defer o.close()
	if err := o.takeCommands(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := clitest.Invoke("publish", "--home", dir); code != cli.ExitFailed || !strings.Contains(stderr, "is not a node of a cluster: it takes over the files of its home by itself") {
		t.Errorf("with one: got %d %s", code, stderr)
	}
	if code, stdout, stderr := clitest.Invoke("publish", "--home", dir, "--dry-run"); code != cli.ExitDone || !strings.HasPrefix(stdout, "OK; this server is not a node of a cluster") {
		t.Errorf("a dry run: got %d %s%s", code, stdout, stderr)
	}
	clitest.Edit(t, dir, "workflows/leave-request.yaml", "target: review", "target: reveiw")
	if code, stdout, _ := clitest.Invoke("publish", "--home", dir, "--dry-run"); code != cli.ExitFailed || !strings.Contains(stdout, "reveiw") {
		t.Errorf("a dry run of faulty files: got %d %s", code, stdout)
	}
	if _, help, _ := clitest.Invoke("publish", "--help"); !strings.Contains(help, "Only clusters need this") {
		t.Error("the help does not say that it is for clusters")
	}
}
