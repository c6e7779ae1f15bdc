package endtoend

import (
	"fmt"
	"strings"
	"testing"
)

// TestWrongInputPaths holds gateway/INTERFACE.md, "Paths", and
// gateway/INTERFACE.md, "Identifiers": whatever stands in a path, it is a 404 and
// never another instance.
func TestWrongInputPaths(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	var cases []wrong
	missing := func(what, path string) {
		cases = append(cases, wrong{
			what + " " + clip(path), ask{method: "GET", path: path, headers: s.ann.credential}, 404, "NotFound",
		})
	}
	for _, id := range strangeIDs(r.ID) {
		missing("instance", root+"/instance/plain/"+percent(id))
		missing("its workflow", root+"/instance/"+percent(id)+"/"+r.ID)
		missing("instances", root+"/instances/"+percent(id))
		missing("history", root+"/instance/plain/"+percent(id)+"/history")
		missing("events", root+"/instance/"+percent(id)+"/"+r.ID+"/events")
		missing("watch", root+"/watch/plain/"+percent(id))
		missing("watch of", root+"/watch/"+percent(id))
	}
	for _, raw := range []string{
		"%ff", "%c0%af", "%2e%2e", "%2f", "%5c", "%00", "%0d%0a", "%252e", "%25", "plain%2f..%2fcodes", "plain;x", "plain,", "plain%20", "plain%3F",
	} {
		missing("raw instance", root+"/instance/plain/"+raw)
		missing("raw workflow", root+"/instance/"+raw+"/"+r.ID)
		missing("raw instances", root+"/instances/"+raw)
	}
	for _, workflow := range []string{"codes", "Plain", "PLAIN", "plai", "plain1", "plain.", "plain-", "order"} {
		missing("another workflow", root+"/instance/"+workflow+"/"+r.ID)
		missing("another workflow's stream", root+"/watch/"+workflow+"/"+r.ID)
	}
	s.refuses(t, cases)
	s.unchanged(t, r)
}

// percent escapes every byte but letters and digits, so that a text arrives as
// one segment.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// TestWrongInputTargets sends request targets that are no paths.
func TestWrongInputTargets(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	address, err := s.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	guarded := s.guard(t)
	for _, c := range []struct {
		target string
		status int
	}{
		{"*", 404},
		{"http://" + address + root + "/choices", 404}, // the absolute form names a host that we do not check
		{"http://elsewhere.example" + root + "/choices", 404},
		{"workflow/api/v1/choices", 400},
		{root + "/choices%zz", 400},
		{root + "/choices\x01", 400},
		{root + "/instance/plain/" + r.ID + "#x", 404},
		{root + "/instances/plain ?x", 400},
	} {
		answers := s.raw(t, "GET "+c.target+" HTTP/1.1\r\nHost: "+address+"\r\n"+s.ann.credential[0]+"\r\nConnection: close\r\n\r\n")
		if len(answers) != 1 || answers[0].status != c.status {
			t.Errorf("target %q: got %v, want one answer with %d", c.target, answers, c.status)
		}
	}
	guarded()
}

