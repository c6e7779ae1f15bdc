package serve

import (
	"context"
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
)

const door = "id: door\nversion: 2\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

const doorFault = "workflow door is already published by PUT definitions/door, and has only one source (remove the file, or give its workflow another id)"

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
	says(t, "in use now: 3 workflows, 3 templates and 5 users\n", "publish", "--home", dir)
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
		"the caller of a simulation has left": func() error {
			_, err := o.definitions().Simulate(left, &home.Simulation{
				Caller: &identity.Principal{ID: "paulo.santos"}, File: "body.yaml", Text: []byte(door), Steps: []byte("[]"),
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
