package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/console"
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

// signIn answers POST /session. A session in the request is not looked up. It ends
// when the new one has begun.
func signIn(x *exchange) error {
	body, err := parse.Body(x.body)
	if err != nil {
		return err
	}
	asked, err := parseSignIn(body)
	if err != nil {
		return err
	}
	if x.services.Sessions == nil {
		return failure.ErrNotFound
	}
	from, secure := x.server.clientOf(x.r)
	var session string
	var caller *identity.Principal
	if asked.link != "" {
		session, caller, err = x.signInByLink(asked.link, from)
	} else {
		session, caller, err = x.services.Sessions.SignIn(x.r.Context(), identity.UserID(asked.user), asked.password, from)
	}
	if err != nil {
		return err
	}
	if err := x.startSession(session, caller, secure); err != nil {
		return err
	}
	return x.sendCaller()
}

// startSession gives the browser its new session and ends the one that it had, so that
// no session from before the sign-in goes on (session fixation). When that cannot be ended, nobody
// gets the new one.
func (x *exchange) startSession(session string, caller *identity.Principal, secure bool) error {
	s := x.server
	if old, _, err := parse.Session(x.r.Header["Cookie"], s.options.SessionCookie); err == nil && old != "" {
		// NB: most old sessions are unknown or over. Nobody may forward the request after an error:
		// the sign-in has happened.
		if err := x.services.Sessions.SignOut(x.r.Context(), old); err != nil && !errors.Is(err, failure.ErrUnauthorized) {
			return failure.Errorf(failure.ErrUnavailable, "end the session from before: %w", err)
		}
	}
	x.caller = caller
	if x.connection != nil {
		x.connection.MarkAuthenticated()
	}
	s.setCookie(x.w.Header(), session, 0, secure)
	return nil
}

// showSession answers GET /session.
func showSession(x *exchange) error { return x.sendCaller() }

// signOut answers DELETE /session.
func signOut(x *exchange) error {
	if x.services.Sessions == nil {
		return failure.ErrNotFound
	}
	if err := x.services.Sessions.SignOut(x.r.Context(), x.credential); err != nil {
		return err
	}
	_, secure := x.server.clientOf(x.r)
	x.server.setCookie(x.w.Header(), "", -1, secure)
	x.out = append(x.out, `{}`...)
	x.send(http.StatusOK)
	return nil
}

// sendCaller answers with the caller's user, roles and privileges.
func (x *exchange) sendCaller() error {
	x.out = append(x.out, `{"user":`...)
	x.out = data.AppendString(x.out, string(x.caller.ID))
	x.out = append(x.out, `,"name":`...)
	x.out = data.AppendString(x.out, x.caller.Name)
	x.out = append(x.out, `,"roles":`...)
	x.out = appendStrings(x.out, x.caller.Roles)
	x.out = append(x.out, `,"privileges":`...)
	x.out = appendStrings(x.out, x.caller.Privileges)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
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
func (s *Server) setCookie(h http.Header, value string, maxAge int, secure bool) {
	cookie := http.Cookie{
		Name: s.options.SessionCookie, Value: value, Path: s.options.BasePath, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	if cookie.Path == "" {
		cookie.Path = "/"
	}
	h["Set-Cookie"] = append(h["Set-Cookie"], cookie.String())
}

// signInRequest is the body of POST /session: a user with a password, or a link.
type signInRequest struct{ user, password, link string }

// parseSignIn reads the body of POST /session. Errors are failure.ErrInvalid and never
// repeat a value. It does not check the form of user, password and link: the
// answer must be the same as for wrong ones.
func parseSignIn(body data.Value) (r signInRequest, err error) {
	has := map[string]bool{}
	for key, v := range body.Members() {
		has[key] = true
		switch key {
		case "user":
			r.user, err = parse.StringMember(v, key)
		case "password":
			r.password, err = parse.StringMember(v, key)
		case "link":
			if r.link, err = parse.StringMember(v, key); err == nil && r.link == "" {
				err = parse.Malformed("%q is empty", key)
			}
		default:
			err = parse.UnknownMember("", key, "user", "password", "link")
		}
		if err != nil {
			return signInRequest{}, err
		}
	}
	switch {
	case has["link"] && len(has) > 1:
		return signInRequest{}, parse.Malformed("%q stands alone", "link")
	case has["link"]:
	case !has["user"]:
		return signInRequest{}, parse.MissingMember("user")
	case !has["password"]:
		return signInRequest{}, parse.MissingMember("password")
	}
	return r, nil
}

// showLogin answers GET /login.
func showLogin(x *exchange) error {
	x.sendPage(http.StatusOK, valuePolicy, x.loginPage(x.query.Get("next"), 0))
	return nil
}

// sendPage answers with an HTML page.
func (x *exchange) sendPage(status int, policy []string, page []byte) {
	x.setPageHeaders(policy)
	x.contentType = valueHTML
	x.out = append(x.out[:0], page...)
	x.send(status)
}

// setPageHeaders sets the security headers of an HTML page.
func (x *exchange) setPageHeaders(policy []string) {
	h := x.w.Header()
	h["Content-Security-Policy"] = policy
	h["X-Frame-Options"] = valueDeny
	h["Referrer-Policy"] = valueNoReferrer
	h["Cross-Origin-Opener-Policy"] = valueSameOrigin
}

// loginPage makes the login page in the reader's language. failed is the status of a sign-in
// through the provider, 0 when there was none.
func (x *exchange) loginPage(next string, failed int) []byte {
	o := login.Options{Base: x.server.options.BasePath, Next: next, Failed: failed, Language: login.Speak(x.languages())}
	if x.services != nil && x.services.Provider != nil {
		o.Provider = x.services.Provider.Name()
	}
	return login.Page(o)
}

// showLoginStyle and showLoginScript answer the files of the login page.
func showLoginStyle(x *exchange) error { return x.sendStatic(loginStyle) }

func showLoginScript(x *exchange) error { return x.sendStatic(loginScript) }

// showIcon answers GET /favicon.ico, for which browsers request by themselves.
func showIcon(x *exchange) error { return x.sendStatic(icon) }

var (
	loginStyle  = newStaticFile(login.Style(), valueCSS, nil, "")
	loginScript = newStaticFile(login.Script(), valueScript, nil, "")
	icon        = newStaticFile(login.Icon(), valueIcon, valueIconCache, console.Tag(login.Icon()))
)

// Values of headers of the page, shared and never changed.
var (
	valueHTML       = []string{"text/html; charset=utf-8"}
	valueCSS        = []string{"text/css; charset=utf-8"}
	valueScript     = []string{"text/javascript; charset=utf-8"}
	valueIcon       = []string{"image/vnd.microsoft.icon"}
	valueIconCache  = []string{"public, max-age=86400"}
	valuePolicy     = []string{login.Policy}
	valueDeny       = []string{"DENY"}
	valueNoReferrer = []string{"no-referrer"}
	valueSameOrigin = []string{"same-origin"}
)
