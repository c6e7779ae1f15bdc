package gateway

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"troupe/gateway/console"
)

// assetName returns the name of the script that the pages begin with.
func assetName(t testing.TB) string {
	t.Helper()
	found := regexp.MustCompile(`src="\./assets/([^"]+\.js)"`).FindSubmatch(console.Shell(""))
	if found == nil {
		t.Fatalf("the shell names no script: %s", console.Shell(""))
	}
	return string(found[1])
}

func TestPagesAreOneShell(t *testing.T) {
	for _, base := range []string{"", "/platform"} {
		s := startServer(t, Options{BasePath: base}, nil)
		for _, path := range []string{"/", "/?kind=checklists&show=archived", "/form-runtime/f/-/i/index.html", "/form-runtime/f/w/i/index.html?x=%zz"} {
			w := newRecorder()
			s.ServeHTTP(w, newTestRequest("GET", base+path, ""))
			if w.status != 200 || !bytes.Equal(w.body.Bytes(), console.Shell(base)) {
				t.Errorf("%s: got %d %.200s", base+path, w.status, w.body.String())
			}
			checkHeaders(t, path, w.header, map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": console.Policy, "X-Frame-Options": "DENY",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
				"Cache-Control": "no-cache",
			})
		}
	}
}

func TestAssetsAreCacheable(t *testing.T) {
	s := startServer(t, Options{}, nil)
	get := func(name string, headers ...string) *recorder {
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest("GET", "/assets/"+name, "", headers...))
		return w
	}
	name := assetName(t)
	body, _, _ := console.Asset(name)
	w := get(name)
	tag := w.header.Get("Etag")
	if w.status != 200 || !bytes.Equal(w.body.Bytes(), body) || !strings.Contains(w.header.Get("Cache-Control"), "immutable") ||
		w.header.Get("Content-Type") != "text/javascript; charset=utf-8" || tag == "" {
		t.Errorf("got %d, %v, %d bytes", w.status, w.header, w.body.Len())
	}
	for line, want := range map[string]int{
		tag: 304, `"other", ` + tag: 304, "W/" + tag: 304, "*": 304, `"other"`: 200, "": 200, "garbage": 200, tag + "x": 200, `"` + tag: 200,
	} {
		if w := get(name, "If-None-Match: "+line); w.status != want || w.status == 304 && w.body.Len() > 0 {
			t.Errorf("If-None-Match %s: got %d with %d bytes, want %d", line, w.status, w.body.Len(), want)
		}
	}
	for _, name := range []string{"no.js", "..%2findex.html", "index.html", "licenses.md", "%00.js", ".js"} {
		if w := get(name); w.status != http.StatusNotFound || w.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d, %v", name, w.status, w.header)
		}
	}
}
