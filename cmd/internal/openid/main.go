// Openid is an OpenID Connect provider for tests: the one that zitadel/oidc shows as its example, with groups. It
// listens on this machine only, keeps everything in memory, and runs until its standard input ends. Its arguments are
// two files: the secret of its client, "troupe", and the people who can sign in, such as {"1": {"ID": "1", "Username":
// "ann", "Password": "…", "groups": ["staff"]}}. It writes its issuer, which is its address. It is a module of its own,
// so that the program does not need what it needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const callbacks = "http://127.0.0.1:*/**/callback"

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(files []string, until io.Reader, out io.Writer) error {
	if len(files) != 2 {
		return errors.New("usage: openid SECRET-FILE PEOPLE-FILE")
	}
	secret, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	store, err := newGroupStorage(files[1], strings.TrimSpace(string(secret)))
	if err != nil {
		return err
	}
	var provider http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { provider.ServeHTTP(w, r) }))
	defer server.Close()
	issuer := "http://" + server.Listener.Addr().String()
	provider = exampleop.SetupServer(issuer, store, slog.New(slog.DiscardHandler), false)
	server.Start()
	if _, err := fmt.Fprintln(out, issuer); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, until)
	server.CloseClientConnections()
	return err
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

type anyPort struct{ op.Client }

// RedirectURIGlobs are patterns of callbacks.
func (anyPort) RedirectURIGlobs() []string { return []string{callbacks} }

// PostLogoutRedirectURIGlobs are patterns of pages behind a logout.
func (anyPort) PostLogoutRedirectURIGlobs() []string { return nil }
