package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/gateway/errorpage"
	"troupe/gateway/internal/kernel"
)

// browser is the Accept of a browser that goes to an address.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

// TestErrorPages holds gateway/INTERFACE.md, "Pages for people": outside
// groups A to D a request that names text/html gets a page for 403, 404, 500 and
// 503; everybody else, and everything else, gets JSON.
func TestErrorPages(t *testing.T) {
	const ranked = "application/json, text/html;q=0.9"
	fail := func(*kernel.Exchange) error { return failure.ErrBusy }
	more := []kernel.Route{
		{Name: "broken", Method: "GET", Path: "/broken", Access: kernel.Public, Handle: func(*kernel.Exchange) error { panic("no") }},
		{Name: "busy", Method: "GET", Path: "/busy", Access: kernel.Public, Handle: fail},
		{Name: "busy-b", Method: "GET", Path: "/workflow/api/v1/busy", Access: kernel.Public, Handle: fail},
		{Name: "broken-a", Method: "GET", Path: "/form-portal/broken", Group: kernel.GroupPortal, Access: kernel.Public, Handle: func(*kernel.Exchange) error { panic("no") }},
	}
	withMore := func(table []kernel.Route) []kernel.Route { return append(table, more...) }
	for _, base := range []string{"", "/platform"} {
		server, err := newServer(Options{BasePath: base}, withMore)
		require.NoError(t, err)
		closed, err := newServer(Options{BasePath: base}, withMore)
		require.NoError(t, err)
		server.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Portal: new(fakePortal), Sessions: new(fakeSessions)})
		check := func(line string, status int, page bool) {
			t.Helper()
			parts := strings.SplitN(line, " ", 3)
			w := newRecorder()
			server.ServeHTTP(w, newTestRequest(parts[0], base+parts[1], "", "Accept: "+parts[2], "Cookie: session="+sessionAnn, "Sec-Fetch-Site: cross-site"))
			if checkErrorPage(t, line, w, page, base); w.status != status {
				t.Errorf("%s: got %d, want %d", line, w.status, status)
			}
		}
		for line, status := range map[string]int{ // behind the blank is the Accept
			"GET /nowhere " + browser: 404, "GET /nowhere text/html": 404, "GET /nowhere TEXT/HTML ; charset=utf-8;q=0.5, */*;q=0.9": 404,
			"GET /nowhere " + ranked:   404, // it names a page, however it likes it
			"HEAD /nowhere " + browser: 404, "GET /assets/no.js " + browser: 404, "GET /workflows " + browser: 404, "GET /broken " + browser: 500, "GET /busy " + browser: 503,
			"POST /session " + browser: 403, // from another site, below
		} {
			check(line, status, true)
		}
		for line, status := range map[string]int{
			"GET /nowhere */*": 404, "GET /nowhere text/*": 404, "GET /nowhere application/json": 404, "GET /nowhere text/html;q=0": 404, "GET /nowhere text/html;q=x": 404,
			`GET /nowhere x/y;a=",text/html,"`: 404, "GET /nowhere ": 404, "GET /busy */*": 503, "DELETE / " + browser: 405, "GET /login?other=1 " + browser: 400,
			"GET /workflow " + browser: 404, "GET /workflow/api/v2/x " + browser: 404, "GET /workflow/api/v2/x " + ranked: 404, "GET /workflow/api/v1/busy " + browser: 503,
			"GET /form-portal " + browser: 404, "GET /form-portal/x " + browser: 404, "GET /form-portal/broken " + browser: 500, "GET /form-portal/role-info " + browser: 403,
			"GET /form-runtime/api/v1/x " + browser: 404, "GET /rml-engine/get-parameters " + browser: 404, "GET /docx-engine/ " + browser: 404, "GET /repository/api/v1/list-files/ " + browser: 404,
		} {
			check(line, status, false)
		}
		w := newRecorder()
		server.ServeHTTP(w, newTestRequest("GET", base+"/nowhere", "", "Accept: text/html", "Accept-Language: fr, de-AT;q=0.9, en;q=0.8"))
		text := w.body.String()
		assert.True(t, strings.Contains(text, `<html lang="de">`) && strings.HasSuffix(w.header.Get("Vary"), ", Accept-Language"), "%v %v", w.header, text)
		w = newRecorder()
		server.ServeHTTP(w, newTestRequest("GET", base+"/session", "", "Accept: "+browser))
		if checkErrorPage(t, "no session", w, false, base); w.status != 401 {
			t.Errorf("no session: got %d, want 401", w.status)
		}
		// Also while the server starts, when it has no style to give out yet.
		w = newRecorder()
		observe(t, closed).ServeHTTP(w, newTestRequest("GET", base+"/", "", "Accept: "+browser))
		if checkErrorPage(t, "while starting", w, true, base); w.status != 503 || w.header.Get("Retry-After") == "" {
			t.Errorf("while starting: got %d, %v", w.status, w.header)
		}
	}
}

func checkErrorPage(t *testing.T, line string, w *recorder, page bool, base string) {
	t.Helper()
	if !page {
		assert.True(t, w.header.Get("Content-Type") == "application/json" && json.Valid(w.body.Bytes()) && w.header.Get("Content-Security-Policy") == "",
			"%s: got %v %s, want JSON", line, w.header, w.body.String())
		return
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": errorpage.Policy, "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Vary": "Cookie, Authorization, Authentication, Accept",
	} {
		got := w.header.Get(name)
		assert.True(t, strings.HasPrefix(got, want), "%s: %s is %q, want %q", line, name, got, want)
	}
	id := ""
	if _, behind, found := strings.Cut(w.body.String(), "Error ID: <code>"); found {
		id, _, _ = strings.Cut(behind, "<")
	}
	want := errorpage.Page(errorpage.Options{Base: base, Status: w.status, ID: id})
	assert.True(t, bytes.Equal(w.body.Bytes(), want) && (id != "") == (w.status == 500), "%s: got %s, want %s", line, w.body.String(), want)
}
