// Package files has the routes of groups C and D: parameters of templates, and lists of files.
package files

import (
	"context"

	"troupe/actors/identity"
	"troupe/actors/template"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Repository Repository
	Templates  Templates
}

// Routes are groups C and D.
func (g *Group) Routes() []kernel.Route {
	row := kernel.Route{Group: kernel.GroupFile, Access: kernel.SignedIn(identity.Token | identity.Session)}.Row
	return []kernel.Route{
		row("report-parameters", "GET", "/rml-engine/api/v1/parameters", g.listParameters(template.Report), "rml"),
		row("document-parameters", "GET", "/docx-engine/api/v1/parameters", g.listParameters(template.Document), "docx"),
		row("list-files", "GET", "/repository/api/v1/list-files", g.listFiles, "extension"),
	}
}

// Repository is what group D needs. Errors are those of package failure.
type Repository interface {
	// List calls yield with the path of each file with the extension that the caller reads, in ascending order. An
	// error of yield ends the list and is returned.
	List(ctx context.Context, caller *identity.Principal, extension string, yield func(path string) error) error
}

// listFiles answers GET repository/api/v1/list-files. The list is streamed. The
// repository decides what counts as an extension; a missing one does not.
func (g *Group) listFiles(x *kernel.Exchange) error {
	list := x.BeginList()
	return list.End(g.Repository.List(x.Request.Context(), x.Caller, x.Query.Get("extension"), func(path string) error {
		list.BeforeElement()
		x.Out = data.AppendString(x.Out, path)
		return list.AfterElement()
	}))
}

// Templates is what group C needs; template.Service does it.
type Templates interface {
	// Parameters returns what a template declares, read as the caller. Errors are those of package failure.
	Parameters(ctx context.Context, caller *identity.Principal, kind template.Kind, path string) ([]template.Param, error)
}

// listParameters answers GET {rml,docx}-engine/api/v1/parameters. The query
// parameter is called as the kind's extension.
func (g *Group) listParameters(kind template.Kind) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		path := x.Query.Get(kind.String())
		if path == "" {
			return parse.Malformed("the query parameter %q is missing", kind)
		}
		params, err := g.Templates.Parameters(x.Request.Context(), x.Caller, kind, path)
		if err != nil {
			return err
		}
		out := []api.Parameter{}
		for _, p := range params {
			out = append(out, api.Parameter(p))
		}
		return x.AnswerJSON(out)
	}
}
