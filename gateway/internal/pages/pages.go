// Package pages has the pages of the console and their files, the page of an error, and the description of
// the interface. None of them says anything about anybody.
package pages

import (
	"slices"
	"strings"
	"sync"

	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/gateway/console"
	"troupe/gateway/errorpage"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
	"troupe/gateway/reference"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	description *Description
	shells      map[console.Page]*kernel.StaticFile
}

// New returns the pages of a server whose paths begin with basePath.
func New(basePath string, d *Description) *Group {
	return &Group{description: d, shells: newShells(basePath)}
}

// Routes are the pages and their files, and the description of the interface.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{Access: kernel.Public}
	row := base.Row
	base.IgnoresQuery = true
	page := base.Row
	return []kernel.Route{
		page("portal", "GET", "/", g.showPage),
		page("form-page", "GET", "/form-runtime/:formId/:workflowId/:instanceId/index.html", g.showPage),
		page("instance-page", "GET", "/instances/:workflowId/:instanceId", g.showPage),
		page("operations-page", "GET", "/operations", g.showPage),
		row("asset", "GET", "/assets/:name", showAsset),
		row("openapi-yaml", "GET", "/openapi.yaml", func(x *kernel.Exchange) error { return g.description.text().Send(x) }),
		row("openapi-json", "GET", "/openapi.json", func(x *kernel.Exchange) error { return g.description.JSON().Send(x) }),
		row("schema", "GET", "/schemas/:file", showSchema),
		row("docs", "GET", "/docs", g.showInterface),
	}
}

// showPage answers GET / and the page of each form and instance, and of operations. Their HTML does not mention
// anybody; its script requests the data. So it needs no credential, and it is sent also for what does not exist.
func (g *Group) showPage(x *kernel.Exchange) error {
	x.SetPageHeaders(valueConsolePolicy)
	return g.shells[pageOf(x.Route.Path)].Send(x)
}

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

func showAsset(x *kernel.Exchange) error {
	asset, ok := assets()[x.Params.ByName("name")]
	if !ok {
		return failure.ErrNotFound
	}
	return asset.Send(x)
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

// ShowError answers an error with an HTML page (gateway/INTERFACE.md, "Pages for people"): the request
// accepts HTML, and its path is not one of the API, which always answers with JSON. It reports whether it did.
func ShowError(x *kernel.Exchange, status int, id string) bool {
	if !errorpage.Has(status) || !parse.AcceptsHTML(x.Request.Header["Accept"]) || isAPI(x) {
		return false
	}
	x.Vary |= kernel.VaryAccept
	page := errorpage.Page(errorpage.Options{Base: x.Kernel.Options.BasePath, Status: status, ID: id, Language: login.Speak(x.Languages())})
	x.SendPage(status, valueErrorPagePolicy, page)
	return true
}

func isAPI(x *kernel.Exchange) bool {
	path, hasBase := strings.CutPrefix(x.Request.URL.Path, x.Kernel.Options.BasePath)
	return hasBase && slices.ContainsFunc(kernel.APIPaths, func(p string) bool {
		rest, found := strings.CutPrefix(path, p)
		return found && (rest == "" || rest[0] == '/')
	})
}

var valueErrorPagePolicy = []string{errorpage.Policy}

// Description is the description of the interface in its three forms. They are made at the first request for one,
// because most commands of the program never serve one.
type Description struct{ text, JSON, Page func() *kernel.StaticFile }

// NewDescription makes the forms of openapi.yaml.
func NewDescription(yaml []byte) *Description {
	return &Description{
		text: sync.OnceValue(func() *kernel.StaticFile { return describing(yaml, valueYAML) }),
		JSON: sync.OnceValue(func() *kernel.StaticFile {
			return describing(described(yaml, (*reference.Document).JSON), kernel.ValueJSON)
		}),
		Page: sync.OnceValue(func() *kernel.StaticFile {
			return describing(described(yaml, (*reference.Document).Page), kernel.ValueHTML)
		}),
	}
}

func describing(body []byte, contentType []string) *kernel.StaticFile {
	return kernel.NewStaticFile(body, contentType, valueShellCache, console.Tag(body))
}

func described(yaml []byte, into func(*reference.Document) ([]byte, error)) []byte {
	d, err := reference.Parse(yaml)
	if err != nil {
		panic("gateway: " + err.Error()) // tests hold that it can be read
	}
	body, err := into(d)
	if err != nil {
		panic("gateway: " + err.Error())
	}
	return body
}

func (g *Group) showInterface(x *kernel.Exchange) error {
	x.SetPageHeaders(valueReferencePolicy)
	return g.description.Page().Send(x)
}

var (
	valueYAML            = []string{"application/yaml"}
	valueReferencePolicy = []string{reference.Policy}
)

// schemaFiles are the JSON Schemas of a home's text files by name. The first call makes them, because
// most commands of the program never serve one.
var schemaFiles = sync.OnceValue(func() map[string]*kernel.StaticFile {
	all := map[string]*kernel.StaticFile{}
	for _, s := range home.Schemas() {
		body := []byte(s.Text)
		all[s.File()] = kernel.NewStaticFile(body, valueSchema, valueShellCache, console.Tag(body))
	}
	return all
})

func showSchema(x *kernel.Exchange) error {
	schema, ok := schemaFiles()[x.Params.ByName("file")]
	if !ok {
		return failure.ErrNotFound
	}
	return schema.Send(x)
}

var valueSchema = []string{"application/schema+json"}
