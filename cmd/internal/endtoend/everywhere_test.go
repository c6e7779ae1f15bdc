package endtoend

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestInterfaceAnswer(t *testing.T) { runLines(t, answerLines()) }

func answerLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Errors"`, "the body is {error, message}", errorValues},
		{`gateway/INTERFACE.md, "Versioning"`, "group B, the path prefix is workflow/api/v1", prefixIsVersioned},
		{`gateway/INTERFACE.md, "404 is constant"`, "whatever is asked for", missingIsConstant},
		{`gateway/INTERFACE.md, "Messages"`, "they hold at most 64 escaped characters of the input", messagesAreShort},
		{`gateway/INTERFACE.md, "Paths"`, "a path is right or it is 404", noRedirects},
		{`gateway/INTERFACE.md, "Paths"`, "405 has a JSON body and Allow", methodNotAllowed},
		{`gateway/INTERFACE.md, "HEAD"`, "it works wherever GET does", headLikeGet},
		{`gateway/INTERFACE.md, "Common headers"`, "every answer has them", headersEverywhere},
		{`gateway/INTERFACE.md, "Health"`, "it needs no credential", healthIsOpen},
		{`gateway/INTERFACE.md, "Overview"`, "the description is served, and its operations are there", describedAndThere},
	}
}

func errorValues(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	forbidden := s.ann.create(t, "order", "").record(t)
	s.ann.event(t, "order", forbidden.ID, "submit", "").record(t)
	s.ann.create(t, "plain", "", "Idempotency-Key: error-values").record(t)
	for _, c := range []struct {
		status int
		word   string
		answer answer
	}{
		{400, "InvalidContent", s.ann.post(t, root+"/create", `{`)},
		{401, "Unauthorized", s.send(t, ask{method: "GET", path: s.base + root + "/choices"})},
		{403, "AccessDenied", s.ann.event(t, "order", forbidden.ID, "approve", "")},
		{404, "NotFound", s.ann.load(t, "order", nowhere)},
		{404, "NotFound", s.ann.create(t, "missing", "")},
		{404, "NotFound", s.ann.query(t, "missing", "")},
		{404, "NotFound", s.ann.get(t, "/nothing")},
		{405, "MethodNotAllowed", s.ann.get(t, root+"/create")},
		{409, "EventNotAllowed", s.ann.event(t, "order", r.ID, "ship", "")},
		{412, "PreconditionFailed", s.ann.event(t, "order", r.ID, "submit", "", `If-Match: "9"`)},
		{413, "TooLarge", s.ann.post(t, root+"/create", sized(1<<20+1))},
		{415, "UnsupportedMediaType", s.ann.post(t, root+"/create", `{}`, "Content-Encoding: br")},
		{422, "KeyReused", s.ann.create(t, "codes", "", "Idempotency-Key: error-values")},
		{500, "MarshallingError", s.ann.event(t, "order", r.ID, "boom", "")},
	} {
		if reason := faultReason(c.answer, c.status, c.word); reason != "" {
			t.Error(reason)
		}
	}
}

func prefixIsVersioned(t *testing.T, s *scene) {
	wantStatus(t, s.ann.get(t, "/workflow/api/v1/choices"), 200)
	for _, path := range []string{"/workflow/api/v2/choices", "/workflow/api/choices", "/workflow/choices", "/api/v1/choices"} {
		wantFault(t, s.ann.get(t, path), 404, "NotFound")
	}
}

func missingIsConstant(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	first := s.ann.load(t, "plain", nowhere)
	wantFault(t, first, 404, "NotFound")
	for name, a := range map[string]answer{
		"workflow":          s.ann.load(t, "missing", nowhere),
		"other workflow":    s.ann.load(t, "codes", r.ID),
		"strange id":        s.ann.load(t, "plain", "%3Cscript%3E"),
		"create":            s.ann.create(t, "missing", ""),
		"event":             s.ann.event(t, "plain", nowhere, "go", ""),
		"event of workflow": s.ann.event(t, "missing", r.ID, "go", ""),
		"instances":         s.ann.query(t, "missing", ""),
		"path":              s.ann.get(t, "/secret/place"),
	} {
		if a.status != 404 || a.body != first.body {
			t.Errorf("%s: got %d %s, want 404 %s", name, a.status, a.body, first.body)
		}
	}
}

