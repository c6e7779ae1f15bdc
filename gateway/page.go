package gateway

import (
	"net/http"

	"troupe/gateway/console"
)

// showPage answers GET / and the page of each form. Both are the same shell,
// which holds nothing about anybody: what it shows it asks for by itself. So it
// needs no credential, and whether there is such a form it does not know.
func showPage(x *exchange) error {
	shell := console.Shell(x.server.options.BasePath)
	x.setPageHeaders(valueConsolePolicy)
	return x.sendCached(shell, console.Tag(shell), valueHTML, valueShellCache)
}

// showAsset answers GET /assets/{name}.
func showAsset(x *exchange) error {
	name := x.params.ByName("name")
	body, contentType, ok := console.Asset(name)
	if !ok {
		return errNotFound
	}
	// The name changes with the content, so it says what the content is.
	return x.sendCached(body, `"`+name+`"`, []string{contentType}, valueAssetCache)
}

// sendCached answers with a file of the program's own that a browser may keep, or
// with 304 when it has it.
func (x *exchange) sendCached(body []byte, tag string, contentType, cache []string) error {
	x.w.Header()["Etag"] = []string{tag}
	x.contentType, x.cacheControl = contentType, cache
	if hasTag(x.r.Header["If-None-Match"], tag) {
		x.sendHeader(http.StatusNotModified, 0)
		return nil
	}
	x.sendHeader(http.StatusOK, len(body))
	_, _ = x.w.Write(body) // NB: an error means that the caller has gone
	return nil
}

// hasTag reports whether If-None-Match names the tag (RFC 9110, 13.1.2, whose
// comparison is the weak one).
func hasTag(lines []string, tag string) bool {
	for _, rest := range lines {
		if trimBlanks(rest) == "*" {
			return true
		}
		for {
			given, _, after, ok := cutEntityTag(trimBlanks(rest))
			if !ok {
				break
			}
			if `"`+given+`"` == tag {
				return true
			}
			if after = trimBlanks(after); after == "" || after[0] != ',' {
				break
			}
			rest = after[1:]
		}
	}
	return false
}

var (
	valueConsolePolicy = []string{console.Policy}
	valueShellCache    = []string{console.ShellCache}
	valueAssetCache    = []string{console.AssetCache}
)
