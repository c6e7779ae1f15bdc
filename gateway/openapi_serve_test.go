package gateway

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"troupe/gateway/console"
	"troupe/gateway/reference"
)

// TestTheDocumentIsServed in three forms, to everybody, below the base path, and
// with a tag that says when it has changed.
func TestTheDocumentIsServed(t *testing.T) {
	for _, base := range []string{"", "/platform"} {
		s := startServer(t, Options{BasePath: base}, nil)
		for path, contentType := range map[string]string{"/openapi.yaml": "application/yaml", "/openapi.json": "application/json", "/docs": "text/html; charset=utf-8"} {
			a := s.do(t, request{method: "GET", path: path})
			if a.status != 200 || a.header.Get("Content-Type") != contentType || a.header.Get("Cache-Control") != console.ShellCache {
				t.Errorf("%s: got %d, %v", path, a.status, a.header)
			}
			if got, want := a.header.Get("ETag"), console.Tag([]byte(a.body)); got != want {
				t.Errorf("%s: ETag: got %s, want %s", path, got, want)
			}
			again := s.do(t, request{method: "GET", path: path, headers: []string{"If-None-Match: " + a.header.Get("ETag")}})
			if again.status != 304 || again.body != "" {
				t.Errorf("%s: asked again: got %d %.40q, want 304", path, again.status, again.body)
			}
			small := s.do(t, request{method: "GET", path: path, headers: []string{"Accept-Encoding: gzip"}})
			if gunzip(t, []byte(small.body)) != a.body || len(small.body) > 48<<10 {
				t.Errorf("%s: %d packed bytes are not the %d plain ones", path, len(small.body), len(a.body))
			}
			if policy := a.header.Get("Content-Security-Policy"); (policy == reference.Policy) != (path == "/docs") {
				t.Errorf("%s: got the policy %q", path, policy)
			}
		}
		if a := s.do(t, request{method: "GET", path: "/openapi.yaml"}); a.body != string(openapiYAML) {
			t.Error("the document is not the one of the source")
		}
	}
}

// TestTheDocumentAsJSON compares with what another reader of YAML makes of the
// source.
func TestTheDocumentAsJSON(t *testing.T) {
	var forms [][]byte
	for _, source := range [][]byte{openapiYAML, openapiJSON().body} {
		doc, err := openapi3.NewLoader().LoadFromData(source)
		if err != nil {
			t.Fatal(err)
		}
		form, err := doc.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, form)
	}
	if !bytes.HasPrefix(openapiJSON().body, []byte(`{"openapi":"3.1.0",`)) || !bytes.Equal(forms[0], forms[1]) {
		t.Errorf("the two forms differ: %.80s", openapiJSON().body)
	}
}

// TestThePageHasEveryOperation with its parameters and statuses.
func TestThePageHasEveryOperation(t *testing.T) {
	page := string(openapiPage().body)
	for _, o := range theInterface().operations {
		_, article, found := strings.Cut(page, `<article id="`+o.OperationID+`"`)
		article, _, _ = strings.Cut(article, "</article>")
		if !found || !strings.Contains(article, o.path) || !strings.Contains(page, `<a href="#`+o.OperationID+`">`) {
			t.Errorf("the page has no %s", o.OperationID)
		}
		for _, p := range slices.Concat(o.Parameters, o.item.Parameters) {
			if !strings.Contains(article, `<dt><code>`+p.Value.Name+`</code>`) {
				t.Errorf("%s lacks the parameter %s", o.OperationID, p.Value.Name)
			}
		}
		for status := range o.Responses.Map() {
			if !strings.Contains(article, `<code>`+status+`</code>`) {
				t.Errorf("%s lacks the status %s", o.OperationID, status)
			}
		}
	}
}
