package gateway

import (
	"context"
	"net/http"
	"net/url"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
	"troupe/gateway/provider"
)

// Provider signs people in at an identity provider; provider.Client does it. Errors
// are those of package provider, wrapped.
type Provider interface {
	// Name is its name on the login page.
	Name() string
	// Begin returns where the browser goes, and a cookie for Finish.
	Begin(ctx context.Context, next, redirect string) (provider.Start, error)
	// Finish returns who has signed in. With an error it may return Person.Next alone.
	Finish(ctx context.Context, cookie string, query url.Values) (provider.Person, error)
}

const (
	callbackPath = "/login/oidc/callback"
	hostBytesMax = 255
)

// beginProvider answers GET /login/oidc.
func beginProvider(x *exchange) error {
	if x.services.Provider == nil {
		return failure.ErrNotFound
	}
	if len(x.r.Host) > hostBytesMax {
		return parse.Malformed("the header Host is too long")
	}
	s := x.server
	x.next = login.Destination(s.options.BasePath, x.query.Get("next"))
	_, secure := s.clientOf(x.r)
	callback := url.URL{Scheme: "http", Host: x.r.Host, Path: s.options.BasePath + callbackPath}
	if secure {
		callback.Scheme = "https"
	}
	start, err := x.services.Provider.Begin(x.r.Context(), x.next, callback.String())
	if err != nil {
		return err
	}
	s.setFlowCookie(x.w.Header(), start.Cookie, int(provider.FlowMax.Seconds()), secure)
	return x.redirect(start.Location)
}

// finishProvider answers GET /login/oidc/callback, where the provider sends the
// browser. The session is a new one, as with a password.
func finishProvider(x *exchange) error {
	if x.services.Provider == nil || x.services.Sessions == nil {
		return failure.ErrNotFound
	}
	s := x.server
	if _, err := parse.ReadCredentials(x.r.Header, s.options.SessionCookie); err != nil {
		return err
	}
	cookie, _, err := parse.Cookie(x.r.Header["Cookie"], s.flowCookie(), flowCharsMax)
	if err != nil {
		return provider.ErrFlow // two cookies: nobody can tell which is the right one
	}
	// NB: asked first, because the provider's code can be spent once: afterwards no other node could
	// carry the request out.
	if err := x.services.Sessions.Writable(); err != nil {
		return err
	}
	from, secure := s.clientOf(x.r)
	person, err := x.services.Provider.Finish(x.r.Context(), cookie, x.query)
	x.next = person.Next
	// NB: a request that does not belong to the flow must not end it.
	x.flowEnded = person.Next != ""
	if err != nil {
		return err
	}
	session, caller, err := x.services.Sessions.SignInVouched(x.r.Context(),
		identity.Vouched{User: person.User, Roles: person.Roles, Address: from})
	if err != nil {
		return err
	}
	if err := x.startSession(session, caller, secure); err != nil {
		return err
	}
	s.setFlowCookie(x.w.Header(), "", -1, secure)
	return x.redirect(login.Destination(s.options.BasePath, person.Next))
}

// flowCharsMax is the longest cookie of a sign-in: what browsers keep.
const flowCharsMax = 4096

// flowCookie is the name of the cookie of a sign-in through the provider.
func (s *Server) flowCookie() string { return s.options.SessionCookie + "-oidc" }

// setFlowCookie sets the cookie of a sign-in through the provider. SameSite is Lax,
// because the browser comes back from another site. A negative maxAge removes it.
func (s *Server) setFlowCookie(h http.Header, value string, maxAge int, secure bool) {
	cookie := http.Cookie{
		Name: s.flowCookie(), Value: value, Path: s.options.BasePath + "/login/oidc", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	h["Set-Cookie"] = append(h["Set-Cookie"], cookie.String())
}

// redirect sends the browser to another page. Only sign-ins through the provider do.
func (x *exchange) redirect(location string) error {
	x.w.Header()["Location"] = []string{location}
	x.sendPage(http.StatusSeeOther, valuePolicy, []byte("<!DOCTYPE html>\n<title>Sign in</title>\n"))
	return nil
}

// answerLoginPage is answerError with the login page, which shows what went wrong.
func (x *exchange) answerLoginPage(f *errorMapping) {
	if x.flowEnded {
		_, secure := x.server.clientOf(x.r)
		x.server.setFlowCookie(x.w.Header(), "", -1, secure)
	}
	x.sendPage(f.status, valuePolicy, x.loginPage(x.next, f.status))
}
