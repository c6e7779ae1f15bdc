package gateway

import (
	"net/http"
	"sync"

	"troupe/gateway/console"
)

// showPage answers GET / and the page of each form. Both are the same shell,
// which holds nothing about anybody: what it shows it asks for by itself. So it
// needs no credential, and whether there is such a form it does not know.
func showPage(x *exchange) error {
	x.setPageHeaders(valueConsolePolicy)
	return x.sendStatic(x.server.shell)
}

// newShell makes the shell of a server whose paths hang below basePath.
func newShell(basePath string) *static {
	shell := console.Shell(basePath)
	return newStatic(shell, valueHTML, valueShellCache, console.Tag(shell))
}

// showAsset answers GET /assets/{name}.
func showAsset(x *exchange) error {
	asset, ok := assets()[x.params.ByName("name")]
	if !ok {
		return errNotFound
	}
	return x.sendStatic(asset)
}

// assets returns the files that the shell asks for, by name. It reads them at the
// first call, because most commands of the program never serve one.
var assets = sync.OnceValue(newAssets)

func newAssets() map[string]*static {
	all := map[string]*static{}
	for _, name := range console.AssetNames() {
		body, contentType, _ := console.Asset(name)
		// The name changes with the content, so it says what the content is.
		all[name] = newStatic(body, []string{contentType}, valueAssetCache, `"`+name+`"`)
	}
	return all
}

// sendStatic answers with a file of the program's own, or with 304 when the browser
// has it.
func (x *exchange) sendStatic(f *static) error {
	body, tag, h := f.body, f.tag, x.w.Header()
	if packed := f.packed(); packed != nil {
		x.varyEncoding = true
		if takesGzip(x.r.Header["Accept-Encoding"]) {
			body, tag = packed, packedTag(tag)
			h["Content-Encoding"] = valueGzip
		}
	}
	x.contentType, x.cacheControl = f.contentType, f.cache
	if f.tag != "" {
		h["Etag"] = []string{tag}
		if hasTag(x.r.Header["If-None-Match"], tag) {
			delete(h, "Content-Encoding")
			x.sendHeader(http.StatusNotModified, 0)
			return nil
		}
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
