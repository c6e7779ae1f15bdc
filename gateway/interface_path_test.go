package gateway_test

import (
	"strings"
	"testing"

	"troupe/actors/actorstest"
	"troupe/gateway"
)

// TestInterfacePaths holds gateway/INTERFACE.md, "Paths", and gateway/INTERFACE.md, "404
// is constant": no redirects, 404 and 405 in JSON. The router alone would redirect
// (persistence/PROMISES.md, "F14"). The path prefix has the version
// (gateway/INTERFACE.md, "Versioning").
func TestInterfacePaths(t *testing.T) {
	s := newScene(t)
	id := s.ann.create(t, "plain", "").record(t).ID
	instance := root + "/instance/plain/" + id
	const of = " HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST\r\nX-Method-Override: DELETE\r\nX-HTTP-Method: PUT\r\n"
	first := s.ann.load(t, "plain", nowhere)
	for status, requests := range map[int][]string{
		200: {
			"GET " + instance, "GET /%77orkflow/api/v1/instance/%70lain/" + id, "HEAD " + instance,
		},
		400: {"GET " + root + "/choices%zz", "GET " + root + "/choices\x01", "GET workflow/api/v1/choices", "GET " + root + "/instances/plain ?x"},
		404: {
			"GET /nowhere", "GET //", "GET /workflow", "GET " + root, "GET " + root + "/", "GET " + root + "/unknown", "GET /metrics", "GET /debug/pprof/",
			"GET /workflow/api/v2/choices", "GET /workflow/api/choices", "GET /api/v1/choices", "GET /workflow/api/v1/../v1/choices", "GET /workflow/./api/v1/choices",
			"GET " + root + "/choices/", "POST " + root + "/create/", "GET " + instance + "/", "GET " + instance + "/events/", "GET " + root + "/watch/plain/",
			"GET /" + root + "/choices", "GET /workflow//api/v1/choices", "POST " + root + "//create", "GET " + root + "/instance//" + id, "GET " + root + "/instance/plain//" + id,
			"GET /Workflow/api/v1/choices", "GET /workflow/api/v1/Choices", "GET /workflow%2Fapi/v1/choices", "GET " + root + "/instance/plain%2f" + id, "GET " + root + "/instances/",
			"GET " + root + "/instance/plain", "GET " + instance + "/event", "GET " + instance + "#x", "GET " + root + "/instance/%2570lain/" + id,
			"GET http://evil.example" + root + "/choices", "GET *", "OPTIONS *", "CONNECT evil.example:80",
		},
		405: {
			"PUT " + root + "/choices", "POST " + root + "/choices", "GET " + root + "/create", "HEAD " + root + "/create", "OPTIONS " + root + "/create", "TRACE " + root + "/event",
			"DELETE " + instance, "PATCH " + instance + "/events", "POST " + instance + "/history", "POST " + root + "/watch/plain", "DELETE " + root + "/watch/plain/" + id,
			"get " + root + "/choices", "FROB " + root + "/instances/plain", "POST /readyz", "PROPFIND /livez",
		},
	} {
		for _, request := range requests {
			answers := s.raw(t, request+of+s.ann.credential[0]+"\r\n\r\n")
			if len(answers) != 1 || answers[0].status != status || answers[0].header.Get("Location") != "" {
				t.Errorf("%s: got %v, want one answer with %d", request, answers, status)
				continue
			}
			a := answers[0]
			switch {
			case status == 404 && a.body != first.body:
				t.Errorf("%s: got %s, want %s", request, a.body, first.body)
			case status == 405:
				want := "GET, HEAD"
				if strings.HasSuffix(request, "create") || strings.HasSuffix(request, "event") {
					want = "POST"
				}
				if got := a.header.Get("Allow"); got != want {
					t.Errorf("%s: Allow: got %q, want %q", request, got, want)
				}
			}
			if reason := headersReason(a); status != 400 && reason != "" {
				t.Errorf("%s: %s", request, reason)
			}
			if reason := faultReason(a, 405, "MethodNotAllowed"); status == 405 && a.body != "" && reason != "" {
				t.Error(reason)
			}
		}
	}
	for name, a := range map[string]answer{
		"workflow": s.ann.load(t, "missing", nowhere), "other workflow": s.ann.load(t, "codes", id), "create": s.ann.create(t, "missing", ""),
		"event": s.ann.event(t, "plain", nowhere, "go", ""), "event of a workflow": s.ann.event(t, "missing", id, "go", ""), "instances": s.ann.query(t, "missing", ""),
	} {
		wantFault(t, a, 404, "NotFound")
		if a.body != first.body {
			t.Errorf("%s: got %s, want %s", name, a.body, first.body)
		}
	}
}

