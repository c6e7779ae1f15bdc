package gateway_test

import (
	"cmp"
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway"
	"troupe/gateway/api"
	"troupe/gateway/leader"
	"troupe/gateway/wiretest"
)

// nodes is how many nodes a service has. With more than one it is a cluster, and each request
// goes to another node than the one before.
var nodes = flag.Int("nodes", 1, "nodes of the services of TestInterface… and TestABatch…")

// service is the whole service in this process: handlers on actors, with stores in
// memory. Their exchanges are held against openapi.yaml. What is promoted from
// Actors is the first node's, or that of all nodes where actorstest says so.
type service struct {
	*actorstest.Actors
	*wiretest.Client
	gateways []*gateway.Server // by node
	logs     []func() string   // what they logged
}

// serviceOptions are those of a service. Without an identity.yaml among Files its
// users are those of wiretest.People.
type serviceOptions struct {
	actorstest.Options
	Gateway gateway.Options
}

// definitions are those in use, which nobody can change.
type definitions struct {
	*catalog.Catalog
	*home.Simulator
}

func (definitions) PublishDefinition(context.Context, *gateway.DefinitionRequest) (api.PublishedDefinition, error) {
	return api.PublishedDefinition{}, failure.ErrForbidden
}

// startService starts a service that the end of the test stops.
func startService(t testing.TB, o serviceOptions) *service {
	t.Helper()
	files := map[string]string{"identity.yaml": wiretest.People}
	maps.Copy(files, o.Files)
	o.Files = files
	s := &service{}
	if *nodes > 1 {
		s.Actors = actorstest.StartCluster(t, o.Options, *nodes)[0]
		o.Gateway.LeaderWaitMax = cmp.Or(o.Gateway.LeaderWaitMax, wiretest.AnswerMax) // on a busy machine a leader takes its time
	} else {
		s.Actors = actorstest.Start(t, o.Options)
	}
	for _, n := range s.Nodes() {
		services := gateway.Services{
			Workflows: n.Workflows, Queries: n.Workflows.Queries, Watches: n.Workflows.Watches, Changes: n.Workflows.Changes,
			Worklists: n.Workflows.Worklists, TaskWatches: n.Workflows.TaskWatches, Waiting: n.Workflows.Waiting,
			Credentials: n.Identities, Sessions: n.Identities, Identities: n.Identities, Audit: n.Audit, Portal: n.Portal, Repository: n.Repository, Templates: n.Parameters, Users: n.Identities, Presentations: n.Presentations, BulkJobs: n.Workflows.Bulk, Jobs: n.Workflows.Jobs,
			Parts: []gateway.Part{{Name: "store", Ready: n.Store.Accepting}},
		}
		services.Definitions = definitions{n.Catalog(), n.Simulator()}
		if n.Node != nil {
			services.Peers, services.Locate = peers{n.Node}, peers{n.Node}.Locate
			services.Parts = append(services.Parts, gateway.Part{Name: "cluster", Ready: n.Node.Ready})
		}
		server, log := gateway.StartService(t, o.Gateway, services)
		s.gateways, s.logs = append(s.gateways, server), append(s.logs, log)
		if n.Node != nil {
			serveNode(n.Node, server)
		}
	}
	s.Client = &wiretest.Client{Base: o.Gateway.BasePath, Address: inTurn(s.gateways)}
	return s
}

// inTurn gives the address of another gateway each time, when there are several. Their order is the
// same in each run, but has no period: tests that repeat some steps would ask the same node for each.
func inTurn(gateways []*gateway.Server) func() (string, error) {
	var mu sync.Mutex
	at, steps := 0, rand.New(rand.NewPCG(0, 0))
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if others := len(gateways) - 1; others > 0 {
			at = (at + 1 + steps.IntN(others)) % len(gateways)
		}
		return gateways[at].Addr().String(), nil
	}
}

// log is what all gateways logged.
func (s *service) log() string {
	var all strings.Builder
	for _, log := range s.logs {
		all.WriteString(log())
	}
	return all.String()
}

type (
	request = wiretest.Request
	answer  = wiretest.Answer
)

// user asks in the name of somebody.
type user struct{ wiretest.User }

func (s *service) user(credential ...string) user {
	return user{wiretest.User{Client: s.Client, Credential: credential}}
}

// as returns a user with a new token.
func (s *service) as(name identity.UserID) user {
	return s.user("Authorization: svc.token " + s.Token(name))
}

// scene is one service with two users of wiretest.People.
type scene struct {
	*service
	ann, adm user
}

// newScene starts a service with all flows.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: filesOf("flows")}})
	return &scene{s, s.as("ann"), s.as("adm")}
}

// wantSameAnswer demands two answers that nobody can tell apart, but for which node was asked.
func wantSameAnswer(t testing.TB, got, want answer) {
	t.Helper()
	got.Header, want.Header = got.Header.Clone(), want.Header.Clone()
	for _, h := range []string{"Date", leader.Header} {
		got.Header.Del(h)
		want.Header.Del(h)
	}
	require.Equal(t, want, got)
}
