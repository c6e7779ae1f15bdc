// Package console has the web pages, as bytes: who may ask for them, and under which path, the gateway decides.
//
//	web/ (TypeScript) ──.ci/console──► dist/ (committed) ──go:embed──► Shell, Asset
//
// The pages are one application; its shells differ only in the chunks that a page begins with, hold nothing about
// anybody, and may be given to anonymous callers. Answer the pages' paths with Shell, Policy and ShellCache, and
// {base}/assets/{name} with Asset and AssetCache: an asset's name changes with its content. What Asset returns is shared
// and must not be changed.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"path"
	"regexp"
)

// Policy is the Content-Security-Policy under which the pages work. They run no script and use no style but their own
// files, send requests to this server only, and cannot be framed.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'self'"

// Values of Cache-Control.
const (
	// ShellCache is for the shell: a browser asks each time, because another version of the program has other assets.
	ShellCache = "no-cache"
	// AssetCache is for assets: their names change with their content.
	AssetCache = "public, max-age=31536000, immutable"
)

// The built files, and the licences of what is in them. .ci/console -update builds
// them from web/, and .ci/console checks that they are up to date.
//
//go:embed dist
var built embed.FS

// basePlaceholder is the part of the built shell that Shell replaces by the base path.
const basePlaceholder = `<base href="/">`

// Page is a kind of page. The shells of pages differ only in what a browser is told to load with them.
type Page string

// The pages.
const (
	PageWork       Page = "work"       // the start page
	PageForm       Page = "form"       // of a form or checklist
	PageInstance   Page = "instance"   // of an instance
	PageOperations Page = "operations" // for those who run the service
)

// pageLine is a line of the built shell that is for one page only.
var pageLine = regexp.MustCompile(`(?m)^( *<link [^>]*) data-page="([a-z]+)">\n`)

var shellBefore, shellAfter = splitShell()

func splitShell() (before, behind []byte) {
	whole, err := built.ReadFile("dist/index.html")
	if err != nil {
		panic("console: the shell is not in the program: " + err.Error())
	}
	before, behind, found := bytes.Cut(whole, []byte(basePlaceholder))
	if !found {
		panic("console: the shell has no " + basePlaceholder)
	}
	return before, behind
}

// Shell returns the HTML of a page, for a server with the given base path, which is
// empty or like "/platform". The bytes belong to the caller.
func Shell(basePath string, page Page) []byte {
	shell := make([]byte, 0, len(shellBefore)+len(shellAfter)+len(basePlaceholder)+len(basePath))
	shell = append(shell, shellBefore...)
	shell = append(shell, `<base href="`+html.EscapeString(basePath)+`/">`...)
	last := 0
	for _, at := range pageLine.FindAllSubmatchIndex(shellAfter, -1) {
		shell = append(shell, shellAfter[last:at[0]]...)
		if last = at[1]; Page(shellAfter[at[4]:at[5]]) == page {
			shell = append(shell, shellAfter[at[2]:at[3]]...)
			shell = append(shell, ">\n"...)
		}
	}
	return append(shell, shellAfter[last:]...)
}

// contentTypes says what an asset is. It does not depend on the machine, as the table of package mime does.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Asset returns a file that the shell, or another asset, names as assets/name, and its Content-Type. It reports false
// for every other name. The body is shared and must not be changed.
func Asset(name string) (body []byte, contentType string, ok bool) {
	contentType, known := contentTypes[path.Ext(name)]
	if !known {
		return nil, "", false
	}
	// NB: an embed.FS refuses what is no plain path, "../x" and "/x" for example.
	body, err := built.ReadFile("dist/assets/" + name)
	if err != nil {
		return nil, "", false
	}
	return body, contentType, true
}

// AssetNames returns the name of every asset.
func AssetNames() []string {
	entries, err := built.ReadDir("dist/assets")
	if err != nil {
		panic("console: there are no assets in the program: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		if _, known := contentTypes[path.Ext(e.Name())]; known {
			names = append(names, e.Name())
		}
	}
	return names
}

// Tag returns a strong entity tag of a shell, with its quotes. An asset needs none but its name.
func Tag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// Package is an npm package that is in the built pages.
type Package struct {
	Name, Version string
	License       string // an SPDX expression
}

// heading is the line that begins a package: "## react - 19.3.1 (MIT)".
var heading = regexp.MustCompile(`^## (\S+) - (\S+) \((.+)\)$`)

// Packages returns the npm packages in the pages, in the order of dist/licenses.md.
func Packages() []Package {
	var all []Package
	for line := range bytes.Lines(licenses()) {
		if found := heading.FindSubmatch(bytes.TrimSpace(line)); found != nil {
			all = append(all, Package{Name: string(found[1]), Version: string(found[2]), License: string(found[3])})
		}
	}
	return all
}

func licenses() []byte {
	text, err := built.ReadFile("dist/licenses.md")
	if err != nil {
		panic("console: the licences are not in the program: " + err.Error())
	}
	return text
}
