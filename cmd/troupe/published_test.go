package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/persistence"
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
	o.config.cluster.Listen, o.config.cluster.Tick, o.config.logLevel = nodeAddress(), 50*time.Millisecond, "error"
	_, err := o.config.initCluster(o.config.cluster.Listen)
	must(err)
	must(o.claimNode(t.Context()))
	store, err := o.openReplica()
	must(err)
	must(o.node.Run(store))
	o.started.push(o.node)
	must(o.node.Current(t.Context(), persistence.Meta))
	o.openOn(store)
	must(o.takeCommands())
	if o.gateway, err = o.config.newGateway(zerolog.Nop()); err == nil {
		err = o.gateway.Start()
	}
	must(err)
	o.serveRequests()
	return o
}

// TestPublish goes the ways on which a home gets into a cluster.
func TestPublish(t *testing.T) {
	dir := smallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	o.service.log = zerolog.Nop() // NB: the follower is a goroutine of its own
	o.followPublished()
	o.wants("first", 3, 3)
	other := smallHome(t)
	edit(t, other, "identity.yaml", "id: john.doe", "id: jim.roe")
	removeFile(t, other, "workflows/purchase-order.yaml")
	removeFile(t, other, "forms/feedback.yaml")
	edit(t, other, "identity.yaml", "privileges: [mod-workflows]", "privileges: [mod-workflows, mod-admin]")

	const users, wouldBe = " and 4 users", "no faults: 2 workflows, 2 templates and 4 users would be in use\n"
	(&invocation{args: []string{"publish", "--home", dir, "--dry-run", other}, stdout: wouldBe}).run(t)
	o.wants("after a dry run", 3, 3)
	(&invocation{args: []string{"publish", "--home", dir, other}, stdout: "in use now: 2 workflows, 2 templates" + users + "\n"}).run(t)
	o.wants("published", 2, 2)
	if d := o.identities.Directory(); d.Principal("jim.roe") == nil || d.Principal("john.doe") != nil {
		t.Error("the users are not those that were published")
	}
	if now, err := o.published.Publication(); err != nil || now.By != adminSocket {
		t.Errorf("got %+v, %v", now, err)
	}

	edit(t, other, "workflows/leave-request.yaml", "name: Leave request", "name: Other")
	const fault = "workflows/leave-request.yaml:7: workflow leave-request version 1 has other content, and in a cluster a version never gets another (raise version to 2)\n"
	(&invocation{args: []string{"publish", "--home", dir, other}, code: exitFailed, stdout: fault, stderr: "1 fault in " + other + "; nothing was published"}).run(t)
	secret, _, err := o.identities.CreateToken(context.Background(), identity.CreateCredential{User: "paulo.santos"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TROUPE_TOKEN", secret)
	address := "http://" + o.gateway.Addr().String()
	(&invocation{args: []string{"publish", "--address", address, other}, code: exitFailed, stdout: fault, stderr: "1 fault in"}).run(t)
	edit(t, other, "workflows/leave-request.yaml", "name: Other", "name: Leave request")
	(&invocation{args: []string{"publish", "--address", address, "--dry-run", other}, stdout: wouldBe}).run(t)
	putFile(t, other, "workflows/broken.yaml", "id: [\n")
	if code, stdout, _ := invoke("publish", "--home", dir, other); code != exitFailed || !strings.HasPrefix(stdout, "workflows/broken.yaml:") {
		t.Errorf("a file with faults: got %d %s", code, stdout)
	}
	o.wants("after what was refused", 2, 2)
}

// TestOwnFilesOfANodeOfACluster: they are not taken over, and whoever looks is told.
func TestOwnFilesOfANodeOfACluster(t *testing.T) {
	dir := smallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	if err := o.reloads.definitionsReady(); err != nil {
		t.Errorf("the first node's own files: got %v", err)
	}
	o.log.Reset()
	removeFile(t, dir, "forms/feedback.yaml")
	disable(t, dir)
	for range 2 {
		o.compareHome()
	}
	o.wants("changed files", 3, 3)
	if got := strings.Count(o.log.String(), "are not what is published"); got != 1 {
		t.Errorf("the log has %d warnings, want one:\n%s", got, o.log)
	}
	if err := o.reloads.definitionsReady(); err == nil || !strings.Contains(err.Error(), "are not what is published") {
		t.Errorf("/readyz: got %v", err)
	}
	if code, stdout, _ := invoke("check", "--home", dir); code != exitDone || !strings.Contains(stdout, "warning: ") || !strings.Contains(stdout, "are not what is published") {
		t.Errorf("troupe check: got %d %s", code, stdout)
	}
	(&invocation{args: []string{"publish", "--home", dir}, stdout: "in use now: 3 workflows, 2 templates and 4 users\n"}).run(t)
	if err := o.reloads.definitionsReady(); err != nil {
		t.Errorf("published files: got %v", err)
	}
	o.wants("published files", 3, 2)
	o.wantsOut("published files")
}

func TestPublishOnANodeThatStandsAlone(t *testing.T) {
	dir := smallHome(t)
	if code, _, stderr := invoke("publish", "--home", dir); code != exitFailed || !strings.Contains(stderr, "no server is running") {
		t.Errorf("without a server: got %d %s", code, stderr)
	}
	o := mustOpenService(t, dir)
	defer o.close()
	if err := o.takeCommands(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := invoke("publish", "--home", dir); code != exitFailed || !strings.Contains(stderr, "is not a node of a cluster: it takes over the files of its home by itself") {
		t.Errorf("with one: got %d %s", code, stderr)
	}
	if code, stdout, stderr := invoke("publish", "--home", dir, "--dry-run"); code != exitDone || !strings.HasPrefix(stdout, "no faults in the files; this server is not a node of a cluster") {
		t.Errorf("a dry run: got %d %s%s", code, stdout, stderr)
	}
	edit(t, dir, "workflows/leave-request.yaml", "target: review", "target: reveiw")
	if code, stdout, _ := invoke("publish", "--home", dir, "--dry-run"); code != exitFailed || !strings.Contains(stdout, "reveiw") {
		t.Errorf("a dry run of faulty files: got %d %s", code, stdout)
	}
	if !strings.Contains(newPublish().Long, "It is for clusters") {
		t.Error("the help does not say that it is for clusters")
	}
}

func TestPublishFirstRefusesAHomeWithFaults(t *testing.T) {
	dir := smallHome(t)
	putFile(t, dir, "workflows/broken.yaml", "id: [\n")
	store, err := openStore(newService(dir).config, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err := publishFirst(store, dir, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "workflows/broken.yaml") {
		t.Errorf("got %v, want the fault", err)
	}
	if _, err := home.OpenPublished(home.PublishedOptions{Store: store}); err == nil {
		t.Error("something was published")
	}
}
