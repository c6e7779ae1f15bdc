package gateway

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
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
func listFiles(x *exchange) error {
	if x.services.Repository == nil {
		return failure.ErrNotFound
	}
	list := x.beginList()
	return list.end(x.services.Repository.List(x.r.Context(), x.caller, x.query.Get("extension"), func(path string) error {
		list.beforeElement()
		x.out = data.AppendString(x.out, path)
		return list.afterElement()
	}))
}