// TestInterfaceBasePath holds gateway/INTERFACE.md, "Base path".
func TestInterfaceBasePath(t *testing.T) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}, Gateway: gateway.Options{BasePath: "/platform/flows"}})
	ann := s.as("ann")
	r := ann.create(t, "plain", "").record(t)
	ann.load(t, "plain", r.ID).record(t)
	wantStatus(t, ann.get(t, "/livez"), 200)
	for _, path := range []string{root + "/choices", "/readyz", "/livez", "/platform" + root + "/choices", "/", "/platform", "/platform/flows", "/platform/flows//"} {
		a := s.send(t, ask{method: "GET", path: path, headers: ann.credential})
		if reason := faultReason(a, 404, "NotFound"); reason != "" {
			t.Errorf("%s: %s", path, reason)
		}
	}
}

// TestInterfaceAnswers holds gateway/INTERFACE.md, "Errors", and gateway/INTERFACE.md,
// "Common headers": faultReason and headersReason know what an answer has.
func TestInterfaceAnswers(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "order", "").record(t)
	forbidden := s.ann.create(t, "order", "").record(t)
	s.ann.event(t, "order", forbidden.ID, "submit", "").record(t)
	s.ann.create(t, "plain", "", key("error-values")).record(t)
	for _, c := range []struct {
		status int
		word   string
		answer answer
	}{
		{200, "", s.ann.get(t, "/livez")},
		{200, "", s.ann.get(t, root+"/choices")},
		{200, "", s.ann.query(t, "order", "limit=1")},
		{400, "InvalidContent", s.ann.post(t, root+"/create", `{`)},
		{400, "InvalidContent", s.ann.event(t, "order", r.ID, "submit", "", "If-Match: 3")},
		{401, "Unauthorized", s.send(t, ask{method: "GET", path: root + "/choices"})},
		{403, "AccessDenied", s.ann.event(t, "order", forbidden.ID, "approve", "")},
		{404, "NotFound", s.ann.create(t, "missing", "")},
		{405, "MethodNotAllowed", s.ann.get(t, root+"/create")},
		{409, "EventNotAllowed", s.ann.event(t, "order", r.ID, "ship", "")},
		{412, "PreconditionFailed", s.ann.event(t, "order", r.ID, "submit", "", `If-Match: "9"`)},
		{413, "TooLarge", s.ann.post(t, root+"/create", strings.Repeat(" ", 1<<20+1))},
		{415, "UnsupportedMediaType", s.ann.post(t, root+"/create", `{}`, "Content-Encoding: br")},
		{422, "KeyReused", s.ann.create(t, "codes", "", key("error-values"))},
		{500, "MarshallingError", s.ann.event(t, "order", r.ID, "boom", "")},
	} {
		reason := headersReason(c.answer)
		if c.word != "" {
			reason = faultReason(c.answer, c.status, c.word)
		}
		if reason != "" || c.answer.status != c.status {
			t.Errorf("%d: got %d; %s", c.status, c.answer.status, reason)
		}
		for _, name := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Origin", "Set-Cookie", "Location"} {
			if got := c.answer.header.Get(name); got != "" {
				t.Errorf("%d: header %s: got %q, want none", c.status, name, got)
			}
		}
	}
}

// TestInterfaceHealth holds gateway/INTERFACE.md, "Health": it needs no credential.
func TestInterfaceHealth(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{"/livez", "/readyz", "/readyz?verbose"} {
		for _, headers := range [][]string{nil, {"Authorization: svc.token garbage"}, {"Cookie: session=a; session=b"}} {
			wantStatus(t, s.send(t, ask{method: "GET", path: path, headers: headers}), 200)
		}
	}
}
