package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// checkCommonHeaders is for what is not JSON: the harness holds the headers of the rest.
func checkCommonHeaders(t *testing.T, h http.Header, contentType string) {
	t.Helper()
	checkHeaders(t, "common headers", h, map[string]string{
		"Cache-Control": "no-store", "Vary": "Cookie, Authorization, Authentication", "X-Content-Type-Options": "nosniff", "Content-Type": contentType,
	})
}

// checkHeaders demands one line for each name, or none for "".
func checkHeaders(t *testing.T, what string, h http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := h.Values(name); strings.Join(got, "\n") != value {
			t.Errorf("%s: %s: got %q, want %q", what, name, got, value)
		}
	}
}

// TestHeadWorksWhereverGetDoes holds gateway/INTERFACE.md, "HEAD".
func TestHeadWorksWhereverGetDoes(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, rt := range s.kernel.Table {
		if rt.Method != http.MethodGet {
			continue
		}
		get := requestOf(t, &rt)
		fine := []int{200}
		if rt.ErrorPage != nil { // on the way to the provider, and back from nowhere
			fine = []int{303, 400}
		}
		full := s.do(t, get)
		head := s.do(t, request{Method: "HEAD", Path: get.Path, Headers: get.Headers})
		if !slices.Contains(fine, full.Status) || head.Status != full.Status || head.Body != "" {
			t.Errorf("%s: got %d %q, want %d without a body", rt.Path, head.Status, head.Body, full.Status)
		}
		checkHeaders(t, rt.Path, head.Header, map[string]string{
			"Content-Length": full.Header.Get("Content-Length"), "Etag": full.Header.Get("Etag"), "Content-Type": full.Header.Get("Content-Type"),
		})
	}
}
