package files

import (
	"net/http"

	"troupe/actors/identity"
	"troupe/actors/template"
	"troupe/gateway/internal/kernel"
)

// Routes are groups C and D.
func (g *Group) Routes() []kernel.Route {
	return []kernel.Route{
		{
			Name: "report-parameters", Method: http.MethodGet, Path: "/rml-engine/api/v1/parameters",
			Group: kernel.GroupFile, Access: kernel.SignedIn(identity.Token | identity.Session), Query: []string{"rml"}, Handle: g.listParameters(template.Report),
		},
		{
			Name: "document-parameters", Method: http.MethodGet, Path: "/docx-engine/api/v1/parameters",
			Group: kernel.GroupFile, Access: kernel.SignedIn(identity.Token | identity.Session), Query: []string{"docx"}, Handle: g.listParameters(template.Document),
		},
		{
			Name: "list-files", Method: http.MethodGet, Path: "/repository/api/v1/list-files",
			Group: kernel.GroupFile, Access: kernel.SignedIn(identity.Token | identity.Session), Query: []string{"extension"}, Handle: g.listFiles,
		},
	}
}
