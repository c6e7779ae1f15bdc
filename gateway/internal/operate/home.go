package operate

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// Homes is what publishing homes needs. Errors are those of package failure; that of a home with
// faults is failure.ErrInvalid and wraps document.Faults.
type Homes interface {
	// PublishHome checks a packed home as one set and makes it what is in use in the whole
	// cluster. dryRun only checks it.
	PublishHome(ctx context.Context, caller *identity.Principal, archive []byte, dryRun bool) (api.PublishedHome, error)
}

// publishHome answers PUT admin/api/v1/home.
func (g *Group) publishHome(x *kernel.Exchange) error {
	if g.Homes == nil {
		return failure.Refuse(failure.ErrConflict, "%s", api.NotANode)
	}
	dryRun, err := parse.Flag(x.Query, "dryRun")
	if err != nil {
		return err
	}
	published, err := g.Homes.PublishHome(x.Request.Context(), x.Caller, x.Body, dryRun)
	if err != nil {
		return x.AnswerFaults(err)
	}
	return x.AnswerJSON(published)
}
