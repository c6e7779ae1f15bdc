// Package session has the routes that sign people in and out: with a password, with a link, and through an
// identity provider, and the page for it.
package session

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
	"troupe/gateway/provider"
	"troupe/statemachine/data"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	// Sessions signs people in and out.
	Sessions Sessions
	// Links signs people in who have a link. Nil: there are none.
	Links Links
	// Provider signs people in through an identity provider. Nil: there is none.
	Provider Provider
	Addr     func() net.Addr // the address that the server listens on
}

// Routes sign people in and out.
func (g *Group) Routes() []kernel.Route {
	signIn := kernel.Route{Access: kernel.SigningIn, Secret: true}
	provider := signIn
	provider.ErrorPage, provider.Strict = g.showLoginError, true
	callback := kernel.Route{Access: kernel.Public, Secret: true, ErrorPage: g.showLoginError, AnyQuery: true, Once: true} // it spends the provider's code
	public := kernel.Route{Access: kernel.Public}.Row
	return []kernel.Route{
		signIn.Row("sign-in", "POST", "/session", g.signIn),
		kernel.Route{Access: kernel.SignedIn(identity.Session), Secret: true}.Row("session", "GET", "/session", sendCaller),
		kernel.Route{Access: kernel.SigningOut, Secret: true}.Row("sign-out", "DELETE", "/session", g.signOut),
		public("login", "GET", "/login", g.showLogin, "next"),
		provider.Row("login-provider", "GET", "/login/oidc", g.beginProvider, "next"),
		callback.Row("login-callback", "GET", callbackPath, g.finishProvider),
		public("favicon", "GET", "/favicon.ico", icon.Send), // browsers request it on their own,
		public("login-style", "GET", "/login/style.css", loginStyle.Send),
		public("login-script", "GET", "/login/script.js", loginScript.Send),
	}
}

// Sessions begins and ends sessions of people; identity.Service does.
type Sessions interface {
	// Writable returns failure.ErrNotLeader where the calls below would: another node has to be asked.
	Writable() error
	// SignIn returns the secret text of a new session. Errors are those of package failure.
	SignIn(ctx context.Context, user identity.UserID, password string, address netip.Addr) (string, *identity.Principal, error)
	// SignOut ends the session of a secret text. It returns when that is durable, or with failure.ErrOutcomeUnknown
	// when the store does not confirm it; it can then be called again.
	SignOut(ctx context.Context, session string) error
	// SignInVouched is SignIn for a person whom the identity provider, or a link, has authenticated.
	SignInVouched(ctx context.Context, v identity.Vouched) (string, *identity.Principal, error)
}

// signIn answers POST /session. A session in the request is not looked up. It ends when the new one has begun.
func (g *Group) signIn(x *kernel.Exchange) error {
	body, err := parse.Body(x.Body)
	if err != nil {
		return err
	}
	asked, err := parseSignIn(body)
	if err != nil {
		return err
	}
	from, secure := x.Kernel.ClientOf(x.Request)
	var session string
	var caller *identity.Principal
	if asked.link != "" {
		session, caller, err = g.signInByLink(x, asked.link, from)
	} else {
		session, caller, err = g.Sessions.SignIn(x.Request.Context(), identity.UserID(asked.user), asked.password, from)
	}
	if err != nil {
		return err
	}
	if err := g.startSession(x, session, caller, secure); err != nil {
		return err
	}
	return sendCaller(x)
}

// startSession gives the browser its new session and ends the one that it had, so that no session from before the
// sign-in goes on (session fixation). When that cannot be ended, nobody gets the new one.
func (g *Group) startSession(x *kernel.Exchange, session string, caller *identity.Principal, secure bool) error {
	s := x.Kernel
	if old, _, err := parse.Session(x.Request.Header["Cookie"], s.Options.SessionCookie); err == nil && old != "" {
		// NB: most old sessions are unknown or over. Nobody may forward the request after an error:
		// the sign-in has happened.
		if err := g.Sessions.SignOut(x.Request.Context(), old); err != nil && !errors.Is(err, failure.ErrUnauthorized) {
			return failure.Errorf(failure.ErrUnavailable, "end the session from before: %w", err)
		}
	}
	x.Caller = caller
	if x.Connection != nil {
		x.Connection.MarkAuthenticated()
	}
	setCookie(x, session, 0, secure)
	return nil
}

func (g *Group) signOut(x *kernel.Exchange) error {
	if err := g.Sessions.SignOut(x.Request.Context(), x.Credential); err != nil {
		return err
	}
	_, secure := x.Kernel.ClientOf(x.Request)
	setCookie(x, "", -1, secure)
	x.Out = append(x.Out, `{}`...)
	x.Send(http.StatusOK)
	return nil
}

func sendCaller(x *kernel.Exchange) error {
	x.Out = append(x.Out, `{"user":`...)
	x.Out = data.AppendString(x.Out, string(x.Caller.ID))
	x.Out = append(x.Out, `,"name":`...)
	x.Out = data.AppendString(x.Out, x.Caller.Name)
	x.Out = append(x.Out, `,"roles":`...)
	x.Out = appendStrings(x.Out, x.Caller.Roles)
	x.Out = append(x.Out, `,"privileges":`...)
	x.Out = appendStrings(x.Out, x.Caller.Privileges)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
	return nil
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = data.AppendString(dst, s)
	}
	return append(dst, ']')
}

