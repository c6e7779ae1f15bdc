package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/template"
)

// fakeTemplates answers by the path.
type fakeTemplates struct{}

func (fakeTemplates) Parameters(_ context.Context, caller *identity.Principal, kind template.Kind, path string) ([]template.Param, error) {
	switch path {
	case "/a.rml", "/a.docx":
		return []template.Param{{Name: "from", Type: "date", Default: ""}, {Name: string(caller.ID), Type: kind.String(), Default: "\"<&\n"}}, nil
	case "/none.rml":
		return []template.Param{}, nil
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
	}
	return nil, fmt.Errorf("open %q: %w", path, failure.ErrNotFound)
}

// TestParameters holds gateway/INTERFACE.md, "The path of a template",
// gateway/INTERFACE.md, "What is not a template", and the words of their errors.
func TestParameters(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const notFound = `{"error":"NotFound","message":"there is nothing here, or nothing that you may see"}`
	for _, c := range []struct {
		target string
		status int
		body   string
	}{
		{"/rml-engine/api/v1/parameters?rml=/a.rml", 200, `[{"name":"from","type":"date","defaultValue":""},{"name":"ann","type":"rml","defaultValue":"\"<&\n"}]`},
		{"/docx-engine/api/v1/parameters?docx=%2Fa.docx", 200, `[{"name":"from","type":"date","defaultValue":""},{"name":"ann","type":"docx","defaultValue":"\"<&\n"}]`},
		{"/rml-engine/api/v1/parameters?rml=/none.rml", 200, `[]`},
		{"/rml-engine/api/v1/parameters?rml=/nowhere.rml", 404, notFound},
		{"/rml-engine/api/v1/parameters?rml=" + strings.Repeat("x", 5000), 404, notFound},
		{"/rml-engine/api/v1/parameters?rml=../../etc/passwd", 404, notFound},
		{"/rml-engine/api/v1/parameters?rml=/bad.rml", 422, `{"error":"Unprocessable","message":"line 3"}`},
		{"/rml-engine/api/v1/parameters?rml=/locked.rml", 422, `{"error":"Unprocessable","message":"with a password"}`},
		{"/rml-engine/api/v1/parameters?rml=/bomb.rml", 413, `{"error":"TooLarge","message":"more than 10 parts"}`},
		{"/rml-engine/api/v1/parameters?rml=/large.rml", 413, `{"error":"TooLarge","message":"the file is too large"}`},
		{"/rml-engine/api/v1/parameters?rml=/busy.rml", 503, `{"error":"Busy","message":"too much is asked at once; nothing was done, try again later"}`},
		{"/rml-engine/api/v1/parameters", 400, `{"error":"BadRequest","message":"the query parameter \"rml\" is missing"}`},
		{"/rml-engine/api/v1/parameters?rml=", 400, `{"error":"BadRequest","message":"the query parameter \"rml\" is missing"}`},
		{"/rml-engine/api/v1/parameters?docx=/a.docx", 400, `{"error":"BadRequest","message":"unknown query parameter \"docx\""}`},
		{"/docx-engine/api/v1/parameters?docx=a&docx=b", 400, `{"error":"BadRequest","message":"the query parameter \"docx\" is repeated"}`},
		{"/docx-engine/api/v1/parameters?docx=%zz", 400, `{"error":"BadRequest","message":"the query is malformed"}`},
	} {
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest("GET", c.target, "", "Authentication: svc.token "+tokenAnn))
		if got := w.body.String(); w.status != c.status || got != strings.ReplaceAll(c.body, "\n", `\n`) {
			t.Errorf("%.80s: got %d %s, want %d %s", c.target, w.status, got, c.status, c.body)
		}
	}
}
