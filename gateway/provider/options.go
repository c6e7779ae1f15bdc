// Package provider signs people in through an OpenID Connect provider: the authorization code flow with PKCE.
//
//	GET /login/oidc ──► Begin: where to send the browser, and a sealed cookie with state, nonce and PKCE verifier
//	  the provider asks the person
//	GET /login/oidc/callback ──► Finish: cookie and state fit ─► code for tokens
//	                       ─► signature, issuer, audience, times, nonce ─► Person
//
// A Person is what the provider says: a login name and roles. Whether there is such a user, the caller decides. Hand the
// cookie of Begin to the browser, HttpOnly and for ten minutes, and remove it whatever Finish says. A sign-in ends in the
// browser and within the ten minutes in which it began, or not at all; nothing else is kept. At most 16 at a time ask
// the provider, others get ErrBusy. No secret, code or token is in an error or in the log. A Client is safe for
// concurrent use.
package provider

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/statemachine"
)

// Options says which provider is asked and what its claims mean. Issuer and ClientID must be set.
type Options struct {
	// Issuer is the provider's URL, below which its discovery document is. It must be https, or be on this machine.
	Issuer string
	// ClientID and ClientSecret are this service's credentials at the provider. Without a
	// secret we are a public client, which PKCE protects.
	ClientID, ClientSecret string
	// Name is the provider's name on the login page. Empty is the issuer's host.
	Name string
	// RedirectURL is the callback's address as the provider has it. Empty: what the caller gives to Begin.
	RedirectURL string
	// Scopes beyond openid. Nil is profile and email.
	Scopes []string
	// LoginClaim is the claim that holds the login name. Empty is
	// preferred_username. Of email, only verified ones count.
	LoginClaim string
	// LoginDomain is set when the claim is like john.doe@example.com: the domain must
	// be this one, and is removed. Empty: the claim is the login name.
	LoginDomain string
	// RolesClaim is the claim that holds a text or a list of texts, which Roles turns into roles; "realm_access.roles"
	// is a member of a claim. Empty: the provider gives no roles.
	RolesClaim string
	Roles      map[string][]identity.RoleID // the roles that a value of RolesClaim stands for

	// Key returns the 32 bytes with which sign-ins on their way are sealed; it is called for each. Nodes of a cluster
	// share them. Nil: random ones of this process. An error becomes ErrUnavailable.
	Key func() ([]byte, error)
	// Clock tells the time. Nil is time.Now.
	Clock func() time.Time
	Log   zerolog.Logger
}

// rolesMax bounds the roles that the provider can give; identity takes no more.
const rolesMax = 32

// EnsureDefaults fills in what is empty.
func (o *Options) EnsureDefaults() {
	if u, err := url.Parse(o.Issuer); o.Name == "" && err == nil {
		o.Name = u.Hostname()
	}
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email"}
	}
	o.LoginClaim = cmp.Or(o.LoginClaim, "preferred_username")
	if o.Key == nil {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // crypto/rand never returns an error; it ends the program
		o.Key = func() ([]byte, error) { return key, nil }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

func (o *Options) validate() error {
	var problems []string
	require := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	require(isSecureURL(o.Issuer), "the issuer %q must be an address such as https://login.example.com, without query; http is for this machine only", o.Issuer)
	require(o.ClientID != "", "clientId is missing")
	require(o.RedirectURL == "" || isSecureURL(o.RedirectURL), "the redirect address %q must be an address such as https://flows.example.com/login/oidc/callback", o.RedirectURL)
	require(o.RolesClaim != "" || len(o.Roles) == 0, "roles are set, but rolesClaim is not")
	distinct := map[identity.RoleID]bool{}
	for _, value := range slices.Sorted(maps.Keys(o.Roles)) {
		for _, role := range o.Roles[value] {
			distinct[role] = true
			require(statemachine.IsIdentifier(string(role)), "%q, for the value %q, is not a valid role id", role, value)
		}
	}
	require(len(distinct) <= rolesMax, "the values map to %d roles, but the most is %d", len(distinct), rolesMax)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// isSecureURL reports whether an address is https or on this machine, without user, query and fragment.
func isSecureURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(address, "?") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

var (
	// ErrFlow is what Finish answers when the request does not belong to a
	// sign-in that this browser has begun, or comes too late.
	ErrFlow = failure.Refuse(failure.ErrInvalid, "the sign-in was not started in this browser, or has expired")
	// ErrRefused is what Finish answers when the provider has refused the sign-in, or its answer is not valid.
	ErrRefused = failure.Errorf(failure.ErrUnauthorized, "not confirmed by the identity provider")
	// ErrBusy is what Begin and Finish answer when too many sign-ins wait for the provider.
	ErrBusy = failure.Errorf(failure.ErrBusy, "too many sign-ins wait for the identity provider")
	// ErrUnavailable is what Begin and Finish answer when the provider cannot be
	// reached, or does not accept our client id. The log has the cause.
	ErrUnavailable = failure.Errorf(failure.ErrUnavailable, "the identity provider is not available")
)
