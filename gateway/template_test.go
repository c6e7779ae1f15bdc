package gateway

import (
	"context"
	"fmt"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/template"
)

// fakeTemplates answers by the path.
type fakeTemplates struct{}

func (fakeTemplates) Parameters(_ context.Context, _ *identity.Principal, _ template.Kind, path string) ([]template.Param, error) {
	switch path {
	case "/bad.rml":
		return nil, fmt.Errorf("parameters: %w", failure.Refuse(failure.ErrUnprocessable, "line 3"))
	case "/locked.rml":
		return nil, failure.Refuse(failure.ErrUnprocessable, "with a password")
	case "/bomb.rml":
		return nil, failure.Refuse(failure.ErrTooLarge, "more than 10 parts")
	case "/large.rml":
		return nil, fmt.Errorf("open: %w", repository.TooLarge(10))
	case "/busy.rml":
		return nil, failure.ErrBusy
	case "/nowhere.rml":
		return nil, fmt.Errorf("open %q: %w", path, failure.ErrNotFound)
	}
	return []template.Param{}, nil
}

// TestParametersErrors holds gateway/INTERFACE.md, "What is not a template", and the
// words of its errors.
func TestParametersErrors(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/bad.rml", 422, `{"error":"Unprocessable","message":"line 3"}`},
		{"/locked.rml", 422, `{"error":"Unprocessable","message":"with a password"}`},
		{"/bomb.rml", 413, `{"error":"TooLarge","message":"more than 10 parts"}`},
		{"/large.rml", 413, `{"error":"TooLarge","message":"the file is too large"}`},
		{"/busy.rml", 503, `{"error":"Busy","message":"too much is asked at once; nothing was done, try again later"}`},
		{"/nowhere.rml", 404, `{"error":"NotFound","message":"there is nothing here, or nothing that you may see"}`},
	} {
		if a := s.do(t, get("/rml-engine/api/v1/parameters?rml="+c.path)); a.status != c.status || a.body != c.body {
			t.Errorf("%s: got %d %s, want %d %s", c.path, a.status, a.body, c.status, c.body)
		}
	}
}
