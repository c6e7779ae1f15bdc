package gateway

import (
	"strings"
	"testing"
)

// TestOrderOfChecks holds gateway/INTERFACE.md, "Order of checks": a request with
// everything wrong is answered by what stands first. Each round mends that.
func TestOrderOfChecks(t *testing.T) {
	s := startServer(t, Options{}, nil)
	cookie := func(value string) func(*request) {
		return func(r *request) { r.headers[0] = "Cookie: session=" + value }
	}
	nobody := strings.Replace(sessionOf(0), "ses_set", "ses_not", 1)
	defects := []struct {
		status int
		says   string // part of the message
		spoil  func(*request)
	}{
		{404, textNotFound, func(r *request) { r.path = "/form-portal/forms/crate" }},
		{405, "is not allowed for this path", func(r *request) { r.method = "PUT" }},
		{503, textUnavailable, func(*request) { s.draining.Store(true) }},
		{400, "two session cookies", cookie(sessionOf(0) + "; session=" + sessionOf(0))},
		{403, "other sites", func(r *request) { r.headers = append(r.headers, "Sec-Fetch-Site: cross-site") }},
		{401, textSessionNeeded, cookie(nobody)},
		{403, textForbidden, cookie(sessionOf(0))},
		{400, "unknown query parameter", func(r *request) { r.path += "?x=1" }},
		{415, "Content-Type", func(r *request) { r.headers[1] = "Content-Type: text/plain" }},
		{413, "larger than", func(r *request) { r.body += strings.Repeat(" ", 2<<20) }},
		{400, "Idempotency-Key", func(r *request) { r.headers = append(r.headers, "Idempotency-Key: ä") }},
		{400, "the body is", func(r *request) { r.body = "{" }},
		{400, `"formId" must be a string`, func(r *request) { r.body = `{"formId":1}` }},
		{404, textNotFound, func(r *request) { r.body = `{"formId":"~"}` }},
	}
	for first := range len(defects) + 1 {
		s.draining.Store(false)
		r := request{method: "POST", path: "/form-portal/forms/create", body: formBody, headers: []string{withPortal, jsonLine}}
		for i := len(defects) - 1; i >= first; i-- {
			defects[i].spoil(&r)
		}
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest(r.method, r.path, r.body, r.headers...))
		a := &answer{status: w.status, header: w.header, body: w.body.String()}
		if first == len(defects) {
			if a.status != 200 {
				t.Errorf("with nothing wrong: got %d %s", a.status, a.body)
			}
			break
		}
		if want := defects[first]; a.status != want.status || !strings.Contains(a.message(), want.says) {
			t.Errorf("defect %d: got %d %s, want %d %q", first, a.status, a.body, want.status, want.says)
		}
		if s.portal.calls() != 0 {
			t.Fatalf("defect %d: the portal was asked", first)
		}
	}
	s.draining.Store(false)
}
