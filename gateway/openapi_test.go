package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
	"troupe/statemachine/data"
)

// TestTheDocumentIsTheTable holds openapi.yaml against the table of routes, both
// ways.
func TestTheDocumentIsTheTable(t *testing.T) {
	for _, fault := range differences(routes(), theInterface()) {
		t.Error(fault)
	}
}

// differences says where a table of routes and a document differ.
func differences(table []kernel.Route, d *contract) (faults []string) {
	pathParameter := regexp.MustCompile(`:([A-Za-z]+)`)
	registered := map[string]bool{}
	for _, rt := range table {
		path := pathParameter.ReplaceAllString(rt.Path, "{$1}")
		registered[rt.Method+" "+path] = true
		i := slices.IndexFunc(d.operations, func(o operation) bool { return o.method == rt.Method && o.path == path })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("the document lacks %s %s", rt.Method, path))
			continue
		}
		o := d.operations[i]
		fault := func(format string, args ...any) {
			faults = append(faults, o.OperationID+": "+fmt.Sprintf(format, args...))
		}
		if got, _ := o.Extensions["x-privilege"].(string); got != string(rt.Privilege) {
			fault("the document says privilege %q, the table %q", got, rt.Privilege)
		}
		if got, want := kindsOf(d.doc, o.Operation), rt.Access.Kinds; got != want {
			fault("the document says the credentials %b, the table %b", got, want)
		}
		if got, want := queryOf(o.Operation), slices.Sorted(slices.Values(rt.Query)); !rt.AnyQuery && !rt.Access.Probe && !slices.Equal(got, want) {
			fault("the document says the query %q, the table %q", got, want)
		}
		for _, match := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
			if o.item.Parameters.GetByInAndName("path", match[1]) == nil && o.Parameters.GetByInAndName("path", match[1]) == nil {
				fault("the parameter %s is not described", match[1])
			}
		}
		if o.Summary == "" || o.OperationID == "" || len(o.Tags) != 1 || d.doc.Tags.Get(o.Tags[0]) == nil {
			fault("it lacks a summary, or one of the tags that there are")
		}
		if signed := rt.Access.Kinds != 0; signed && (o.Description == "" || o.Responses.Status(401) == nil) {
			fault("it lacks a description or a 401")
		}
	}
	for _, o := range d.operations {
		if !registered[o.method+" "+o.path] {
			faults = append(faults, fmt.Sprintf("no route is %s %s of the document", o.method, o.path))
		}
	}
	return faults
}

func kindsOf(doc *openapi3.T, o *openapi3.Operation) (kinds identity.Kind) {
	requirements := doc.Security
	if o.Security != nil {
		requirements = *o.Security
	}
	tokens := 0
	for _, requirement := range requirements {
		for scheme := range requirement {
			switch scheme {
			case "session":
				kinds |= identity.Session
			case "authorization", "authentication":
				tokens++
			}
		}
	}
	if tokens == 2 { // both headers, or none
		kinds |= identity.Token
	}
	return kinds
}

