package session

import (
	"context"
	"net/http"
	"net/url"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
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
	HostBytesMax = 255
)

// beginProvider answers GET /login/oidc.
func (g *Group) beginProvider(x *kernel.Exchange) error {
	if g.Provider == nil {
		return failure.ErrNotFound
	}
	if len(x.Request.Host) > HostBytesMax {
		return parse.Malformed("the header Host is too long")
	}
	s := x.Kernel
	next := login.Destination(s.Options.BasePath, x.Query.Get("next"))
	x.ErrorPage = func(status int) { g.answerLoginError(x, status, next, false) }
	_, secure := s.ClientOf(x.Request)
	callback := url.URL{Scheme: "http", Host: x.Request.Host, Path: s.Options.BasePath + callbackPath}
	if secure {
		callback.Scheme = "https"
	}
	start, err := g.Provider.Begin(x.Request.Context(), next, callback.String())
	if err != nil {
		return err
	}
	setFlowCookie(x, start.Cookie, int(provider.FlowMax.Seconds()), secure)
	return redirect(x, start.Location)
}

// finishProvider answers GET /login/oidc/callback, where the provider sends the
// browser. The session is a new one, as with a password.
func (g *Group) finishProvider(x *kernel.Exchange) error {
	if g.Provider == nil || g.Sessions == nil {
		return failure.ErrNotFound
	}
	s := x.Kernel
	if _, err := parse.ReadCredentials(x.Request.Header, s.Options.SessionCookie); err != nil {
		return err
	}
	cookie, _, err := parse.Cookie(x.Request.Header["Cookie"], flowCookie(x), flowCharsMax)
	if err != nil {
		return provider.ErrFlow // two cookies: nobody can tell which is the right one
	}
	// NB: asked first, because the provider's code can be spent once: afterwards no other node could
	// carry the request out.
	if err := g.Sessions.Writable(); err != nil {
		return err
	}
	from, secure := s.ClientOf(x.Request)
	person, err := g.Provider.Finish(x.Request.Context(), cookie, x.Query)
	// NB: a request that does not belong to the flow must not end it.
	x.ErrorPage = func(status int) { g.answerLoginError(x, status, person.Next, person.Next != "") }
	if err != nil {
		return err
	}
	session, caller, err := g.Sessions.SignInVouched(x.Request.Context(),
		identity.Vouched{User: person.User, Roles: person.Roles, Address: from})
	if err != nil {
		return err
	}
	if err := g.startSession(x, session, caller, secure); err != nil {
		return err
	}
	setFlowCookie(x, "", -1, secure)
	return redirect(x, login.Destination(s.Options.BasePath, person.Next))
}

// flowCharsMax is the longest cookie of a sign-in: what browsers keep.
const flowCharsMax = 4096

// flowCookie is the name of the cookie of a sign-in through the provider.
func flowCookie(x *kernel.Exchange) string { return x.Kernel.Options.SessionCookie + "-oidc" }

// setFlowCookie sets the cookie of a sign-in through the provider. SameSite is Lax,
// because the browser comes back from another site. A negative maxAge removes it.
func setFlowCookie(x *kernel.Exchange, value string, maxAge int, secure bool) {
	cookie := http.Cookie{
		Name: flowCookie(x), Value: value, Path: x.Kernel.Options.BasePath + "/login/oidc", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	h := x.Writer.Header()
	h["Set-Cookie"] = append(h["Set-Cookie"], cookie.String())
}

// redirect sends the browser to another page. Only sign-ins through the provider do.
func redirect(x *kernel.Exchange, location string) error {
	x.Writer.Header()["Location"] = []string{location}
	x.SendPage(http.StatusSeeOther, valuePolicy, []byte("<!DOCTYPE html>\n<title>Sign in</title>\n"))
	return nil
}

// showLoginError answers an error with the login page, which shows what went wrong.
func (g *Group) showLoginError(x *kernel.Exchange, status int) {
	g.answerLoginError(x, status, "", false)
}

// answerLoginError is showLoginError for who wants to go to next. flowEnded: the cookie of the sign-in has to be removed.
func (g *Group) answerLoginError(x *kernel.Exchange, status int, next string, flowEnded bool) {
	if flowEnded {
		_, secure := x.Kernel.ClientOf(x.Request)
		setFlowCookie(x, "", -1, secure)
	}
	x.SendPage(status, valuePolicy, g.loginPage(x, next, status))
}
