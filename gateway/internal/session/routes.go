package session

import (
	"net/http"

	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes sign people in and out.
func (g *Group) Routes() []kernel.Route {
	return []kernel.Route{
		{Name: "sign-in", Method: http.MethodPost, Path: "/session", Access: kernel.SigningIn, Secret: true, Handle: g.signIn},
		{Name: "session", Method: http.MethodGet, Path: "/session", Access: kernel.SignedIn(identity.Session), Secret: true, Handle: showSession},
		{Name: "sign-out", Method: http.MethodDelete, Path: "/session", Access: kernel.SigningOut, Secret: true, Handle: g.signOut},
		{Name: "login", Method: http.MethodGet, Path: "/login", Access: kernel.Public, Query: []string{"next"}, Handle: g.showLogin},
		{
			Name: "login-provider", Method: http.MethodGet, Path: "/login/oidc", Access: kernel.SigningIn,
			ErrorPage: g.showLoginError, Strict: true, Secret: true, Query: []string{"next"}, Handle: g.beginProvider,
		},
		{
			Name: "login-callback", Method: http.MethodGet, Path: callbackPath, Access: kernel.Public,
			ErrorPage: g.showLoginError, AnyQuery: true, Secret: true, Once: true, // it spends the provider's code
			Handle: g.finishProvider,
		},
		{Name: "favicon", Method: http.MethodGet, Path: "/favicon.ico", Access: kernel.Public, Handle: showIcon},
		{Name: "login-style", Method: http.MethodGet, Path: "/login/style.css", Access: kernel.Public, Handle: showLoginStyle},
		{Name: "login-script", Method: http.MethodGet, Path: "/login/script.js", Access: kernel.Public, Handle: showLoginScript},
	}
}
