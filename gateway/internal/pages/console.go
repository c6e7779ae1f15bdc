package pages

import (
	"strings"
	"sync"

	"troupe/actors/failure"
	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
)

// showPage answers GET / and the page of each form and instance, and of operations. Their HTML says nothing
// about anybody; its script requests the data. So it needs no credential, and it is sent
// also for what does not exist.
func (g *Group) showPage(x *kernel.Exchange) error {
	x.SetPageHeaders(valueConsolePolicy)
	return x.SendStatic(g.shells[pageOf(x.Route.Path)])
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
func newShells(basePath string) map[console.Page]*kernel.StaticFile {
	all := map[console.Page]*kernel.StaticFile{}
	for _, page := range []console.Page{console.PageWork, console.PageForm, console.PageInstance, console.PageOperations} {
		shell := console.Shell(basePath, page)
		all[page] = kernel.NewStaticFile(shell, kernel.ValueHTML, valueShellCache, console.Tag(shell))
	}
	return all
}

// showAsset answers GET /assets/{name}.
func showAsset(x *kernel.Exchange) error {
	asset, ok := assets()[x.Params.ByName("name")]
	if !ok {
		return failure.ErrNotFound
	}
	return x.SendStatic(asset)
}

// assets returns the files of the console by name. The first call makes them, because
// most commands of the program never serve one.
var assets = sync.OnceValue(newAssets)

func newAssets() map[string]*kernel.StaticFile {
	all := map[string]*kernel.StaticFile{}
	for _, name := range console.AssetNames() {
		body, contentType, _ := console.Asset(name)
		// The name changes with the content, so it is a good entity tag.
		asset := kernel.NewStaticFile(body, []string{contentType}, valueAssetCache, `"`+name+`"`)
		if len(body) >= kernel.GzipPageBytesMin {
			asset.Brotli = new(kernel.BrotliForm)
		}
		all[name] = asset
	}
	return all
}

var (
	valueConsolePolicy = []string{console.Policy}
	valueShellCache    = []string{console.ShellCache}
	valueAssetCache    = []string{console.AssetCache}
)