func messagesAreShort(t *testing.T, s *scene) {
	long := strings.Repeat("Ä\x1b[31m\n\u202e<b>", 500)
	r := s.ann.create(t, "plain", "").record(t)
	for name, a := range map[string]answer{
		"member":       s.ann.post(t, root+"/create", `{"workflowId":"plain",`+quoted(long)+`:1}`),
		"data member":  s.ann.post(t, root+"/create", `{"workflowId":"plain","data":{`+quoted(long)+`:1}}`),
		"workflow":     s.ann.post(t, root+"/create", `{"workflowId":`+quoted(long)+`}`),
		"event":        s.ann.post(t, root+"/event", `{"workflowId":"plain","instanceId":"`+r.ID+`","event":{"name":`+quoted(long)+`}}`),
		"not JSON":     s.ann.post(t, root+"/create", long),
		"duplicate":    s.ann.post(t, root+"/create", `{`+quoted(long)+`:1,`+quoted(long)+`:2}`),
		"filter":       s.ann.query(t, "plain", "filter="+escape(`{`+quoted(long)+`:1}`)),
		"operator":     s.ann.query(t, "plain", "filter="+escape(`{"svcPublic.x":{"$`+long[:40]+strings.Repeat("x", 300)+`":1}}`)),
		"parameter":    s.ann.query(t, "plain", escape(long)+"=1"),
		"content type": s.ann.with("Content-Type: "+strings.Repeat("x", 500)).post(t, root+"/create", "{}"),
		"key":          s.ann.create(t, "plain", "", "Idempotency-Key: "+strings.Repeat("x", 500)),
	} {
		if a.status < 400 || a.status >= 500 {
			t.Errorf("%s: got %d, want a refusal", name, a.status)
		}
		var body struct{ Message string }
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatalf("%s: %v in %s", name, err, a.body)
		}
		if strings.ContainsAny(body.Message, "\x1b\n\u202e") {
			t.Errorf("%s: the message holds raw input: %q", name, body.Message)
		}
		if strings.Contains(body.Message, strings.Repeat("x", 65)) || len(body.Message) > 300 {
			t.Errorf("%s: the message repeats more than 64 characters: %q", name, body.Message)
		}
	}
}

func noRedirects(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, path := range []string{
		"//", "/portal", "/form-portal", "/workflow", "/workflow/", root, root + "/", root + "/choices/", "//workflow/api/v1/choices", "/workflow//api/v1/choices",
		"/Workflow/api/v1/choices", "/workflow/api/v1/Choices", "/workflow/api/v1/../v1/choices", "/workflow/./api/v1/choices",
		root + "/instance/plain", root + "/instance/plain/" + r.ID + "/", root + "/instance/plain//" + r.ID, root + "/instances/plain/",
		root + "/instances", root + "/watch", root + "/watch/", root + "/watch/plain/", root + "/watch/plain/" + r.ID + "/", root + "/instance/plain/" + r.ID + "/event",
		root + "/instance/plain/" + r.ID + "/events/", root + "/instance/plain/" + r.ID + "/history/", root + "/instance//" + r.ID, root + "/instance/plain%2F" + r.ID, "/favicon.png", "/metrics", "/debug/pprof/",
	} {
		a := s.ann.get(t, path)
		if reason := faultReason(a, 404, "NotFound"); reason != "" {
			t.Errorf("%s: %s", path, reason)
		}
		if a.header.Get("Location") != "" {
			t.Errorf("%s: it is redirected to %q", path, a.header.Get("Location"))
		}
	}
	for _, path := range []string{root + "/create/", root + "//create", "/WORKFLOW/api/v1/create"} {
		if reason := faultReason(s.ann.post(t, path, createBody("plain", "")), 404, "NotFound"); reason != "" {
			t.Errorf("POST %s: %s", path, reason)
		}
	}
}

func methodNotAllowed(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	before := s.instances(t, s.ann, "plain")
	for path, allowed := range map[string]string{
		root + "/create": "POST", root + "/event": "POST", root + "/choices": "GET, HEAD", root + "/instances/plain": "GET, HEAD",
		root + "/instance/plain/" + r.ID: "GET, HEAD", root + "/instance/plain/" + r.ID + "/events": "GET, HEAD",
		root + "/instance/plain/" + r.ID + "/history": "GET, HEAD", root + "/watch/plain": "GET, HEAD", root + "/watch/plain/" + r.ID: "GET, HEAD", "/readyz": "GET, HEAD", "/livez": "GET, HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			if slices.Contains(strings.Split(allowed, ", "), method) {
				continue
			}
			a := s.send(t, ask{method: method, path: path, headers: append([]string{jsonType}, s.ann.credential...)})
			if method == "HEAD" {
				wantStatus(t, a, 405)
				continue
			}
			if reason := faultReason(a, 405, "MethodNotAllowed"); reason != "" {
				t.Errorf("%s %s: %s", method, path, reason)
			}
			if got := a.header.Get("Allow"); got != allowed {
				t.Errorf("%s %s: Allow: got %q, want %q", method, path, got, allowed)
			}
		}
	}
	// The method is the one of the request line (gateway/INTERFACE.md, "Paths").
	for _, header := range []string{"X-HTTP-Method-Override: POST", "X-Method-Override: DELETE"} {
		wantStatus(t, s.ann.with(header).get(t, root+"/choices"), 200)
	}
	s.unchanged(t, r)
	if got := s.instances(t, s.ann, "plain"); len(got) != len(before) {
		t.Errorf("instances: got %d, want %d as before", len(got), len(before))
	}
}

