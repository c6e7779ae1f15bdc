package kernel

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"troupe/gateway/internal/parse"
)

// ClientOf returns the address of the client and whether the client used TLS. The
// headers of proxies count only when the connection comes from a trusted one
// (Options.TrustedProxies); from any other peer they are ignored. The address is
// zero when it is unknown.
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

// forwardedFor walks the addresses in X-Forwarded-For from the last, which the
// nearest proxy appended, to the first one that is not trusted. That one is the
// client; the caller could have forged what stands before it. At an element that
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

// isForwardedTLS reports whether any proxy says that it was reached by TLS. When
// proxies disagree, the answer is yes: at worst a browser then does not send the
// cookie over plain HTTP.
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
