package pages

import (
	"slices"
	"strings"

	"troupe/gateway/errorpage"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
)

// ShowError answers an error with an HTML page (gateway/INTERFACE.md, "Pages for people"): the request
// accepts HTML, and its path is not one of the API, which always answers with JSON. It reports whether it did.
func ShowError(x *kernel.Exchange, status int, id string) bool {
	if !errorpage.Has(status) || !parse.AcceptsHTML(x.Request.Header["Accept"]) || isAPI(x) {
		return false
	}
	x.VaryAccept = true
	page := errorpage.Page(errorpage.Options{Base: x.Kernel.Options.BasePath, Status: status, ID: id, Language: login.Speak(x.Languages())})
	x.SendPage(status, valueErrorPagePolicy, page)
	return true
}

// isAPI reports whether the path belongs to groups A to D.
func isAPI(x *kernel.Exchange) bool {
	path, hasBase := strings.CutPrefix(x.Request.URL.Path, x.Kernel.Options.BasePath)
	return hasBase && slices.ContainsFunc(kernel.APIPaths, func(p string) bool {
		rest, found := strings.CutPrefix(path, p)
		return found && (rest == "" || rest[0] == '/')
	})
}

var valueErrorPagePolicy = []string{errorpage.Policy}
