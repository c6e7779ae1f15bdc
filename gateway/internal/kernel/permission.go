package kernel

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"troupe/actors/audit"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
)

// Whether a caller may use a route is decided here, by credential and privilege. What depends on a parameter is decided in
// its handler (template/{kind}, explain, fields). What the caller may do with an instance, its definition says (actors).

func (x *Exchange) authenticate() error {
	kinds := x.Route.Access.Kinds
	if kinds == 0 && !x.Route.Access.SignIn {
		return nil
	}
	if (x.Route.Privilege == identity.Workflows || x.Route.Operator) && x.isOperator() {
		x.Kind, x.Caller = identity.Token, Operator
		return nil
	}
	presented, err := parse.ReadCredentials(x.Request.Header, x.Kernel.Options.SessionCookie)
	if err != nil {
		return err
	}
	if kinds == 0 { // a credential is not looked up here, but must not be ambiguous
		return x.checkOrigin()
	}
	switch x.Kind, x.Credential, err = presented.Pick(kinds); {
	case err == nil:
	case kinds&identity.Token == 0 || !presented.None() || !x.isCertified():
		return err
	default:
		x.Kind = identity.Certificate
	}
	// NB: this comes before the session is looked up: a look-up counts as use, and
	// another site must not keep a session alive.
	if x.isAmbient() {
		if err := x.checkOrigin(); err != nil {
			return err
		}
	}
	accepted := x.Kind
	if x.Route.Access.ending {
		accepted |= identity.Ending
	}
	if x.Caller, err = x.Identify(accepted); err != nil {
		return err
	}
	if x.Connection != nil {
		x.Connection.MarkAuthenticated()
	}
	if p := x.Route.Privilege; p != "" && !x.Caller.Has(p) && (x.Route.OrPrivilege == "" || !x.Caller.Has(x.Route.OrPrivilege)) {
		if x.Route.OrPrivilege != "" {
			p += " or " + x.Route.OrPrivilege
		}
		x.Services.Audit.Refuse(string(x.Caller.ID), audit.AccessRefuse, x.Route.Name)
		return failure.Needs(p)
	}
	return nil
}

// checkOrigin refuses requests that a page of another site makes with the browser's cookie.
func (x *Exchange) checkOrigin() error {
	r := x.Request
	if x.Route.Strict { // the check lets safe methods pass
		r = r.WithContext(r.Context())
		r.Method = http.MethodPost
	}
	if err := x.Kernel.crossOrigin.Check(r); err != nil {
		return errCrossOrigin
	}
	return nil
}

// Identify returns whose the credential of the request is. Of a request that another node has
// forwarded, that node has looked it up: it may not be known here yet.
func (x *Exchange) Identify(kind identity.Kind) (*identity.Principal, error) {
	if from := x.Sender; from != nil {
		return x.Services.Credentials.Principal(from.User, from.Roles)
	}
	if x.Kind == identity.Certificate {
		user, _ := x.Kernel.Options.TLS.User(x.Request.TLS)
		return x.Services.Credentials.Principal(identity.UserID(user), nil)
	}
	return x.Services.Credentials.Authenticate(kind, x.Credential)
}

// isCertified reports whether the caller has shown a certificate. That of a trusted proxy is not its callers'.
func (x *Exchange) isCertified() bool {
	r := x.Request
	if x.Sender != nil || x.Kernel.Options.TLS == nil {
		return false
	}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || x.Kernel.IsTrusted(peer.Addr().Unmap().WithZone("")) {
		return false
	}
	_, shown := x.Kernel.Options.TLS.User(r.TLS)
	return shown
}

// Reauthorize is called for each event: a stream must not outlive its credential. It also ends when the caller's rights
// have changed, because the filter was checked with them; clients reconnect and are then checked with the new rights.
func (x *Exchange) Reauthorize() (*identity.Principal, error) {
	if x.Caller == Operator {
		return Operator, nil // who has shown no credential loses none
	}
	now, err := x.Identify(x.Kind)
	if err != nil {
		return nil, err
	}
	if now != x.Caller && !sameRights(now, x.Caller) {
		return nil, ErrWatchOver
	}
	return now, nil
}

