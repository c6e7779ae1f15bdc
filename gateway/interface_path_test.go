package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// TestInterfacePaths holds gateway/INTERFACE.md, "Paths", and gateway/INTERFACE.md, "404
// is constant": no redirects, 404 and 405 in JSON. The router alone would redirect
// (persistence/PROMISES.md, "F14"). The path prefix has the version
// (gateway/INTERFACE.md, "Versioning").
func TestInterfacePaths(t *testing.T) {
	s := newScene(t)
	id := s.ann.Create(t, "plain", "").Record(t).ID
	instance := wiretest.Root + "/instance/plain/" + id
	const of = " HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST\r\nX-Method-Override: DELETE\r\nX-HTTP-Method: PUT\r\n"
	first := s.ann.Load(t, "plain", nowhere)
	for status, requests := range map[int][]string{
		200: {
			"GET " + instance, "GET /%77orkflow/api/v1/instance/%70lain/" + id, "HEAD " + instance,
		},
		400: {"GET " + wiretest.Root + "/choices%zz", "GET " + wiretest.Root + "/choices\x01", "GET workflow/api/v1/choices", "GET " + wiretest.Root + "/instances/plain ?x"},
		404: {
			"GET /nowhere", "GET //", "GET /workflow", "GET " + wiretest.Root, "GET " + wiretest.Root + "/", "GET " + wiretest.Root + "/unknown", "GET /metrics", "GET /debug/pprof/",
			"GET /workflow/api/v2/choices", "GET /workflow/api/choices", "GET /api/v1/choices", "GET /workflow/api/v1/../v1/choices", "GET /workflow/./api/v1/choices",
			"GET " + wiretest.Root + "/choices/", "POST " + wiretest.Root + "/create/", "GET " + instance + "/", "GET " + instance + "/events/", "GET " + wiretest.Root + "/watch/plain/",
			"GET /" + wiretest.Root + "/choices", "GET /workflow//api/v1/choices", "POST " + wiretest.Root + "//create", "GET " + wiretest.Root + "/instance//" + id, "GET " + wiretest.Root + "/instance/plain//" + id,
			"GET /Workflow/api/v1/choices", "GET /workflow/api/v1/Choices", "GET /workflow%2Fapi/v1/choices", "GET " + wiretest.Root + "/instance/plain%2f" + id, "GET " + wiretest.Root + "/instances/",
			"GET " + wiretest.Root + "/instance/plain", "GET " + instance + "/event", "GET " + instance + "#x", "GET " + wiretest.Root + "/instance/%2570lain/" + id,
			"GET http://evil.example" + wiretest.Root + "/choices", "GET *", "OPTIONS *", "CONNECT evil.example:80",
		},
		405: {
			"PUT " + wiretest.Root + "/choices", "POST " + wiretest.Root + "/choices", "GET " + wiretest.Root + "/create", "HEAD " + wiretest.Root + "/create", "OPTIONS " + wiretest.Root + "/create", "TRACE " + wiretest.Root + "/event",
			"DELETE " + instance, "PATCH " + instance + "/events", "POST " + instance + "/history", "POST " + wiretest.Root + "/watch/plain", "DELETE " + wiretest.Root + "/watch/plain/" + id,
			"get " + wiretest.Root + "/choices", "FROB " + wiretest.Root + "/instances/plain", "POST /readyz", "PROPFIND /livez",
		},
	} {
		for _, request := range requests {
			answers := s.Raw(t, request+of+s.ann.Credential[0]+"\r\n\r\n")
			if !assert.True(t, len(answers) == 1 && answers[0].Status == status && answers[0].Header.Get("Location") == "", "%v %v %v", request, answers, status) {
				continue
			}
			a := answers[0]
			switch {
			case status == 404 && a.Body != first.Body:
				t.Errorf("%s: got %s, want %s", request, a.Body, first.Body)
			case status == 405:
				want := "GET, HEAD"
				if strings.HasSuffix(request, "create") || strings.HasSuffix(request, "event") {
					want = "POST"
				}
				assert.Equal(t, want, a.Header.Get("Allow"), "%s: Allow", request)
			}
			reason := a.FaultReason(405, "MethodNotAllowed")
			assert.False(t, status == 405 && a.Body != "" && reason != "", reason)
		}
	}
	for name, a := range map[string]answer{
		"workflow": s.ann.Load(t, "missing", nowhere), "other workflow": s.ann.Load(t, "codes", id), "create": s.ann.Create(t, "missing", ""),
		"event": s.ann.Event(t, "plain", nowhere, "go", ""), "event of a workflow": s.ann.Event(t, "missing", id, "go", ""), "instances": s.ann.query(t, "missing", ""),
	} {
		a.WantFault(t, 404, "NotFound")
		assert.Equal(t, first.Body, a.Body, name)
	}
}

