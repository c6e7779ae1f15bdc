package gateway

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/template"
	"troupe/gateway/api"
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
func listParameters(kind template.Kind) func(*exchange) error {
	return func(x *exchange) error {
		if x.services.Templates == nil {
			return failure.ErrNotFound
		}
		path := x.query.Get(kind.String())
		if path == "" {
			return parse.Malformed("the query parameter %q is missing", kind)
		}
		params, err := x.services.Templates.Parameters(x.r.Context(), x.caller, kind, path)
		if err != nil {
			return err
		}
		out := []api.Parameter{}
		for _, p := range params {
			out = append(out, api.Parameter(p))
		}
		return x.answerJSON(out)
	}
}
