package endtoend

import "troupe/gateway/wiretest"

type (
	request = wiretest.Request
	answer  = wiretest.Answer
)

// user asks in the name of somebody.
type user struct{ wiretest.User }

func (p *program) user(credential ...string) user {
	return user{wiretest.User{Client: p.Client, Credential: credential}}
}

func (p *program) as(token string) user { return p.user("Authorization: svc.token " + token) }

func (p *program) withCookie(session string) user {
	return p.user("Cookie: session=" + session)
}

// plainFlow takes any data; its events are those of the load as well.
const plainFlow = `
id: plain
events: {note: {private: true}}
stateMachines: {main: {initial: a, states: {a: {on: {go: b, note: {}}}, b: {on: {go: a, note: {}}}}}}
`

func flows() map[string]string { return map[string]string{"workflows/plain.yaml": plainFlow} }
