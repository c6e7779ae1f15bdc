package provider

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/rs/zerolog"
	"golang.org/x/oauth2"

	"troupe/actors/identity"
)

const (
	requestTimeMax   = 10 * time.Second // for one response of the provider
	finishTimeMax    = 20 * time.Second // for all of them together
	responseBytesMax = 1 << 20          // of one response
	requestsMax      = 16               // sign-ins that wait for the provider at a time
	loggedBytesMax   = 64               // of a text of the provider in the log
	clocksApartMax   = time.Minute      // of the nodes on which a sign-in begins and ends
)

// Client is the relying party. Use New.
type Client struct {
	options Options
	http    *http.Client
	slots   chan struct{} // one entry for each sign-in that waits for the provider
	// beginMax and finishMax bound a begin and a finish; tests have more time.
	beginMax, finishMax time.Duration

	mu         sync.Mutex
	discovered *discovery // nil until the discovery document was read
}

type discovery struct {
	provider    *oidc.Provider
	verifier    *oidc.IDTokenVerifier
	endpoint    oauth2.Endpoint
	sendsIssuer bool // every callback names its issuer (RFC 9207)
}

// Start is a sign-in that has begun.
type Start struct {
	Location string // the provider's page, where the browser goes
	Cookie   string // what the browser brings back: at least 43 of A-Z a-z 0-9 - and _, for FlowMax
}

// Person is who the provider says has signed in.
type Person struct {
	User  identity.UserID
	Roles []identity.RoleID
	// Next is what Begin was given. Finish returns it with an error, too, when the sign-in was begun in this browser.
	Next string
}

// New checks the options. It does not contact the provider.
func New(o Options) (*Client, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("identity provider: %w", err)
	}
	return &Client{
		options: o, slots: make(chan struct{}, requestsMax), beginMax: requestTimeMax, finishMax: finishTimeMax,
		http: &http.Client{
			Transport:     limitedTransport{newTransport()},
			Timeout:       requestTimeMax,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Name is the provider's name on the login page.
func (c *Client) Name() string { return c.options.Name }

// Close closes the idle connections to the provider. It has no error.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: requestTimeMax / 2}).DialContext,
		TLSHandshakeTimeout: requestTimeMax / 2,
		MaxConnsPerHost:     requestsMax,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
	}
}

// limitedTransport reads at most responseBytesMax of a response.
type limitedTransport struct{ *http.Transport }

func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, responseBytesMax), answer.Body}
	}
	return answer, err
}

// Begin begins a sign-in. next is where the person wants to go; redirect is the address of the callback, unless
// Options.RedirectURL says it. Errors: ErrBusy, ErrUnavailable.
func (c *Client) Begin(ctx context.Context, next, redirect string) (Start, error) {
	leave, err := c.acquireSlot()
	if err != nil {
		return Start{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), c.beginMax)
	defer cancel()
	k, err := c.discover(ctx)
	if err != nil {
		return Start{}, err
	}
	if c.options.RedirectURL != "" {
		redirect = c.options.RedirectURL
	}
	f := &flow{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Redirect: redirect, Next: next, Begun: c.options.Clock().UnixMilli(),
	}
	s, err := c.sealer()
	if err != nil {
		return Start{}, err
	}
	cookie, err := s.seal(f)
	if err != nil {
		return Start{}, fmt.Errorf("begin a sign-in: %w", err)
	}
	location := c.config(k, redirect).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	return Start{Location: location, Cookie: cookie}, nil
}

// sealer is that of the present key. The error is ErrUnavailable when there is none.
func (c *Client) sealer() (sealer, error) {
	key, err := c.options.Key()
	var s sealer
	if err == nil {
		s, err = newSealer(key)
	}
	if err != nil {
		return sealer{}, fmt.Errorf("%w: the key of sign-ins: %w", ErrUnavailable, err)
	}
	return s, nil
}

func (c *Client) config(k *discovery, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: c.options.ClientID, ClientSecret: c.options.ClientSecret, Endpoint: k.endpoint,
		RedirectURL: redirect, Scopes: append([]string{oidc.ScopeOpenID}, c.options.Scopes...),
	}
}

