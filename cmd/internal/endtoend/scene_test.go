package endtoend

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

type (
	request = wiretest.Request
	answer  = wiretest.Answer
	record  = wiretest.Record
)

// user asks in the name of somebody.
type user struct{ wiretest.User }

func (p *program) user(credential ...string) user {
	return user{wiretest.User{Client: p.Client, Credential: credential}}
}

func (p *program) as(token string) user { return p.user("Authorization: svc.token " + token) }

// scene is one running program with the users of wiretest.People.
type scene struct {
	*program
	ann, bob, eve, adm user
}

func newScene(t testing.TB) *scene {
	t.Helper()
	return sceneOf(start(t, newHome(t, flows())))
}

func sceneOf(p *program) *scene {
	return &scene{
		p, p.as(p.home.token("ann")), p.as(p.home.token("bob")), p.as(p.home.token("eve")), p.as(p.home.token("adm")),
	}
}

// plainFlow takes any data; its events are those of the load as well.
const plainFlow = `
id: plain
events: {note: {private: true}}
stateMachines: {main: {initial: a, states: {a: {on: {go: b, note: {}}}, b: {on: {go: a, note: {}}}}}}
`

func flows() map[string]string { return map[string]string{"workflows/plain.yaml": plainFlow} }

func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	assert.Equal(t, r.Text, s.adm.Load(t, r.WorkflowID, r.ID).Record(t).Text, "the instance changed")
}