func sameRights(a, b *identity.Principal) bool {
	return a.ID == b.ID && slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Privileges, b.Privileges)
}

// Operator is who runs the service on its own machine, and shows no credential. Anyone who can open the socket can change the
// home's files, so there is no more to give than mod-admin.
var Operator = &identity.Principal{
	// NB: in order, as Has needs them.
	ID: statemachine.System, Privileges: []string{string(identity.Admin), string(identity.Jobs), string(identity.Workflows)},
}

type operatorKey struct{}

// AsOperator makes a request one of the operator.
func AsOperator(r *http.Request) *http.Request {
	return r.Clone(context.WithValue(r.Context(), operatorKey{}, true))
}

// isOperator reports whether the request is one of the operator, here or at the node that forwarded it.
func (x *Exchange) isOperator() bool {
	if x.Sender != nil {
		return x.Sender.Operator
	}
	return x.Request.Context().Value(operatorKey{}) != nil
}

// ClientOf returns the address of the client and whether the client used TLS. The headers of proxies count only when
// the connection comes from a trusted one (Options.TrustedProxies); from any other peer they are ignored. The address
// is zero when it is unknown.
func (s *Kernel) ClientOf(r *http.Request) (address netip.Addr, secure bool) {
	if from := senderOf(r); from != nil {
		return from.Client, from.Secure
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, r.TLS != nil
	}
	address = peer.Addr().Unmap().WithZone("")
	if !s.IsTrusted(address) {
		return address, r.TLS != nil
	}
	return s.forwardedFor(address, r.Header["X-Forwarded-For"]), r.TLS != nil || isForwardedTLS(r.Header["X-Forwarded-Proto"])
}

// warnUntrustedProxy logs once that a request has X-Forwarded-For while no proxy is
// trusted: if it comes from a proxy, all callers behind it count as one.
func (s *Kernel) warnUntrustedProxy(r *http.Request) {
	if len(s.Options.TrustedProxies) > 0 || len(r.Header["X-Forwarded-For"]) == 0 || senderOf(r) != nil || !s.warnedUntrustedProxy.CompareAndSwap(false, true) {
		return
	}
	s.Options.Log.Warn().Str("peer", r.RemoteAddr).
		Msg("X-Forwarded-For from an untrusted peer was ignored: if the peer is your proxy, add it to trustedProxies; until then all callers behind it count as one address")
}

// IsTrusted reports whether an address is that of a trusted proxy.
func (s *Kernel) IsTrusted(address netip.Addr) bool {
	return slices.ContainsFunc(s.Options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// forwardedFor walks the addresses in X-Forwarded-For from the last, which the nearest proxy appended, to the first one
// that is not trusted. That one is the client; the caller could have forged what stands before it. At an element that
// cannot be parsed the walk ends, and the proxy that wrote it is the result.
func (s *Kernel) forwardedFor(proxy netip.Addr, lines []string) netip.Addr {
	client := proxy
	for _, line := range slices.Backward(lines) {
		for line != "" {
			var element string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, element = line[:comma], line[comma+1:]
			} else {
				line, element = "", line
			}
			address, ok := ParseForwarded(parse.TrimBlanks(element))
			if !ok {
				return client
			}
			if client = address; !s.IsTrusted(client) {
				return client
			}
		}
	}
	return client
}

// ParseForwarded parses an element of X-Forwarded-For. Some proxies add a port.
func ParseForwarded(element string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(element, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(element)
		if err != nil {
			return netip.Addr{}, false
		}
		address = withPort.Addr()
	}
	return address.Unmap().WithZone(""), true
}

// isForwardedTLS reports whether any proxy says that it was reached by TLS. When proxies disagree, the answer is yes:
// at worst a browser then does not send the cookie over plain HTTP.
func isForwardedTLS(lines []string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if parse.EqualASCII(parse.TrimBlanks(element), "https") {
				return true
			}
		}
	}
	return false
}
