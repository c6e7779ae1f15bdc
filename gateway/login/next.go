package login

import (
	"net/url"
	"strings"
)

// nextBytesMax bounds an address to go to.
const nextBytesMax = 2048

// Next returns where a browser goes after signing in: to what was asked for,
// when that is a path of this server below base, with its query and fragment;
// otherwise to the root of base, "/" or "/platform/". What leads to another
// server, whatever its disguise, is not followed, because a link to us would
// lend it our name. Nor is what leads back to the login page.
func Next(base, asked string) string {
	root := base + "/"
	if len(asked) > nextBytesMax || !isPlain(asked) {
		return root
	}
	// NB: a browser takes "//x" and "/\x" for the name of a server, and so it
	// does with "/<tab>/x"; isPlain has refused the last two.
	if !strings.HasPrefix(asked, "/") || strings.HasPrefix(asked, "//") {
		return root
	}
	u, err := url.Parse(asked)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || hasDots(u.Path) {
		return root
	}
	if u.Path != base && !strings.HasPrefix(u.Path, root) || u.Path == base+"/login" || strings.HasPrefix(u.Path, base+"/login/") {
		return root
	}
	return asked
}

// isPlain reports whether s has only visible ASCII characters and no backslash,
// as every address has that is written as RFC 3986 says.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// hasDots reports whether a path, decoded, climbs: a browser would resolve it to
// another path than the one that was looked at. A doubled slash or a backslash
// that was escaped is refused with it; no path of ours has one.
func hasDots(path string) bool {
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
