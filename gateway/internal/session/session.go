package session

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
	"troupe/statemachine/data"
)

// Sessions begins and ends sessions of people; identity.Service does.
type Sessions interface {
	// Writable returns failure.ErrElsewhere where the calls below would: another node has to be
	// asked.
	Writable() error
	// SignIn returns the secret text of a new session. Errors are those of
	// package failure.
	SignIn(ctx context.Context, user identity.UserID, password string, address netip.Addr) (string, *identity.Principal, error)
	// SignOut ends the session of a secret text. It returns when that is durable, or
	// with failure.ErrOutcomeUnknown when the store does not confirm it; it can then be
	// called again.
	SignOut(ctx context.Context, session string) error
	// SignInVouched is SignIn for a person whom the identity provider, or a link, has
	// authenticated.
	SignInVouched(ctx context.Context, v identity.Vouched) (string, *identity.Principal, error)
}

// SignIn answers POST /session. A session in the request is not looked up. It ends
// when the new one has begun.
func (g *Group) signIn(x *kernel.Exchange) error {
	body, err := parse.Body(x.Body)
	if err != nil {
		return err
	}
	asked, err := parseSignIn(body)
	if err != nil {
		return err
	}
	if g.Sessions == nil {
		return failure.ErrNotFound
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

// startSession gives the browser its new session and ends the one that it had, so that
// no session from before the sign-in goes on (session fixation). When that cannot be ended, nobody
// gets the new one.
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

// showSession answers GET /session.
func showSession(x *kernel.Exchange) error { return sendCaller(x) }

// signOut answers DELETE /session.
func (g *Group) signOut(x *kernel.Exchange) error {
	if g.Sessions == nil {
		return failure.ErrNotFound
	}
	if err := g.Sessions.SignOut(x.Request.Context(), x.Credential); err != nil {
		return err
	}
	_, secure := x.Kernel.ClientOf(x.Request)
	setCookie(x, "", -1, secure)
	x.Out = append(x.Out, `{}`...)
	x.Send(http.StatusOK)
	return nil
}

// sendCaller answers with the caller's user, roles and privileges.
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

// setCookie sets the session cookie (gateway/INTERFACE.md, "The session cookie").
// It has no Domain, so no other host gets it, and no expiry: the server knows
// when a session ends. A negative maxAge removes it.
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

// signInRequest is the body of POST /session: a user with a password, or a link.
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

// parseSignIn reads the body of POST /session. Errors are failure.ErrInvalid and never
// repeat a value. It does not check the form of user, password and link: the
// answer must be the same as for wrong ones.
func parseSignIn(body data.Value) (signInRequest, error) {
	var members [3]data.Value
	if err := signInShape.Read(body, members[:]); err != nil {
		return signInRequest{}, err
	}
	user, password, link := members[0], members[1], members[2]
	switch {
	case link != nil && (user != nil || password != nil):
		return signInRequest{}, parse.Malformed("%q stands alone", "link")
	case link != nil:
	case user == nil:
		return signInRequest{}, parse.MissingMember("user")
	case password == nil:
		return signInRequest{}, parse.MissingMember("password")
	}
	return signInRequest{user.Text(), password.Text(), link.Text()}, nil
}

// showLogin answers GET /login.
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

// showLoginStyle and showLoginScript answer the files of the login page.
func showLoginStyle(x *kernel.Exchange) error { return x.SendStatic(loginStyle) }

func showLoginScript(x *kernel.Exchange) error { return x.SendStatic(loginScript) }

// showIcon answers GET /favicon.ico, for which browsers request by themselves.
func showIcon(x *kernel.Exchange) error { return x.SendStatic(icon) }

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
