package login

import (
	"net/url"
	"strings"
)

// DestinationBytesMax bounds the address to go to.
const DestinationBytesMax = 2048

// Destination returns where a browser goes after signing in: to requested, when that is
// a path of this server below base, with its query and fragment; otherwise to the
// root of base, "/" or "/platform/". An address of another server is never used,
// however it is written: a link to our login page must not lead elsewhere (an open
// redirect). The login page itself is not used either.
func Destination(base, requested string) string {
	root := base + "/"
	if len(requested) > DestinationBytesMax || !isPlainASCII(requested) {
		return root
	}
	// NB: a browser takes "//x" and "/\x" for the name of a server, and so it
	// does with "/<tab>/x"; isPlain has refused the last two.
	if !strings.HasPrefix(requested, "/") || strings.HasPrefix(requested, "//") {
		return root
	}
	u, err := url.Parse(requested)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || hasDotSegments(u.Path) {
		return root
	}
	if u.Path != base && !strings.HasPrefix(u.Path, root) || u.Path == base+"/login" || strings.HasPrefix(u.Path, base+"/login/") {
		return root
	}
	return requested
}

// isPlainASCII reports whether s has only visible ASCII characters and no backslash,
// as every valid URL has (RFC 3986).
func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// hasDotSegments reports whether a decoded path has a segment "." or "..", with which
// a browser would go to another path than the one that was checked. It is also true
// for a doubled slash and a backslash; no path of the server has one.
func hasDotSegments(path string) bool {
	if strings.Contains(path, "//") || strings.Contains(path, `\`) {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
