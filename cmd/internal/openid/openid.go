// Package openid is an OpenID Connect provider for tests: the one that zitadel/oidc shows
// as its example, with groups. It listens on this machine only, and keeps everything in
// memory. People sign in at its page with what a file of them says:
//
//	{"1": {"ID": "1", "Username": "ann", "Password": "…", "groups": ["staff"]}}
//
// Its client, with the secret, is "troupe". Only tests import it.
package openid

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// callbacks are the addresses that people may be sent back to.
const callbacks = "http://127.0.0.1:*/**/callback"

// Start runs a provider until stop is called. Its address is its issuer.
func Start(people, secret string) (issuer string, stop func(), err error) {
	store, err := newGroupStorage(people, secret)
	if err != nil {
		return "", nil, err
	}
	var provider http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { provider.ServeHTTP(w, r) }))
	issuer = "http://" + server.Listener.Addr().String()
	provider = exampleop.SetupServer(issuer, store, slog.New(slog.DiscardHandler), false)
	server.Start()
	return issuer, func() {
		server.CloseClientConnections()
		server.Close()
	}, nil
}

// groupStorage is the example's storage, whose people are in groups.
type groupStorage struct {
	*storage.Storage
	groups map[string][]string // by the id of a person
}

func newGroupStorage(people, secret string) (*groupStorage, error) {
	users, err := storage.StoreFromFile(people)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(people)
	if err != nil {
		return nil, err
	}
	var members map[string]struct{ Groups []string }
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	storage.RegisterClients(storage.WebClient("troupe", secret, callbacks))
	s := &groupStorage{storage.NewStorage(users), map[string][]string{}}
	for id, member := range members {
		s.groups[id] = member.Groups
	}
	return s, nil
}

// SetUserinfoFromToken is what the provider says when it is asked with a token.
func (s *groupStorage) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	info.AppendClaims("groups", s.groups[subject])
	return nil
}

// GetClientByClientID finds a client by its id.
func (s *groupStorage) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	client, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return anyPort{client}, nil
}

// anyPort is a client that may listen on every port of this machine.
type anyPort struct{ op.Client }

// RedirectURIGlobs are patterns of callbacks.
func (anyPort) RedirectURIGlobs() []string { return []string{callbacks} }

// PostLogoutRedirectURIGlobs are patterns of pages behind a logout.
func (anyPort) PostLogoutRedirectURIGlobs() []string { return nil }
