package serve

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway"
	"troupe/gateway/wiretest"
	"troupe/statemachine/document"
)

const door = "id: door\nversion: 2\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

func (o *opened) publish(version, text string, dryRun bool) error {
	_, err := o.definitions().PublishDefinition(context.Background(), &gateway.DefinitionRequest{
		Caller: &identity.Principal{ID: "paulo.santos"}, WorkflowID: "door", Version: version, File: "body.yaml", Text: []byte(text), DryRun: dryRun,
	})
	return err
}

// TestFaultsOfAPublishedDefinition holds gateway/INTERFACE.md, "Publishing a definition": they are
// those of a file, and all that the path says otherwise.
func TestFaultsOfAPublishedDefinition(t *testing.T) {
	o := mustOpenService(t, clitest.SmallHome(t))
	defer o.close()
	for _, c := range []struct{ name, version, text, faults string }{
		{"not YAML", "", "id: [\n", "body.yaml:"},
		{"nothing", "", "", "body.yaml:"},
		{"an unknown key", "", door + "stat: {}\n", `body.yaml:4:1: unknown key "stat"`},
		{"an unknown role", "", door + "allow: {create: {roles: [clown]}}\n", `body.yaml:4:25: unknown role "clown"`},
		{"a file beside it", "", door + "schema: {svcPublic: {$ref: a.schema.json}}\n", "cannot refer to files"},
		{"another id", "", strings.Replace(door, "id: door", "id: gate", 1), `body.yaml:1: the id is gate, but the path says "door"`},
		{"another version", "3", door, `body.yaml:2: the version is 2, but the path says "3"`},
		{"another spelling", "02", door, `the path says "02"`},
		{"no version, which is the first", "2", strings.Replace(door, "version: 2\n", "", 1), `body.yaml:1: the version is 1, but the path says "2"`},
		{"all of the path", "3", strings.Replace(door, "id: door", "id: gate", 1), "says \"door\"\nbody.yaml:2: the version"},
	} {
		for _, dryRun := range []bool{true, false} {
			err := o.publish(c.version, c.text, dryRun)
			var faults document.Faults
			assert.True(t, errors.Is(err, failure.ErrInvalid) && errors.As(err, &faults) && strings.Contains(faults.Error(), c.faults), "%v %v %v", c.name, err, c.faults)
		}
	}
	o.wants("after what was refused", 3, 3)
	assert.NoError(t, errors.Join(o.publish("", door, true), o.publish("2", door, true)))
	o.wants("after a dry run", 3, 3)
	assert.NoError(t, errors.Join(o.publish("2", door, false), o.publish("", door, false)))
	o.wants("published", 4, 3)
	o.wantsLog("published", `"workflow":"door","version":2,"user":"paulo.santos"`)
	_, err := o.definitions().PublishDefinition(context.Background(), &gateway.DefinitionRequest{
		Caller: &identity.Principal{ID: "mallory", Privileges: []string{"mod-workflows"}}, WorkflowID: "door", File: "body.yaml", Text: []byte(strings.Replace(door, "version: 2", "version: 3", 1)),
	})
	assert.ErrorIs(t, err, failure.ErrForbidden)
	assert.Equal(t, "only the owners of workflow door (user paulo.santos) and holders of mod-admin may publish a version of it", failure.Of(err).Reason)
}

const doorFault = "workflow door is already published by PUT definitions/door, and has only one source (remove the file, or give its workflow another id)"

