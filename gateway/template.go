package gateway

import (
	"context"
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/template"
	"troupe/statemachine/data"
)

// Templates is what group C needs; template.Service does it.
type Templates interface {
	// Parameters returns what a template declares, read as the caller. Errors are
	// those of packages template, repository and workflow, wrapped.
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
			return malformed("the query parameter %q is missing", kind)
		}
		params, err := x.services.Templates.Parameters(x.r.Context(), x.caller, kind, path)
		if err != nil {
			return err
		}
		x.out = append(x.out, '[')
		for i, p := range params {
			if i > 0 {
				x.out = append(x.out, ',')
			}
			x.out = append(x.out, `{"name":`...)
			x.out = data.AppendString(x.out, p.Name)
			x.out = append(x.out, `,"type":`...)
			x.out = data.AppendString(x.out, p.Type)
			x.out = append(x.out, `,"defaultValue":`...)
			x.out = data.AppendString(x.out, p.Default)
			x.out = append(x.out, '}')
		}
		x.out = append(x.out, ']')
		x.send(http.StatusOK)
		return nil
	}
}
