package gateway_test

import (
	"maps"
	"testing"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/gateway"
)

// service is the whole service in this process: the handler on the actors, with a
// store in memory. Its exchanges are held against openapi.yaml.
type service struct {
	*actorstest.Actors
	gateway *gateway.Server
	log     func() string // what the gateway logged
	address string        // of its port
	base    string        // the base path
}

// serviceOptions are those of a service. Without an identity.yaml among Files its
// users are people.
type serviceOptions struct {
	actorstest.Options
	Gateway gateway.Options
}

// startService starts a service that the end of the test stops.
func startService(t testing.TB, o serviceOptions) *service {
	t.Helper()
	files := map[string]string{"identity.yaml": people}
	maps.Copy(files, o.Files)
	o.Files = files
	s := &service{Actors: actorstest.Start(t, o.Options), base: o.Gateway.BasePath}
	s.gateway, s.log = gateway.StartService(t, o.Gateway, gateway.Services{
		Workflows: s.Workflows, Credentials: s.Identities, Sessions: s.Identities, Portal: s.Portal, Repository: s.Repository, Templates: s.Parameters,
		Parts: []gateway.Part{{Name: "store", Ready: s.Store.Accepting}},
	})
	s.address = s.gateway.Addr().String()
	return s
}

// as returns a user with a new token.
func (s *service) as(name identity.UserID) user {
	return user{s, []string{"Authorization: svc.token " + s.Token(name)}}
}

// desk returns a user with a new session.
func (s *service) desk(name identity.UserID) user { return s.withCookie(s.Session(name)) }

// withCookie returns a user with a session.
func (s *service) withCookie(session string) user {
	return user{s, []string{"Cookie: session=" + session}}
}
