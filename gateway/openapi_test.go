package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
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
		assert.Contains(t, strings.Join(differences(c.table, theInterface()), "\n"), c.want, c.line)
	}
}

// TestTheDocumentsExamples holds that a wrong example is found: describe validates
// all of them; and that a keyword is found which it would pass over.
func TestTheDocumentsExamples(t *testing.T) {
	right, wrong := []byte(`"targets": ["approved"]`), []byte(`"targets": "approved"`)
	require.Equal(t, 1, bytes.Count(openapiYAML, right), "the document has not one %s", right)
	_, err := describe(bytes.Replace(openapiYAML, right, wrong, 1))
	assert.Error(t, err, "an example that does not fit its schema is not found")
	_, err = describe(bytes.Replace(openapiYAML, []byte("properties:"), []byte("patternProperties:"), 1))
	assert.ErrorContains(t, err, "patternProperties")
}

// TestObserverControl plays testdata/observer.txt: exchanges, and what of each the document does not describe. "> " begins the body of the
// request; the answer has the usual headers, which a line changes, and one without a value takes away.
func TestObserverControl(t *testing.T) {
	datadriven.RunTest(t, "testdata/observer.txt", func(t *testing.T, d *datadriven.TestData) string {
		lines := strings.Split(d.Input, "\n")
		method, target, _ := strings.Cut(lines[0], " ")
		address, err := url.Parse(target)
		require.NoError(t, err)
		s := &spoken{base: "/platform", method: method, url: address, header: http.Header{"Content-Type": {"application/json"}}, answerHeader: http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}, "Vary": {"Cookie, Authorization, Authentication"},
		}}
		if body, ok := strings.CutPrefix(lines[1], "> "); ok {
			s.body, lines = []byte(body), lines[1:]
		}
		s.status, err = strconv.Atoi(lines[1])
		require.NoError(t, err)
		for lines = lines[2:]; len(lines) > 0 && header.MatchString(lines[0]+" "); lines = lines[1:] {
			name, value, _ := strings.Cut(lines[0], ": ")
			if name, _ = strings.CutSuffix(name, ":"); value == "" {
				s.answerHeader.Del(name)
			} else {
				s.answerHeader[name] = strings.Split(value, " and ")
			}
		}
		s.answer = []byte(strings.Join(lines, "\n"))
		if err := theInterface().check(s); err != nil {
			prefix := fmt.Sprintf("openapi.yaml does not describe %s %s: %d %.200s: ", s.method, s.url, s.status, s.answer)
			return fmt.Sprintf("%.250s\n", strings.ReplaceAll(strings.TrimPrefix(err.Error(), prefix), "\n", " "))
		}
		return "described\n"
	})
}

// TestTheHarnessObserves holds that what a handler answers gets to the comparison.
func TestTheHarnessObserves(t *testing.T) {
	server, err := New(Options{})
	require.NoError(t, err)
	reply := smallReply("leave", instanceOne, 2, true)
	reply.States = data.Value(`{}`)
	server.Open((&fakeWorkflows{
		load: func(context.Context, *message.Load) (*message.Reply, error) { return reply, nil },
	}).with(Services{Credentials: fakeCredentials{}}))
	for path, want := range map[string]int{"/workflow/api/v1/instance/leave/" + instanceOne: 1, "/workflow/api/v1/choices": 0} {
		o := &observed{Server: server}
		o.ServeHTTP(newRecorder(), newTestRequest("GET", path, "", withToken))
		assert.Len(t, o.faults, want, path)
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