// TestWrongInputQuery holds gateway/INTERFACE.md, "Query strings", and
// persistence/PROMISES.md, "F17": what cannot be read is refused, never passed
// over, by the list and by the stream.
func TestWrongInputQuery(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	var cases []wrong
	add := func(parameters string) {
		for _, path := range []string{"/instances/plain?", "/watch/plain?", "/watch/plain/" + r.ID + "?"} {
			cases = append(cases, wrong{
				path + clip(parameters), ask{method: "GET", path: root + path + parameters, headers: s.ann.credential}, 400, "InvalidContent",
			})
		}
	}
	for _, filter := range wrongFilters() {
		add("filter=" + escape(filter))
	}
	for _, parameters := range []string{
		"filter=%7B%7D&filter=%7B%7D", "filter=%zz", "filter={};x", "filter=%7B%7D;a=b", "Filter=%7B%7D", "filters=%7B%7D", "x=1", "x", "=", "%00=1",
		"filter=%257B%257D", "filter=+", "filter=%2B%7B%7D", "filter=%7B%7D%00", "filter=%7B%7D+x", "filter=%ff", "filter=%7B%7D&x", "filter[a]=1", "svcPublic.n=1", "user=bob", "filter=%7b%22%00%22:1%7d",
	} {
		add(parameters)
	}
	for _, route := range []string{"/choices", "/instance/plain/" + nowhere, "/instance/plain/" + r.ID + "/events", "/instance/plain/" + r.ID + "/history"} {
		cases = append(cases, wrong{
			"parameters of " + route, ask{method: "GET", path: root + route + "?filter=%7B%7D", headers: s.ann.credential}, 400, "InvalidContent",
		})
	}
	posting := s.ann.posting(root+"/create?dry=1", createBody("plain", ""))
	cases = append(cases, wrong{"parameters of create", posting, 400, "InvalidContent"})
	for _, filter := range []string{`{}`, `{`, `{"$where":1}`, `{"svcPrivate.x":1}`} {
		missing := ask{method: "GET", path: root + "/instances/missing?filter=" + escape(filter), headers: s.ann.credential}
		unwatched := ask{method: "GET", path: root + "/watch/missing?filter=" + escape(filter), headers: s.ann.credential}
		others := ask{method: "GET", path: root + "/instances/vault?filter=" + escape(filter), headers: s.eve.credential}
		cases = append(cases, wrong{"filter on a missing workflow", missing, 404, "NotFound"},
			wrong{"filter on a missing workflow's stream", unwatched, 404, "NotFound"},
			wrong{"filter on another's workflow", others, 403, "AccessDenied"})
	}
	s.refuses(t, cases)
}

func wrongFilters() []string {
	filters := []string{
		`null`, `[]`, `"x"`, `1`, `true`, `{`, `}`, `{}{}`, `{} x`, `{"a"}`, `{'svcPublic.a':1}`, `{svcPublic:1}`, `{"svcPublic.a":1,}`, "\ufeff{}",
		`{"svcPublic.a":NaN}`, `{"svcPublic.a":01}`, `{"svcPublic.a":1,"svcPublic.a":1}`, `{"svcPublic.a":1,"svcPublic.\u0061":2}`,
		`{"svcPublic.a":"\ud800"}`, "{\"svcPublic.a\":\"\xff\"}", `{/**/}`, `{"svcPublic.a":undefined}`,
		`{"":1}`, `{".":1}`, `{"svcPublic.":1}`, `{".svcPublic":1}`, `{"svcPublic..b":1}`, `{"a":1}`, `{"nodeId":"a"}`, `{"state.nodeId":"a"}`,
		`{"SVCPUBLIC.a":1}`, `{"svcPublic a":1}`, `{"__proto__.x":1}`, `{"svcRedirect":"x"}`, `{"version":1}`, `{"svcPrivate.x":1}`, `{"svcPrivate":{}}`,
		`{"svcPublic` + strings.Repeat(".a", 1000) + `":1}`,
		`{"svcPublic.a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`,
		`{"svcPublic.a":` + strings.Repeat("[", 21) + strings.Repeat("]", 21) + `}`,
		`{"svcPublic.a":"` + strings.Repeat("x", 16<<10) + `"}`,
		`{"$and":[]}`, `{"$or":[1]}`, `{"$comment":"x","$where":"sleep(1000)"}`, `{"svcPublic.a":{"$where":"1"}}`,
		`{"svcPublic.a":{"$nonsense":1}}`, `{"svcPublic.a":{"$":1}}`,
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`"svcPublic.a%d":1`, i))
	}
	return append(filters, "{"+strings.Join(many, ",")+"}")
}

// TestWrongInputCredentials holds gateway/INTERFACE.md, "Ambiguous credentials", on
// every route.
func TestWrongInputCredentials(t *testing.T) {
	s := newScene(t)
	ann, bob, session := secretOf(s.ann), secretOf(s.bob), s.home.session("ann")
	var cases []wrong
	for _, headers := range [][]string{
		{"Authorization: svc.token " + ann, "Authentication: svc.token " + bob},
		{"Authorization: svc.token " + ann, "Authorization: svc.token " + ann},
		{"Authorization: svc.token " + ann + ",svc.token " + bob},
		{"Cookie: session=" + session + "; session=x"},
		{"Cookie: session=" + session, "Cookie: session=" + session},
	} {
		for _, route := range s.bRoutes(nowhere) {
			route.headers = append(route.headers, headers...)
			cases = append(cases, wrong{fmt.Sprint(route.path, " with ", len(headers), " headers"), route, 400, "InvalidContent"})
		}
	}
	s.refuses(t, cases)
}