// acquireSlot takes one of the slots, or answers ErrBusy.
func (c *Client) acquireSlot() (leave func(), err error) {
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	default:
		return nil, ErrBusy
	}
}

// discover reads the provider's discovery document, once.
func (c *Client) discover(ctx context.Context) (*discovery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovered != nil {
		return c.discovered, nil
	}
	p, err := oidc.NewProvider(ctx, c.options.Issuer)
	var more struct {
		Methods      []string `json:"token_endpoint_auth_methods_supported"`
		AlwaysIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err == nil {
		err = p.Claims(&more)
	}
	if err != nil {
		return nil, c.unavailable("discovery", err)
	}
	k := &discovery{provider: p, endpoint: p.Endpoint(), sendsIssuer: more.AlwaysIssuer}
	// NB: without a style the library tries both, and a code is valid only once.
	k.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if c.options.ClientSecret == "" || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		k.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	for _, address := range []string{k.endpoint.AuthURL, k.endpoint.TokenURL} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" && !isSecureURL(u.Scheme+"://"+u.Host) {
			return nil, c.unavailable("discovery", errors.New("an endpoint of the provider is neither https nor on this machine"))
		}
	}
	k.verifier = p.Verifier(&oidc.Config{ClientID: c.options.ClientID, Now: c.options.Clock})
	c.discovered = k
	return k, nil
}

// Finish ends a sign-in with what the browser brings back: the cookie of Begin, empty for none, and the parameters of
// the callback, of which each stands there once. Errors are wrapped: ErrFlow, ErrRefused, ErrBusy, ErrUnavailable.
func (c *Client) Finish(ctx context.Context, cookie string, query url.Values) (Person, error) {
	f, err := c.openFlow(cookie, query)
	if err != nil {
		return Person{}, err
	}
	unknown := Person{Next: f.Next}
	leave, err := c.acquireSlot()
	if err != nil {
		return unknown, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), c.finishMax)
	defer cancel()
	k, err := c.discover(ctx)
	if err != nil {
		return unknown, err
	}
	if err := c.checkCallback(k, query); err != nil {
		return unknown, err
	}
	token, err := c.exchange(ctx, k, f, query.Get("code"))
	if err != nil {
		return unknown, err
	}
	said, err := c.claims(ctx, k, f, token)
	if err != nil {
		return unknown, err
	}
	user, err := said.user(c.options.LoginClaim, c.options.LoginDomain)
	if err != nil {
		return unknown, c.refused("the login name", err)
	}
	return Person{User: user, Roles: said.roles(c.options.RolesClaim, c.options.Roles), Next: f.Next}, nil
}

// openFlow returns the flow in the cookie, if the request belongs to it.
func (c *Client) openFlow(cookie string, query url.Values) (*flow, error) {
	s, err := c.sealer()
	if err != nil {
		return nil, err
	}
	f, ok := s.open(cookie)
	if !ok {
		return nil, fmt.Errorf("%w: the cookie is missing or sealed with another key", ErrFlow)
	}
	if age := c.options.Clock().Sub(time.UnixMilli(f.Begun)); age < -clocksApartMax || age >= FlowMax {
		return nil, fmt.Errorf("%w: it began %v ago", ErrFlow, age.Round(time.Second))
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(f.State)) != 1 {
		return nil, fmt.Errorf("%w: the state differs", ErrFlow)
	}
	return f, nil
}

// checkCallback checks the parameters that the provider has added to the callback.
func (c *Client) checkCallback(k *discovery, query url.Values) error {
	if query.Has("iss") || k.sendsIssuer {
		if query.Get("iss") != c.options.Issuer { // another provider's answer (RFC 9207)
			return c.refused("the callback", errors.New("it is from another issuer"))
		}
	}
	if query.Has("error") {
		return c.refused("the callback", errors.New(logText(query.Get("error"))))
	}
	if query.Get("code") == "" {
		return c.refused("the callback", errors.New("it has no code"))
	}
	return nil
}

