package session

import (
	"net"
	"net/netip"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
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
		return "", nil, failure.ErrUnauthorized
	}
	if err := g.Sessions.Writable(); err != nil {
		return "", nil, err // NB: before the link is spent
	}
	user, ok := g.Links.Take(link)
	if !ok {
		return "", nil, failure.ErrUnauthorized
	}
	return g.Sessions.SignInVouched(x.Request.Context(), identity.Vouched{User: user, Address: from, How: "signed in by a link"})
}

// forwardingHeaders are those of proxies: behind one the caller may be anywhere.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// isLocal reports whether the request comes from this machine to a port that no other machine
// reaches, under a name of this machine: a page of another site whose name was made to lead here
// (DNS rebinding) has its own name in Host.
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