func headLikeGet(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, path := range []string{
		root + "/choices", root + "/instance/plain/" + r.ID, root + "/instance/plain/" + nowhere, root + "/instances/codes",
		root + "/instances/plain?filter=%7B", root + "/instances/plain?limit=1&count=true", root + "/instance/plain/" + r.ID + "/events",
		root + "/instance/plain/" + r.ID + "/history?limit=1", root + "/watch/missing", "/readyz", "/livez",
	} {
		get := s.ann.get(t, path)
		head := s.send(t, ask{method: "HEAD", path: s.base + path, headers: s.ann.credential})
		if head.status != get.status || head.body != "" {
			t.Errorf("HEAD %s: got %d %q, want %d and no body", path, head.status, head.body, get.status)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "Cache-Control", "Vary"} {
			if head.header.Get(name) != get.header.Get(name) {
				t.Errorf("HEAD %s: %s: got %q, want %q", path, name, head.header.Get(name), get.header.Get(name))
			}
		}
	}
}

func headersEverywhere(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	answers := []answer{
		s.ann.create(t, "plain", ""), s.ann.event(t, "plain", r.ID, "go", ""), s.ann.load(t, "plain", r.ID),
		s.ann.query(t, "plain", ""), s.ann.query(t, "plain", "limit=1"), s.ann.events(t, "plain", r.ID), s.ann.history(t, "plain", r.ID, ""),
		s.ann.get(t, root+"/choices"), s.ann.get(t, "/readyz"), s.ann.get(t, "/livez"),
		s.ann.get(t, "/nothing"), s.send(t, ask{method: "DELETE", path: s.base + root + "/choices"}),
	}
	for _, a := range answers {
		if reason := headersReason(a); reason != "" {
			t.Error(reason)
		}
		for _, name := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Origin", "Set-Cookie", "Location"} {
			if got := a.header.Get(name); got != "" {
				t.Errorf("header %s: got %q, want none", name, got)
			}
		}
	}
}

func healthIsOpen(t *testing.T, s *scene) {
	for _, path := range []string{"/livez", "/readyz", "/readyz?verbose"} {
		for _, headers := range [][]string{nil, {"Authorization: svc.token garbage"}, {"Cookie: session=a; session=b"}} {
			a := s.send(t, ask{method: "GET", path: s.base + path, headers: headers})
			if reason := headersReason(a); a.status != 200 || reason != "" {
				t.Errorf("%s with %q: got %d %s, want 200; %s", path, headers, a.status, a.body, reason)
			}
		}
	}
}

// describedAndThere asks each operation of the description once, without a
// credential.
func describedAndThere(t *testing.T, s *scene) {
	source, err := os.ReadFile("../../../gateway/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) answer { return s.send(t, ask{method: http.MethodGet, path: s.base + path}) }
	if a := get("/openapi.yaml"); a.status != 200 || a.body != string(source) {
		t.Errorf("/openapi.yaml: got %d and %d bytes, want the %d of the source", a.status, len(a.body), len(source))
	}
	wantStatus(t, get("/docs"), 200)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(get("/openapi.json").body), &description); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	asked := 0
	for path, methods := range description.Paths {
		for method, text := range methods {
			var operation struct{ Responses map[string]json.RawMessage }
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(text, &operation); err != nil {
				t.Fatal(err)
			}
			asked++
			a := s.send(t, ask{method: strings.ToUpper(method), path: s.base + parameter.ReplaceAllString(path, "x")})
			if _, known := operation.Responses[strconv.Itoa(a.status)]; !known {
				t.Errorf("%s %s: got %d %s", method, path, a.status, a.body)
			}
		}
	}
	if asked < 40 {
		t.Errorf("the description has %d operations", asked)
	}
}
