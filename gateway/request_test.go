package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
		got := h.Values(name)
		assert.Equal(t, value, strings.Join(got, "\n"), "%s: %s: got %q", what, name, got)
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
		assert.True(t, slices.Contains(fine, full.Status) && head.Status == full.Status && head.Body == "", "%v %v %v %v", rt.Path, head.Status, head.Body, full.Status)
		checkHeaders(t, rt.Path, head.Header, map[string]string{
			"Content-Length": full.Header.Get("Content-Length"), "Etag": full.Header.Get("Etag"), "Content-Type": full.Header.Get("Content-Type"),
		})
	}
}
