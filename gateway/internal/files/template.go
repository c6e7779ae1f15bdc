package files

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/template"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// Templates is what group C needs; template.Service does it.
type Templates interface {
	// Parameters returns what a template declares, read as the caller. Errors are
	// those of package failure.
	Parameters(ctx context.Context, caller *identity.Principal, kind template.Kind, path string) ([]template.Param, error)
}

// listParameters answers GET {rml,docx}-engine/api/v1/parameters. The query
// parameter is called as the kind's extension.
func (g *Group) listParameters(kind template.Kind) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		if g.Templates == nil {
			return failure.ErrNotFound
		}
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