// TestAPublishedDefinitionBesideAHome: it is in use after a reload and a restart, and a file that names
// its workflow is refused by the reload, at a start and by troupe check.
func TestAPublishedDefinitionBesideAHome(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := mustOpenService(t, dir)
	require.NoError(t, o.publish("", door, false))
	clitest.RemoveFile(t, dir, "workflows/purchase-order.yaml")
	assert.False(t, o.reloadAll(), "the files are tried again:\n%s", o.log)
	o.wants("after a reload", 3, 3)
	o.close()

	clitest.PutFile(t, dir, "workflows/door.yaml", door)
	o = mustOpenService(t, dir)
	defer o.close()
	o.wants("after a start with a file that names it", 3, 3)
	wantsPending(t, "after a start with a file that names it", &o.reloads.definitions, "refused: workflows/door.yaml:1: workflow door is already published")
	require.NoError(t, o.takeCommands())
	code, stdout, _ := clitest.Invoke("check", "--home", dir)
	assert.True(t, code == cli.ExitFailed && stdout == "workflows/door.yaml:1: "+doorFault+"\n", stdout)
	clitest.RemoveFile(t, dir, "workflows/door.yaml")
	assert.False(t, o.reloadAll(), "the files are tried again:\n%s", o.log)
	wantsPending(t, "the file is gone", &o.reloads.definitions, "")
	assert.ErrorIs(t, o.publish("", strings.Replace(door, "go:", "move:", 1), false), failure.ErrExists, "other content")
}

// TestPublishingADefinitionInACluster: a home that is published leaves it in use, and must not name it.
func TestPublishingADefinitionInACluster(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := openCluster(t, dir)
	defer o.close()
	o.service.log = zerolog.Nop() // NB: the follower is a goroutine of its own
	o.followPublished()
	secret, _, err := o.identities.Create(context.Background(), identity.Token, identity.CreateCredential{User: "paulo.santos"})
	require.NoError(t, err)
	service := wiretest.Client{Address: func() (string, error) { return o.gateway.Addr().String(), nil }}
	put := func(text string) wiretest.Answer {
		return service.Send(t, wiretest.Request{
			Method: "PUT", Path: "/workflow/api/v1/definitions/door", Body: text, Headers: []string{"Authorization: svc.token " + secret, "Content-Type: application/yaml"},
		})
	}
	a := put(door)
	assert.True(t, a.Status == 200 && a.Body == `{"id":"door","version":2,"current":true,"warnings":[]}`, "got %d %s", a.Status, a.Body)
	put(strings.Replace(door, "go:", "move:", 1)).WantFault(t, 409, "AlreadyExists")
	says(t, "in use now: 3 workflows, 3 templates and 4 users\n", "publish", "--home", dir)
	o.wants("a home was published", 4, 3)
	clitest.PutFile(t, dir, "workflows/door.yaml", door)
	for _, args := range [][]string{{"publish", "--home", dir}, {"publish", "--home", dir, "--dry-run"}, {"check", "--home", dir}} {
		code, stdout, _ := clitest.Invoke(args...)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stdout, "workflows/door.yaml:1: "+doorFault+"\n"), "%v: got %d %s, want the fault", args, code, stdout)
	}
	o.wants("after what was refused", 4, 3)
}

// TestNobodyWaitsForACheck: what is sent by a caller who has left, or to a server that stops, is not checked.
func TestNobodyWaitsForACheck(t *testing.T) {
	o := mustOpenService(t, clitest.SmallHome(t))
	defer o.close()
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, ask := range map[string]func() error{
		"the caller has left": func() error {
			_, err := o.definitions().PublishDefinition(left, &gateway.DefinitionRequest{
				Caller: &identity.Principal{ID: "paulo.santos"}, WorkflowID: "door", File: "body.yaml", Text: []byte(door),
			})
			return err
		},
		"the server stops": func() error {
			of := o.definitions()
			of.queue = home.NewQueue(left)
			_, err := of.PublishDefinition(t.Context(), &gateway.DefinitionRequest{
				Caller: &identity.Principal{ID: "paulo.santos"}, WorkflowID: "door", File: "body.yaml", Text: []byte(door), DryRun: true,
			})
			return err
		},
	} {
		assert.ErrorIs(t, ask(), failure.ErrUnavailable, name)
	}
	o.wants("after what nobody waits for", 3, 3)
}