// TestInterfaceBasePath holds gateway/INTERFACE.md, "Base path".
func TestInterfaceBasePath(t *testing.T) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}, Gateway: gateway.Options{BasePath: "/platform/flows"}})
	ann := s.as("ann")
	r := ann.Create(t, "plain", "").Record(t)
	ann.Load(t, "plain", r.ID).Record(t)
	ann.Get(t, "/livez").WantStatus(t, 200)
	for _, path := range []string{wiretest.Root + "/choices", "/readyz", "/livez", "/platform" + wiretest.Root + "/choices", "/", "/platform", "/platform/flows", "/platform/flows//"} {
		a := s.Send(t, request{Method: "GET", Path: path, Headers: ann.Credential})
		assert.Empty(t, a.FaultReason(404, "NotFound"), path)
	}
}

// TestInterfaceAnswers holds gateway/INTERFACE.md, "Errors", and gateway/INTERFACE.md,
// "Common headers": faultReason and headersReason know what an answer has.
func TestInterfaceAnswers(t *testing.T) {
	s := newScene(t)
	r := s.ann.Create(t, "order", "").Record(t)
	forbidden := s.ann.Create(t, "order", "").Record(t)
	s.ann.Event(t, "order", forbidden.ID, "submit", "").Record(t)
	s.ann.Create(t, "plain", "", retryKey("error-values")).Record(t)
	for _, c := range []struct {
		status int
		word   string
		answer answer
	}{
		{200, "", s.ann.Get(t, "/livez")},
		{200, "", s.ann.Get(t, wiretest.Root+"/choices")},
		{200, "", s.ann.query(t, "order", "limit=1")},
		{400, "InvalidContent", s.ann.Post(t, wiretest.Root+"/create", `{`)},
		{400, "InvalidContent", s.ann.Event(t, "order", r.ID, "submit", "", "If-Match: 3")},
		{401, "Unauthorized", s.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices"})},
		{403, "AccessDenied", s.ann.Event(t, "order", forbidden.ID, "approve", "")},
		{404, "NotFound", s.ann.Create(t, "missing", "")},
		{405, "MethodNotAllowed", s.ann.Get(t, wiretest.Root+"/create")},
		{409, "EventNotAllowed", s.ann.Event(t, "order", r.ID, "ship", "")},
		{412, "PreconditionFailed", s.ann.Event(t, "order", r.ID, "submit", "", `If-Match: "9"`)},
		{413, "TooLarge", s.ann.Post(t, wiretest.Root+"/create", strings.Repeat(" ", 1<<20+1))},
		{415, "UnsupportedMediaType", s.ann.Post(t, wiretest.Root+"/create", `{}`, "Content-Encoding: br")},
		{422, "KeyReused", s.ann.Create(t, "codes", "", retryKey("error-values"))},
		{500, "MarshallingError", s.ann.Event(t, "order", r.ID, "boom", "")},
	} {
		reason := c.answer.FaultReason(c.status, c.word)
		assert.True(t, (c.word == "" || reason == "") && c.answer.Status == c.status, "%d: got %d; %s", c.status, c.answer.Status, reason)
		for _, name := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Origin", "Set-Cookie", "Location"} {
			assert.Empty(t, c.answer.Header.Get(name), "%d: header %s", c.status, name)
		}
	}
}

// TestInterfaceHealth holds gateway/INTERFACE.md, "Health": it needs no credential.
func TestInterfaceHealth(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{"/livez", "/readyz", "/readyz?verbose"} {
		for _, headers := range [][]string{nil, {"Authorization: svc.token garbage"}, {"Cookie: session=a; session=b"}} {
			s.Send(t, request{Method: "GET", Path: path, Headers: headers}).WantStatus(t, 200)
		}
	}
}
