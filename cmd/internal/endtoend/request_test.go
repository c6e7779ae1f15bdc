package endtoend

import (
	"fmt"
	"strings"
	"testing"
)

func TestInterfaceRequest(t *testing.T) { runLines(t, requestLines()) }

func requestLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Content types"`, "it must be application/json; with a token it may be missing", contentTypes},
		{`gateway/INTERFACE.md, "Bodies"`, "at most 1 MiB", bodySizes},
		{`gateway/INTERFACE.md, "Bodies"`, "depth 64", bodyDepth},
		{`gateway/INTERFACE.md, "Bodies"`, "no duplicate keys, no trailing data, valid UTF-8", bodySyntax},
		{`gateway/INTERFACE.md, "Identifiers"`, "another one is simply not found", otherIdentifiers},
		{`gateway/INTERFACE.md, "Identifiers"`, "128 characters of the alphabet", longestIdentifier},
		{`gateway/INTERFACE.md, "Base path"`, "every path hangs below it", basePath},
	}
}

func contentTypes(t *testing.T, s *scene) {
	ask := s.ann.posting(root+"/create", createBody("plain", ""))
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Content-Type: application/json"}, 200},
		{[]string{"Content-Type: application/json; charset=utf-8"}, 200},
		{[]string{"Content-Type: Application/JSON;charset=UTF-8"}, 200},
		{[]string{"Content-Type: application/json", "Content-Encoding: identity"}, 200},
		{[]string{"Content-Type: text/plain"}, 415},
		{[]string{"Content-Type: text/json"}, 415},
		{[]string{"Content-Type: application/json-patch+json"}, 415},
		{[]string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{[]string{"Content-Type: application/json; charset=latin1"}, 415},
		{[]string{"Content-Type: application/json; charset=utf-16"}, 415},
		{[]string{"Content-Type: application/json, text/plain"}, 415},
		{[]string{"Content-Type: "}, 415},
		{[]string{"Content-Type: application/json", "Content-Type: text/plain"}, 415},
		{[]string{"Content-Type: application/json", "Content-Encoding: gzip"}, 415},
		{[]string{"Content-Encoding: deflate"}, 415},
	} {
		ask.headers = append(c.headers, s.ann.credential...)
		a := s.send(t, ask)
		if c.status == 200 {
			a.record(t)
		} else if reason := faultReason(a, c.status, "UnsupportedMediaType"); reason != "" {
			t.Errorf("%q: %s", c.headers, reason)
		}
	}
}

// sized returns a create of exactly so many bytes.
func sized(bytes int) string {
	empty := createBody("plain", `{"svcPublic":{}}`)
	return empty + strings.Repeat(" ", bytes-len(empty))
}

func bodySizes(t *testing.T, s *scene) {
	const most = 1 << 20
	s.ann.post(t, root+"/create", sized(most)).record(t)
	wantFault(t, s.ann.post(t, root+"/create", sized(most+1)), 413, "TooLarge")
	wantFault(t, s.ann.post(t, root+"/event", sized(10*most)), 413, "TooLarge")
	r := s.ann.create(t, "plain", `{"svcPublic":{"text":"`+strings.Repeat("x", most-200)+`"}}`).record(t)
	s.ann.load(t, "plain", r.ID).record(t)
	// A length that is only claimed is refused before anything is read.
	head := "POST " + s.base + root + "/create HTTP/1.1\r\nHost: x\r\n" + s.ann.credential[0] + "\r\n" + jsonType + "\r\n"
	answers := s.raw(t, head+fmt.Sprintf("Content-Length: %d\r\n\r\n{", 100<<20))
	if len(answers) != 1 || !answers[0].closes {
		t.Fatalf("got %v, want one answer and the end", answers)
	}
	wantFault(t, answers[0], 413, "TooLarge")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 600<<10, strings.Repeat(" ", 600<<10))
	answers = s.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk+chunk+"0\r\n\r\n")
	if len(answers) != 1 {
		t.Fatalf("got %d answers, want one", len(answers))
	}
	wantFault(t, answers[0], 413, "TooLarge")
}

// nested returns svcPublic with a value that is nested so deep.
func nested(depth int) string {
	return `{"svcPublic":{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}}`
}

func bodyDepth(t *testing.T, s *scene) {
	// The body, data and svcPublic are three levels themselves.
	s.ann.create(t, "plain", nested(61)).record(t)
	wantFault(t, s.ann.create(t, "plain", nested(62)), 400, "InvalidContent")
	wantFault(t, s.ann.create(t, "plain", nested(250_000)), 400, "InvalidContent")
}

func bodySyntax(t *testing.T, s *scene) {
	for _, body := range []string{
		`{"workflowId":"plain","workflowId":"plain"}`,
		`{"workflowId":"plain","workflow\u0049d":"plain"}`,
		`{"workflowId":"plain","data":{"svcPublic":{"a":1,"a":1}}}`,
		`{"workflowId":"plain"}{}`,
		`{"workflowId":"plain"} x`,
		"{\"workflowId\":\"plain\"}\x00",
		"{\"workflowId\":\"plain\",\"data\":{\"svcPublic\":{\"a\":\"\xff\"}}}",
	} {
		if reason := faultReason(s.ann.post(t, root+"/create", body), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", clip(body), reason)
		}
	}
	s.ann.post(t, root+"/create", " \r\n\t{ \"workflowId\" : \"plain\" }\n").record(t)
}

func otherIdentifiers(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, id := range strangeIDs(r.ID) {
		for name, a := range map[string]answer{
			"create": s.ann.post(t, root+"/create", `{"workflowId":`+quoted(id)+`}`),
			"event of workflow": s.ann.post(t, root+"/event",
				`{"workflowId":`+quoted(id)+`,"instanceId":"`+r.ID+`","event":{"name":"go"}}`),
			"event of instance": s.ann.post(t, root+"/event",
				`{"workflowId":"plain","instanceId":`+quoted(id)+`,"event":{"name":"go"}}`),
		} {
			if reason := faultReason(a, 404, "NotFound"); reason != "" {
				t.Errorf("%s %q: %s", name, clip(id), reason)
			}
		}
	}
	s.unchanged(t, r)
}

func longestIdentifier(t *testing.T, s *scene) {
	longest := "L" + strings.Repeat("-._~", 31) + "xyz"
	s.home.write("workflows/longest.yaml", strings.Replace(plainFlow, "id: plain", "id: "+longest, 1))
	defer s.home.remove("workflows/longest.yaml")
	a := s.awaitStatus(t, "the workflow with the longest name", 200, func() answer { return s.ann.create(t, longest, "") })
	r := a.record(t)
	s.ann.load(t, longest, r.ID).record(t)
	wantFault(t, s.ann.load(t, longest+"x", r.ID), 404, "NotFound")
}

func basePath(t *testing.T, _ *scene) {
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow, "troupe.yaml": "basePath: /platform/flows\n"})
	h.basePath = "/platform/flows"
	p := start(t, h)
	ann := p.as(h.token("ann"))
	r := ann.create(t, "plain", "").record(t)
	ann.load(t, "plain", r.ID).record(t)
	for _, path := range []string{root + "/choices", "/readyz", "/livez", "/platform" + root + "/choices", "/", "/platform/flows", "/platform/flows//"} {
		a := p.send(t, ask{method: "GET", path: path, headers: ann.credential})
		if reason := faultReason(a, 404, "NotFound"); reason != "" {
			t.Errorf("%s: %s", path, reason)
		}
	}
	p.stop()
}
