package gateway

import (
	"net/http"
	"strings"
	"sync"

	"troupe/actors/failure"
	"troupe/gateway/console"
	"troupe/gateway/internal/parse"
)

// showPage answers GET / and the page of each form and instance, and of operations. Their HTML says nothing
// about anybody; its script requests the data. So it needs no credential, and it is sent
// also for what does not exist.
func showPage(x *exchange) error {
	x.setPageHeaders(valueConsolePolicy)
	return x.sendStatic(x.server.shells[pageOf(x.route.path)])
}

// pageOf returns the page at the path of a route.
func pageOf(path string) console.Page {
	switch {
	case strings.HasPrefix(path, "/form-runtime/"):
		return console.PageForm
	case strings.HasPrefix(path, "/instances/"):
		return console.PageInstance
	case strings.HasPrefix(path, "/operations"):
		return console.PageOperations
	}
	return console.PageWork
}

// newShells makes the HTML of each page for a server whose paths begin with basePath.
func newShells(basePath string) map[console.Page]*staticFile {
	all := map[console.Page]*staticFile{}
	for _, page := range []console.Page{console.PageWork, console.PageForm, console.PageInstance, console.PageOperations} {
		shell := console.Shell(basePath, page)
		all[page] = newStaticFile(shell, valueHTML, valueShellCache, console.Tag(shell))
	}
	return all
}

// showAsset answers GET /assets/{name}.
func showAsset(x *exchange) error {
	asset, ok := assets()[x.params.ByName("name")]
	if !ok {
		return failure.ErrNotFound
	}
	return x.sendStatic(asset)
}

// assets returns the files of the console by name. The first call makes them, because
// most commands of the program never serve one.
var assets = sync.OnceValue(newAssets)

func newAssets() map[string]*staticFile {
	all := map[string]*staticFile{}
	for _, name := range console.AssetNames() {
		body, contentType, _ := console.Asset(name)
		// The name changes with the content, so it is a good entity tag.
		asset := newStaticFile(body, []string{contentType}, valueAssetCache, `"`+name+`"`)
		if len(body) >= gzipPageBytesMin {
			asset.brotli = new(brotliForm)
		}
		all[name] = asset
	}
	return all
}

// sendStatic answers with a static file, or with 304 when the browser has it.
func (x *exchange) sendStatic(f *staticFile) error {
	body, tag, h := f.body, f.tag, x.w.Header()
	if compressed := f.gzipped(); compressed != nil {
		x.varyEncoding = true
		var smaller []byte
		if parse.PrefersBrotli(x.r.Header["Accept-Encoding"]) {
			smaller = x.server.brotlied(f)
		}
		switch {
		case len(smaller) > 0:
			body, tag = smaller, formTag(tag, brotliSuffix)
			h["Content-Encoding"] = valueBrotli
		case parse.AcceptsGzip(x.r.Header["Accept-Encoding"]):
			body, tag = compressed, gzipTag(tag)
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
		if parse.TrimBlanks(rest) == "*" {
			return true
		}
		for {
			given, _, after, ok := parse.CutEntityTag(parse.TrimBlanks(rest))
			if !ok {
				break
			}
			if `"`+given+`"` == tag {
				return true
			}
			if after = parse.TrimBlanks(after); after == "" || after[0] != ',' {
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