func queryOf(o *openapi3.Operation) (names []string) {
	for _, p := range o.Parameters {
		if p.Value.In == "query" {
			names = append(names, p.Value.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestTheDocumentIsTheTableControl plants what the comparison must find.
func TestTheDocumentIsTheTableControl(t *testing.T) {
	change := func(name string, f func(*kernel.Route)) []kernel.Route {
		table := routes()
		f(&table[slices.IndexFunc(table, func(rt kernel.Route) bool { return rt.Name == name })])
		return table
	}
	cases := []struct {
		line  string
		table []kernel.Route
		want  string
	}{
		{"a route that is not described", append(routes(), kernel.Route{Method: "GET", Path: "/secret"}), "the document lacks GET /secret"},
		{"an operation without a route", routes()[1:], "no route is POST /workflow/api/v1/create"},
		{"another method", change("event", func(rt *kernel.Route) { rt.Method = "PUT" }), "the document lacks PUT"},
		{"another privilege", change("role-info", func(rt *kernel.Route) { rt.Privilege = identity.Form }), "getRoleInfo: the document says privilege"},
		{"no privilege", change("role-info", func(rt *kernel.Route) { rt.Privilege = "" }), "getRoleInfo: the document says privilege"},
		{"tokens are not taken", change("create", func(rt *kernel.Route) { rt.Access = kernel.SignedIn(identity.Session) }), "createInstance: the document says the credentials"},
		{"nobody signs", change("session", func(rt *kernel.Route) { rt.Access = kernel.Public }), "getSession: the document says the credentials"},
		{"another query parameter", change("history", func(rt *kernel.Route) { rt.Query = []string{"limit"} }), "listHistory: the document says the query"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			faults := differences(c.table, theInterface())
			assert.True(t, slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }), "got %q, want %q among them", faults, c.want)
		})
	}
}

// TestTheDocumentsExamples holds that a wrong example is found: describe validates
// all of them.
func TestTheDocumentsExamples(t *testing.T) {
	right, wrong := []byte(`"targets": ["approved"]`), []byte(`"targets": "approved"`)
	require.Equal(t, 1, bytes.Count(openapiYAML, right), "the document has not one %s", right)
	_, err := describe(bytes.Replace(openapiYAML, right, wrong, 1))
	assert.Error(t, err, "an example that does not fit its schema is not found")
}

// TestObserverControl holds that exchanges which the document does not describe are
// found, and that the same ones without the fault are not.
func TestObserverControl(t *testing.T) {
	const record = `{"_id":"i1","workflowId":"leave","svcPublic":{"a":1},"svcPrivate":{},"states":[{"stateMachineId":"main","nodeId":"draft"}]}`
	exchange := func(change func(*spoken)) *spoken {
		s := &spoken{
			base: "/platform", method: "POST", url: &url.URL{Path: "/platform/workflow/api/v1/create"},
			header: http.Header{"Content-Type": {"application/json"}}, body: []byte(createBody),
			status: 200, answerHeader: http.Header{
				"Content-Type": {"application/json"}, "Etag": {`"1"`}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
				"Vary": {"Cookie, Authorization, Authentication"},
			},
			answer: []byte(`{"workflowId":"leave","instanceId":"i1","state":` + record + `}`),
		}
		if change != nil {
			change(s)
		}
		return s
	}
	get := func(path, query, answer string) *spoken {
		return exchange(func(s *spoken) {
			s.method, s.url, s.body, s.answer = "GET", &url.URL{Path: "/platform" + path, RawQuery: query}, nil, []byte(answer)
		})
	}
	refused := func(status int, word string) *spoken {
		return exchange(func(s *spoken) {
			s.status, s.answer = status, []byte(`{"error":"`+word+`","message":"x"}`)
			delete(s.answerHeader, "Etag")
		})
	}
	stream := func(events string) *spoken {
		s := get("/workflow/api/v1/watch/leave", "", events)
		s.answerHeader.Set("Content-Type", "text/event-stream")
		delete(s.answerHeader, "Etag")
		return s
	}
	const entry = `{"workflowId":"leave","instanceId":"i1","sequence":2,"entry":{"user":"ann","startState":[],"transitionEvent":"x","endState":[],"ts":"2026-01-02T03:04:05.000Z"},"states":[]}`
	cases := []struct {
		line string
		s    *spoken
		want string // empty: it is described
	}{
		{"as it should be", exchange(nil), ""},
		{"a refusal", refused(404, "NotFound"), ""},
		{"HEAD", exchange(func(s *spoken) {
			*s = *get("/workflow/api/v1/choices", "", "")
			s.method = "HEAD"
			delete(s.answerHeader, "Etag")
		}), ""},
		{"a status that is not declared", refused(409, "AlreadyExists"), "createInstance has no status 409"},
		{"the word of another group", refused(404, "Not found"), "doesn't match"},
		{"a member more", exchange(func(s *spoken) { s.answer = bytes.Replace(s.answer, []byte(`"_id"`), []byte(`"more":1,"_id"`), 1) }), "more"},
		{"another content type", exchange(func(s *spoken) { s.answerHeader.Set("Content-Type", "text/plain") }), "text/plain"},
		{"a header is missing", exchange(func(s *spoken) { delete(s.answerHeader, "Etag") }), "ETag"},
		{"a header is wrong", exchange(func(s *spoken) { s.answerHeader.Set("Etag", "7") }), "ETag"},
		{"an answer that may be kept", exchange(func(s *spoken) { delete(s.answerHeader, "Cache-Control") }), "Cache-Control"},
		{"a header twice", exchange(func(s *spoken) { s.answerHeader.Add("X-Content-Type-Options", "nosniff") }), "X-Content-Type-Options"},
		{"what differs by credential", exchange(func(s *spoken) { s.answerHeader.Set("Vary", "Cookie") }), "Vary"},
		{"Retry-After without a reason", exchange(func(s *spoken) { s.answerHeader.Set("Retry-After", "1") }), "Retry-After"},
		{"a header that is not declared", exchange(func(s *spoken) { s.answerHeader.Set("X-More", "7") }), "X-More"},
		{"a member of the request that is not declared", exchange(func(s *spoken) { s.body = []byte(`{"workflowId":"leave","more":1}`) }), "more"},
		{"no body", exchange(func(s *spoken) { s.body = nil }), "without a body"},
		{"an id that is none", get("/workflow/api/v1/instance/-/i1", "", `{"state":`+record+`}`), "workflowId"},
		{"a path that is none", get("/workflow/api/v1/nothing", "", `{}`), "no such operation"},
		{"outside the base path", exchange(func(s *spoken) { s.url = &url.URL{Path: "/workflow/api/v1/create"} }), "no such operation"},
		{"an event of a stream", exchange(func(s *spoken) { *s = *stream("id: 1\n\nevent: entry\ndata: " + entry + "\n\n: beat\n\n") }), ""},
		{"an event that is not declared", stream("event: more\ndata: {}\n\n"), "more"},
		{"the data of an event", stream("event: lost\ndata: {}\n\n"), "message"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			err := theInterface().check(c.s)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want one with %q", err, c.want)
			}
		})
	}
}

