package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientOf returns the address that a request comes from and whether its way
// began with TLS. What proxies say about both counts only when the connection
// comes from one that is trusted (Options.TrustedProxies); of anybody else the
// headers are not looked at. The address is zero when it cannot be told.
func (s *Server) clientOf(r *http.Request) (address netip.Addr, secure bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, r.TLS != nil
	}
	address = peer.Addr().Unmap().WithZone("")
	if !s.isTrusted(address) {
		return address, r.TLS != nil
	}
	return s.forwardedFor(address, r.Header["X-Forwarded-For"]), r.TLS != nil || isForwardedTLS(r.Header["X-Forwarded-Proto"])
}

// warnOfProxy tells once that somebody sends X-Forwarded-For while no proxy is
// trusted: if it is a proxy, all callers behind it count as one.
func (s *Server) warnOfProxy(r *http.Request) {
	if len(s.options.TrustedProxies) > 0 || len(r.Header["X-Forwarded-For"]) == 0 || !s.warnedOfProxy.CompareAndSwap(false, true) {
		return
	}
	s.options.Log.Warn().Str("peer", r.RemoteAddr).
		Msg("X-Forwarded-For came from a peer that is not trusted and is ignored: if a proxy of yours is there, name it in trustedProxies, because all callers behind it count as one address until then")
}

// isTrusted reports whether an address is that of a proxy of ours.
func (s *Server) isTrusted(address netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// forwardedFor goes back through the addresses that proxies have appended, from
// the newest to the first that is not trusted: that one talked to a proxy of
// ours, and what stands before it anybody could have written. An element that
// cannot be read ends the way, at the proxy that wrote it.
func (s *Server) forwardedFor(proxy netip.Addr, lines []string) netip.Addr {
	at := proxy
	for _, line := range slices.Backward(lines) {
		for line != "" {
			var element string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, element = line[:comma], line[comma+1:]
			} else {
				line, element = "", line
			}
			address, ok := parseForwarded(trimBlanks(element))
			if !ok {
				return at
			}
			if at = address; !s.isTrusted(at) {
				return at
			}
		}
	}
	return at
}

// parseForwarded reads an element of X-Forwarded-For. Some proxies add a port.
func parseForwarded(element string) (netip.Addr, bool) {
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

// isForwardedTLS reports whether a proxy says that it, or one before it, was
// reached by TLS. Where they disagree the answer is yes: the worst that can come
// of it is a cookie that a browser does not send over plain HTTP.
func isForwardedTLS(lines []string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if equalASCII(trimBlanks(element), "https") {
				return true
			}
		}
	}
	return false
}
