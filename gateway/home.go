package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/document"
)

// Homes is what publishing homes needs. Errors are those of package failure; that of a home with
// faults is failure.ErrInvalid and wraps document.Faults.
type Homes interface {
	// PublishHome checks a packed home as one set and makes it what is in use in the whole
	// cluster. dryRun only checks it.
	PublishHome(ctx context.Context, caller *identity.Principal, archive []byte, dryRun bool) (api.PublishedHome, error)
}

// publishHome answers PUT admin/api/v1/home.
func publishHome(x *exchange) error {
	if x.services.Homes == nil {
		return failure.Refuse(failure.ErrConflict, "%s", api.NotANode)
	}
	dryRun, err := parse.Flag(x.query, "dryRun")
	if err != nil {
		return err
	}
	published, err := x.services.Homes.PublishHome(x.r.Context(), x.caller, x.body, dryRun)
	if err != nil {
		return x.answerFaults(err)
	}
	return x.answerJSON(published)
}

// answerFaults answers with the faults of text files that an error has. Any other error is
// returned.
func (x *exchange) answerFaults(err error) error {
	var faults document.Faults
	f := mappingOf(err)
	if !errors.As(err, &faults) || f.status != http.StatusBadRequest {
		return err
	}
	body := api.Fault{Error: f.labels[x.route.group], Message: f.message(err, "")}
	for _, fault := range faults {
		body.Faults = append(body.Faults, api.FileFault(fault))
	}
	if x.out, err = json.Marshal(body); err != nil {
		return err
	}
	setErrorHeaders(x.w.Header(), f)
	x.send(f.status)
	return nil
}
