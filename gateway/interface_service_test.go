package gateway_test

import (
	"maps"
	"slices"
	"testing"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// service is the whole service in this process: the handler on the actors, with a
// store in memory. Its exchanges are held against openapi.yaml.
type service struct {
	*actorstest.Actors
	*wiretest.Client
	gateway *gateway.Server
	log     func() string // what the gateway logged
}

// serviceOptions are those of a service. Without an identity.yaml among Files its
// users are those of wiretest.People.
type serviceOptions struct {
	actorstest.Options
	Gateway gateway.Options
}

// startService starts a service that the end of the test stops.
func startService(t testing.TB, o serviceOptions) *service {
	t.Helper()
	files := map[string]string{"identity.yaml": wiretest.People}
	maps.Copy(files, o.Files)
	o.Files = files
	s := &service{Actors: actorstest.Start(t, o.Options)}
	s.gateway, s.log = gateway.StartService(t, o.Gateway, gateway.Services{
		Workflows: s.Workflows, Credentials: s.Identities, Sessions: s.Identities, Portal: s.Portal, Repository: s.Repository, Templates: s.Parameters,
		Parts: []gateway.Part{{Name: "store", Ready: s.Store.Accepting}},
	})
	s.Client = &wiretest.Client{Base: o.Gateway.BasePath, Address: func() (string, error) { return s.gateway.Addr().String(), nil }}
	return s
}

type (
	request  = wiretest.Request
	answer   = wiretest.Answer
	record   = wiretest.Record
	position = wiretest.Position
)

// user asks in the name of somebody.
type user struct{ wiretest.User }

func (s *service) user(credential ...string) user {
	return user{wiretest.User{Client: s.Client, Credential: credential}}
}

// with adds header lines to each request.
func (u user) with(headers ...string) user {
	u.Credential = slices.Concat(u.Credential, headers)
	return u
}

// as returns a user with a new token.
func (s *service) as(name identity.UserID) user {
	return s.user("Authorization: svc.token " + s.Token(name))
}

// desk returns a user with a new session.
func (s *service) desk(name identity.UserID) user { return s.withCookie(s.Session(name)) }

// withCookie returns a user with a session.
func (s *service) withCookie(session string) user {
	return s.user("Cookie: session=" + session)
}