// setCookie sets the session cookie (gateway/INTERFACE.md, "The session cookie"). It has no Domain, so no other host
// gets it, and no expiry: the server knows when a session ends. A negative maxAge removes it.
func setCookie(x *kernel.Exchange, value string, maxAge int, secure bool) {
	cookie := http.Cookie{
		Name: x.Kernel.Options.SessionCookie, Value: value, Path: x.Kernel.Options.BasePath, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	if cookie.Path == "" {
		cookie.Path = "/"
	}
	h := x.Writer.Header()
	h["Set-Cookie"] = append(h["Set-Cookie"], cookie.String())
}

type signInRequest struct{ user, password, link string }

var signInShape = parse.NewShape("",
	parse.Field{Name: "user", Kind: data.String}, parse.Field{Name: "password", Kind: data.String},
	parse.Field{Name: "link", Kind: data.String, Check: func(v data.Value) error {
		if v.Text() == "" {
			return parse.Malformed("%q is empty", "link")
		}
		return nil
	}},
)

// parseSignIn reads the body of POST /session. Errors are failure.ErrInvalid and never repeat a value. It does not
// check the form of user, password and link: the answer must be the same as for wrong ones.
func parseSignIn(body data.Value) (signInRequest, error) {
	var members [3]data.Value
	if err := signInShape.Read(body, members[:]); err != nil {
		return signInRequest{}, err
	}
	user, password, link := members[0], members[1], members[2]
	switch {
	case link != nil && (user != nil || password != nil):
		return signInRequest{}, parse.Malformed("%q cannot be combined with other members", "link")
	case link != nil:
	case user == nil:
		return signInRequest{}, parse.MissingMember("user")
	case password == nil:
		return signInRequest{}, parse.MissingMember("password")
	}
	return signInRequest{user.Text(), password.Text(), link.Text()}, nil
}

func (g *Group) showLogin(x *kernel.Exchange) error {
	x.SendPage(http.StatusOK, valuePolicy, g.loginPage(x, x.Query.Get("next"), 0))
	return nil
}

// loginPage makes the login page in the reader's language. failed is the status of a sign-in
// through the provider, 0 when there was none.
func (g *Group) loginPage(x *kernel.Exchange, next string, failed int) []byte {
	o := login.Options{Base: x.Kernel.Options.BasePath, Next: next, Failed: failed, Language: login.Speak(x.Languages())}
	if x.IsOpen() && g.Provider != nil {
		o.Provider = g.Provider.Name()
	}
	return login.Page(o)
}

var (
	loginStyle  = kernel.NewStaticFile(login.Style(), valueCSS, nil, "")
	loginScript = kernel.NewStaticFile(login.Script(), valueScript, nil, "")
	icon        = kernel.NewStaticFile(login.Icon(), valueIcon, valueIconCache, console.Tag(login.Icon()))
)

// Values of headers of the page, shared and never changed.
var (
	valueCSS       = []string{"text/css; charset=utf-8"}
	valueScript    = []string{"text/javascript; charset=utf-8"}
	valueIcon      = []string{"image/vnd.microsoft.icon"}
	valueIconCache = []string{"public, max-age=86400"}
	valuePolicy    = []string{login.Policy}
)

// Links signs people in who have a link; login.Links does.
type Links interface {
	// Take spends a link. False: nobody made it, it was used, or its time is over.
	Take(secret string) (identity.UserID, bool)
}

// signInByLink begins a session for whom a link names. A link works only on the machine of the
// server; otherwise it is not spent, and the answer is that of a link which nobody made.
func (g *Group) signInByLink(x *kernel.Exchange, link string, from netip.Addr) (string, *identity.Principal, error) {
	if g.Links == nil || !g.isLocal(x) {
		return "", nil, errLink
	}
	if err := g.Sessions.Writable(); err != nil {
		return "", nil, err // NB: before the link is spent
	}
	user, ok := g.Links.Take(link)
	if !ok {
		return "", nil, errLink
	}
	return g.Sessions.SignInVouched(x.Request.Context(), identity.Vouched{User: user, Address: from, How: "signed in by a link"})
}

// errLink says the same of every link, so that nobody learns which there are.
var errLink = failure.Refuse(failure.ErrUnauthorized, "the link does not work: it was used, its ten minutes are over, or this is not the server's own machine; sign in with a password")

// forwardingHeaders are those of proxies: behind one the caller may be anywhere.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// isLocal reports whether the request comes from this machine to a port that no other machine reaches, under a name of
// this machine: a page of another site whose name was made to lead here (DNS rebinding) has its own name in Host.
func (g *Group) isLocal(x *kernel.Exchange) bool {
	if x.Sender != nil || slices.ContainsFunc(forwardingHeaders, func(name string) bool { return x.Request.Header[name] != nil }) {
		return false
	}
	peer, err := netip.ParseAddrPort(x.Request.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !IsLoopback(g.Addr()) {
		return false
	}
	host, _, err := net.SplitHostPort(x.Request.Host)
	if err != nil {
		host = x.Request.Host // without a port
	}
	if parse.EqualASCII(host, "localhost") {
		return true
	}
	address, ok := kernel.ParseForwarded(host)
	return ok && address.IsLoopback()
}

// IsLoopback reports whether no other machine can reach a listener's address.
func IsLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

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
	if g.Provider == nil {
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
