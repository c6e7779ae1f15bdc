package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/internal/kernel"
)

// TestOrderOfChecks holds gateway/INTERFACE.md, "Order of checks": a request with
// everything wrong is answered by what stands first. Each round mends that.
func TestOrderOfChecks(t *testing.T) {
	s := startServer(t, Options{}, nil)
	cookie := func(value string) func(*request) {
		return func(r *request) { r.Headers[0] = "Cookie: session=" + value }
	}
	nobody := strings.Replace(sessionOf(0), "ses_set", "ses_not", 1)
	defects := []struct {
		status int
		says   string // part of the message
		spoil  func(*request)
	}{
		{404, kernel.TextNotFound, func(r *request) { r.Path = "/form-portal/forms/crate" }},
		{405, "is not allowed for this path", func(r *request) { r.Method = "PUT" }},
		{503, kernel.TextUnavailable, func(*request) { s.kernel.Draining.Store(true) }},
		{400, "two session cookies", cookie(sessionOf(0) + "; session=" + sessionOf(0))},
		{403, "other sites", func(r *request) { r.Headers = append(r.Headers, "Sec-Fetch-Site: cross-site") }},
		{401, kernel.TextSessionNeeded, cookie(nobody)},
		{403, kernel.TextForbidden + ": it needs mod-form", cookie(sessionOf(0))},
		{400, "unknown query parameter", func(r *request) { r.Path += "?x=1" }},
		{415, "Content-Type", func(r *request) { r.Headers[1] = "Content-Type: text/plain" }},
		{413, "larger than", func(r *request) { r.Body += strings.Repeat(" ", 2<<20) }},
		{400, "Idempotency-Key", func(r *request) { r.Headers = append(r.Headers, "Idempotency-Key: ä") }},
		{400, "the body is", func(r *request) { r.Body = "{" }},
		{400, `"formId" must be a string`, func(r *request) { r.Body = `{"formId":1}` }},
		{404, kernel.TextNotFound, func(r *request) { r.Body = `{"formId":"~"}` }},
	}
	for first := range len(defects) + 1 {
		s.kernel.Draining.Store(false)
		r := request{Method: "POST", Path: "/form-portal/forms/create", Body: formBody, Headers: []string{withPortal, jsonLine}}
		for i := len(defects) - 1; i >= first; i-- {
			defects[i].spoil(&r)
		}
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest(r.Method, r.Path, r.Body, r.Headers...))
		a := answer{Status: w.status, Header: w.header, Body: w.body.String()}
		if first == len(defects) {
			assert.Equal(t, 200, a.Status, "with nothing wrong, %s", a.Body)
			break
		}
		want := defects[first]
		assert.True(t, a.Status == want.status && strings.Contains(a.Message(), want.says), "%v %v %v %v %v", first, a.Status, a.Body, want.status, want.says)
		require.Zero(t, s.portal.calls(), "defect %d: the portal was asked", first)
	}
	s.kernel.Draining.Store(false)
}