// exchange exchanges the code for tokens.
func (c *Client) exchange(ctx context.Context, k *discovery, f *flow, code string) (*oauth2.Token, error) {
	token, err := c.config(k, f.Redirect).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	var answer *oauth2.RetrieveError
	switch {
	case err == nil:
		return token, nil
	case errors.As(err, &answer) && answer.ErrorCode == "invalid_grant": // used, expired or invalid
		return nil, c.refused("the code", errors.New(answer.ErrorCode))
	case errors.As(err, &answer):
		return nil, c.unavailable("tokens", fmt.Errorf("status %d, %s, %s", answer.Response.StatusCode, answer.ErrorCode, answer.ErrorDescription))
	}
	return nil, c.unavailable("tokens", err)
}

// claims checks the ID token and returns its claims, with those of the user info endpoint when a needed one is missing.
func (c *Client) claims(ctx context.Context, k *discovery, f *flow, token *oauth2.Token) (claims, error) {
	raw, _ := token.Extra("id_token").(string)
	id, err := k.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, c.refused("the ID token", err)
	}
	said := claims{}
	if err := id.Claims(&said); err != nil {
		return nil, c.refused("the ID token", err)
	}
	party, named := said["azp"]
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1:
		return nil, c.refused("the ID token", errors.New("it is from another sign-in"))
	case id.Subject == "":
		return nil, c.refused("the ID token", errors.New("it has no subject"))
	case named && party != c.options.ClientID || !named && len(id.Audience) > 1:
		return nil, c.refused("the ID token", errors.New("it is for another party"))
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return nil, c.refused("the access token", errors.New("it does not belong to the ID token"))
	}
	return said, c.addUserInfo(ctx, k, id.Subject, token, said)
}

// addUserInfo gets needed claims that the ID token does not have.
func (c *Client) addUserInfo(ctx context.Context, k *discovery, subject string, token *oauth2.Token, said claims) error {
	missing, needed := false, []string{c.options.LoginClaim, c.options.RolesClaim}
	if c.options.LoginClaim == "email" {
		needed = append(needed, "email_verified")
	}
	for _, name := range needed {
		_, there := said.find(name)
		missing = missing || name != "" && !there
	}
	if !missing || k.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := k.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return c.unavailable("user info", err)
	}
	if info.Subject != subject { // OpenID Connect Core 5.3.2
		return c.refused("the user info", errors.New("it is about another subject"))
	}
	more := claims{}
	if err := info.Claims(&more); err != nil {
		return c.refused("the user info", err)
	}
	// NB: email_verified is about the address beside it, which may be another one than the signed one.
	if signed, there := said["email"]; there {
		if email, other := more["email"]; other && email != signed {
			delete(more, "email_verified")
		}
	}
	for name, value := range more {
		if _, there := said[name]; !there { // the signed claim wins
			said[name] = value
		}
	}
	return nil
}

// refused logs why a sign-in is refused. NB: the library's errors say what is wrong
// with a token, and do not contain it.
func (c *Client) refused(what string, cause error) error {
	c.options.Log.Info().Str("what", what).Str("reason", logText(cause.Error())).Msg("sign-in through the identity provider refused")
	return fmt.Errorf("%w: %s", ErrRefused, what)
}

func (c *Client) unavailable(what string, cause error) error {
	// NB: for an unexpected response, the library's error contains the whole body.
	var address *url.Error
	if errors.As(cause, &address) {
		cause = address.Err
	}
	level := zerolog.ErrorLevel
	if errors.Is(cause, context.Canceled) { // the caller has gone
		level = zerolog.InfoLevel
	}
	c.options.Log.WithLevel(level).Str("issuer", c.options.Issuer).Str("what", what).Str("reason", logText(cause.Error())).
		Msg("identity provider not available")
	return fmt.Errorf("%w: %s", ErrUnavailable, what)
}

// logText returns a text from outside as it may be logged: escaped and clipped.
func logText(text string) string {
	cut := len(text) > 4*loggedBytesMax
	if cut {
		text = text[:4*loggedBytesMax]
	}
	quoted, _ := json.Marshal(text)
	if cut {
		return string(quoted[1:len(quoted)-1]) + "…"
	}
	return string(quoted[1 : len(quoted)-1])
}