type deaf struct {
	testing.TB
	cleanup []func()
	told    []string
}

func (d *deaf) Cleanup(f func()) { d.cleanup = append(d.cleanup, f) }

func (d *deaf) Error(args ...any) { d.told = append(d.told, fmt.Sprint(args...)) }

// TestTheHarnessObserves holds that what a handler answers gets to the comparison.
func TestTheHarnessObserves(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short the harness does not look")
	}
	server, err := New(Options{})
	require.NoError(t, err)
	reply := smallReply("leave", instanceOne, 2, true)
	reply.States = data.Value(`{}`)
	server.Open(Services{Credentials: fakeCredentials{}, Workflows: &fakeWorkflows{
		load: func(context.Context, *message.Load) (*message.Reply, error) { return reply, nil },
	}})
	for path, want := range map[string]int{"/workflow/api/v1/instance/leave/" + instanceOne: 1, "/workflow/api/v1/choices": 0} {
		d := &deaf{TB: t}
		observe(d, server).ServeHTTP(newRecorder(), newTestRequest("GET", path, "", withToken))
		for _, f := range d.cleanup {
			f()
		}
		assert.Len(t, d.told, want, path)
	}
}

// TestTheDocumentAsJSON compares with what another reader of YAML makes of the
// source.
func TestTheDocumentAsJSON(t *testing.T) {
	var forms [][]byte
	for _, source := range [][]byte{openapiYAML, described.JSON().Body} {
		doc, err := openapi3.NewLoader().LoadFromData(source)
		require.NoError(t, err)
		form, err := doc.MarshalJSON()
		require.NoError(t, err)
		forms = append(forms, form)
	}
	assert.True(t, bytes.HasPrefix(described.JSON().Body, []byte(`{"openapi":"3.1.0",`)) && bytes.Equal(forms[0], forms[1]), described.JSON().Body)
}

// TestThePageHasEveryOperation with its parameters and statuses.
func TestThePageHasEveryOperation(t *testing.T) {
	page := string(described.Page().Body)
	for _, o := range theInterface().operations {
		_, article, found := strings.Cut(page, `<article id="`+o.OperationID+`"`)
		article, _, _ = strings.Cut(article, "</article>")
		assert.True(t, found && strings.Contains(article, o.path) && strings.Contains(page, `<a href="#`+o.OperationID+`">`), "the page has no %s", o.OperationID)
		for _, p := range slices.Concat(o.Parameters, o.item.Parameters) {
			assert.Contains(t, article, `<dt><code>`+p.Value.Name+`</code>`, "%s lacks the parameter %s", o.OperationID, p.Value.Name)
		}
		for status := range o.Responses.Map() {
			assert.Contains(t, article, `<code>`+status+`</code>`, "%s lacks the status %s", o.OperationID, status)
		}
	}
}
