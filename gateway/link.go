package gateway

import (
	"net"
	"net/netip"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/parse"
)

// Links signs people in who have a link; login.Links does.
type Links interface {
	// Take spends a link. False: nobody made it, it was used, or its time is over.
	Take(secret string) (identity.UserID, bool)
}

// signInByLink begins a session for whom a link names. A link works only on the machine of the
// server; otherwise it is not spent, and the answer is that of a link which nobody made.
func (x *exchange) signInByLink(link string, from netip.Addr) (string, *identity.Principal, error) {
	if x.services.Links == nil || !x.isLocal() {
		return "", nil, failure.ErrUnauthorized
	}
	if err := x.services.Sessions.Writable(); err != nil {
		return "", nil, err // NB: before the link is spent
	}
	user, ok := x.services.Links.Take(link)
	if !ok {
		return "", nil, failure.ErrUnauthorized
	}
	return x.services.Sessions.SignInVouched(x.r.Context(), identity.Vouched{User: user, Address: from, How: "signed in by a link"})
}

// forwardingHeaders are those of proxies: behind one the caller may be anywhere.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// isLocal reports whether the request comes from this machine to a port that no other machine
// reaches, under a name of this machine: a page of another site whose name was made to lead here
// (DNS rebinding) has its own name in Host.
func (x *exchange) isLocal() bool {
	if x.sender != nil || slices.ContainsFunc(forwardingHeaders, func(name string) bool { return x.r.Header[name] != nil }) {
		return false
	}
	peer, err := netip.ParseAddrPort(x.r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !IsLoopback(x.server.Addr()) {
		return false
	}
	host, _, err := net.SplitHostPort(x.r.Host)
	if err != nil {
		host = x.r.Host // without a port
	}
	if parse.EqualASCII(host, "localhost") {
		return true
	}
	address, ok := parseForwarded(host)
	return ok && address.IsLoopback()
}

// IsLoopback reports whether no other machine can reach a listener's address.
func IsLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
