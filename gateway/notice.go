package gateway

import (
	"net/http"
	"slices"
	"strings"

	"troupe/gateway/notice"
)

// wantsPage reports whether an error is answered with a page: a person asks, and not
// below the paths of an interface, which always speak JSON.
func (s *Server) wantsPage(r *http.Request, status int) bool {
	return notice.Has(status) && namesHTML(r.Header["Accept"]) && !s.isInterface(r.URL.Path)
}

// isInterface reports whether a path is one of groups A to D or below them.
func (s *Server) isInterface(path string) bool {
	path, below := strings.CutPrefix(path, s.options.BasePath)
	return below && slices.ContainsFunc(interfacePaths, func(p string) bool {
		rest, found := strings.CutPrefix(path, p)
		return found && (rest == "" || rest[0] == '/')
	})
}

// answerNotice is answerFault for a person, outside of the groups
// (gateway/INTERFACE.md, "Pages for people").
func (x *exchange) answerNotice(f *fault, id string) {
	x.varyAccept = true
	page := notice.Page(notice.Options{Base: x.server.options.BasePath, Status: f.status, ID: id})
	x.sendPage(f.status, valueNoticePolicy, page)
}

var valueNoticePolicy = []string{notice.Policy}
