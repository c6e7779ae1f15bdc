package files

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
	"troupe/statemachine/data"
)

// Repository is what group D needs. Errors are those of package failure.
type Repository interface {
	// List calls yield with the path of each file with the extension that the
	// caller reads, in ascending order. An error of yield ends the list and is
	// returned.
	List(ctx context.Context, caller *identity.Principal, extension string, yield func(path string) error) error
}

// listFiles answers GET repository/api/v1/list-files. The list is streamed. The
// repository decides what counts as an extension; a missing one does not.
func (g *Group) listFiles(x *kernel.Exchange) error {
	if g.Repository == nil {
		return failure.ErrNotFound
	}
	list := x.BeginList()
	return list.End(g.Repository.List(x.Request.Context(), x.Caller, x.Query.Get("extension"), func(path string) error {
		list.BeforeElement()
		x.Out = data.AppendString(x.Out, path)
		return list.AfterElement()
	}))
}
