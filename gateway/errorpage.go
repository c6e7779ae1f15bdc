package gateway

import (
	"net/http"
	"slices"
	"strings"

	"troupe/gateway/errorpage"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
)

// wantsErrorPage reports whether an error is answered with an HTML page: the request
// accepts HTML, and its path is not one of the API, which always answers with JSON.
func (s *Server) wantsErrorPage(r *http.Request, status int) bool {
	return errorpage.Has(status) && parse.AcceptsHTML(r.Header["Accept"]) && !s.isAPI(r.URL.Path)
}

// isAPI reports whether a path belongs to groups A to D.
func (s *Server) isAPI(path string) bool {
	path, hasBase := strings.CutPrefix(path, s.options.BasePath)
	return hasBase && slices.ContainsFunc(apiPaths, func(p string) bool {
		rest, found := strings.CutPrefix(path, p)
		return found && (rest == "" || rest[0] == '/')
	})
}

// answerErrorPage is answerError with an HTML page, outside groups A to D
// (gateway/INTERFACE.md, "Pages for people").
func (x *exchange) answerErrorPage(f *errorMapping, id string) {
	x.varyAccept = true
	page := errorpage.Page(errorpage.Options{Base: x.server.options.BasePath, Status: f.status, ID: id, Language: login.Speak(x.languages())})
	x.sendPage(f.status, valueErrorPagePolicy, page)
}

var valueErrorPagePolicy = []string{errorpage.Policy}
