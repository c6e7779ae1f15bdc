// Package cors says which other sites' pages may call the service, in the headers that browsers ask for (Fetch, "CORS
// protocol"). It gives them no cookies and no certificates: their requests need a token.
package cors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origins are the sites, such as https://app.example.com; Any alone is all of them.
type Origins []string

// Any stands for all sites.
const Any = "*"

var (
	valueExposed = []string{"ETag, Link, Preference-Applied, Retry-After, Troupe-Leader, WWW-Authenticate"}
	valueHeaders = []string{"Accept-Language, Authentication, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer"}
	// valueMaxAge is how long a browser may remember what it may send, in seconds: two hours, the most that any does.
	valueMaxAge = []string{"7200"}
)

// Check refuses what cannot be a site.
func (o Origins) Check() error {
	for _, origin := range o {
		u, err := url.Parse(origin)
		switch {
		case origin == Any && len(o) == 1:
		case origin == Any:
			return fmt.Errorf("%s means all sites, so it must be the only one", Any)
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("%q must be a scheme and a host, such as https://app.example.com", origin)
		case origin != u.Scheme+"://"+strings.ToLower(u.Host):
			return fmt.Errorf("%q must be a scheme and a host in lower case, without a path: %s://%s", origin, u.Scheme, strings.ToLower(u.Host))
		}
	}
	return nil
}

// Allow sets the headers of an answer if the request comes from a page of one of the sites.
func (o Origins) Allow(h http.Header, r *http.Request) {
	if origin := r.Header["Origin"]; len(origin) == 1 && len(o) > 0 && (o[0] == Any || slices.Contains(o, origin[0])) {
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = valueExposed
	}
}

// Preflight sets the headers of an answer to a browser that asks what it may send to a path, which has the given methods.
// It reports false for all other requests. Allow comes before it.
func Preflight(h http.Header, r *http.Request, methods string) bool {
	if r.Method != http.MethodOptions || len(r.Header["Access-Control-Request-Method"]) != 1 || len(h["Access-Control-Allow-Origin"]) == 0 {
		return false
	}
	h["Access-Control-Allow-Methods"] = []string{methods}
	h["Access-Control-Allow-Headers"] = valueHeaders
	h["Access-Control-Max-Age"] = valueMaxAge
	return true
}
