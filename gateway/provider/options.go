package provider

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/identity"
	"troupe/statemachine"
)

// Options says which provider is asked and what its claims mean. Issuer and
// ClientID must be set.
type Options struct {
	// Issuer is the provider's name, an address whose discovery document says the
	// rest. It must be https, but for the machine itself.
	Issuer string
	// ClientID and ClientSecret are what the provider knows us by. Without a
	// secret we are a public client, which PKCE protects.
	ClientID, ClientSecret string
	// Name is what people know the provider by. Empty is the issuer's host.
	Name string
	// RedirectURL is the callback's address as the provider has it. Empty: what
	// the caller gives to Begin.
	RedirectURL string
	// Scopes beyond openid. Nil is profile and email.
	Scopes []string
	// LoginClaim is the claim that holds the login name. Empty is
	// preferred_username. Of email, only verified ones count.
	LoginClaim string
	// LoginDomain is set when the claim is like john.doe@example.com: it must be
	// of this domain, which is then taken off. Empty: the claim is the name.
	LoginDomain string
	// RolesClaim is the claim that holds a text or a list of texts, which Roles
	// turns into roles; "realm_access.roles" is a member of a claim. Empty: the
	// provider gives no roles.
	RolesClaim string
	// Roles are the roles that a value of RolesClaim stands for.
	Roles map[string][]identity.RoleID

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
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// validate returns everything that is wrong.
func (o *Options) validate() error {
	var faults []error
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	demand(isServer(o.Issuer), "the issuer %q must be an address such as https://login.example.com, without query; http is for this machine only", o.Issuer)
	demand(o.ClientID != "", "the client id is missing")
	demand(o.RedirectURL == "" || isServer(o.RedirectURL), "the redirect address %q must be an address such as https://flows.example.com/login/oidc/callback", o.RedirectURL)
	demand(o.RolesClaim != "" || len(o.Roles) == 0, "there are roles, but no claim that they could come from")
	distinct := map[identity.RoleID]bool{}
	for _, value := range slices.Sorted(maps.Keys(o.Roles)) {
		for _, role := range o.Roles[value] {
			distinct[role] = true
			demand(statemachine.IsIdentifier(string(role)), "%q, for the value %q, cannot be a role", role, value)
		}
	}
	demand(len(distinct) <= rolesMax, "the values stand for %d roles, but %d are the most", len(distinct), rolesMax)
	return errors.Join(faults...)
}

// isServer reports whether what is sent to an address can be trusted to arrive
// there: by TLS, or on this machine.
func isServer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(address, "?") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}
