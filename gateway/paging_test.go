package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/workflow"
)

// TestQueryParameters holds gateway/INTERFACE.md, "Query strings",
// gateway/INTERFACE.md, "Fields", and gateway/INTERFACE.md, "Paging": what each
// parameter may say.
func TestQueryParameters(t *testing.T) {
	type want struct {
		status  int
		request query.Request
		message string // a part of it
	}
	good := func(r query.Request) want { return want{200, r, ""} }
	bad := func(message string) want { return want{400, query.Request{}, message} }
	cases := []struct {
		query string
		want  want
	}{
		{"", good(query.Request{})},
		{"filter=", good(query.Request{})},
		{"filter=%7B%7D", good(query.Request{Filter: "{}"})},
		{"filter=a+b", good(query.Request{Filter: "a b"})},
		{"filter=%257B", good(query.Request{Filter: "%7B"})},
		{"limit=1", good(query.Request{Limit: 1})},
		{"limit=1000", good(query.Request{Limit: 1000})},
		{"limit=%31%30", good(query.Request{Limit: 10})},
		{"limit=7&cursor=c", good(query.Request{Limit: 7, Cursor: "c"})},
		{"limit=7&cursor=%3C%22%3E", good(query.Request{Limit: 7, Cursor: `<">`})}, // the workflows know their cursors
		{"sort=_id", good(query.Request{Sort: "_id"})},
		{"sort=-svcPublic.n", good(query.Request{Sort: "-svcPublic.n"})},
		{"fields=svcHistory", good(query.Request{Fields: []string{"svcHistory"}})},
		{"fields=svcRedirect,svcHistory", good(query.Request{Fields: []string{"svcRedirect", "svcHistory"}})},
		{"count=true", good(query.Request{Count: true})},
		{"count=false", good(query.Request{})},
		{"explain=false", good(query.Request{})},
		{
			"filter=%7B%7D&limit=3&cursor=c&sort=x&fields=svcHistory&count=true&explain=false",
			good(query.Request{Filter: "{}", Limit: 3, Cursor: "c", Sort: "x", Fields: []string{"svcHistory"}, Count: true}),
		},

		{"limit=", bad(`"limit" is empty`)},
		{"limit", bad(`"limit" is empty`)},
		{"limit=0", bad("from 1 to 1000")},
		{"limit=1001", bad("from 1 to 1000")},
		{"limit=-1", bad("from 1 to 1000")},
		{"limit=%2B1", bad("from 1 to 1000")},
		{"limit=+1", bad("from 1 to 1000")}, // a blank
		{"limit=01", bad("from 1 to 1000")},
		{"limit=1.0", bad("from 1 to 1000")},
		{"limit=1e2", bad("from 1 to 1000")},
		{"limit=0x1", bad("from 1 to 1000")},
		{"limit=1_0", bad("from 1 to 1000")},
		{"limit=%EF%BC%91", bad("from 1 to 1000")},
		{"limit=99999999999999999999", bad("from 1 to 1000")},
		{"limit=all", bad("from 1 to 1000")},
		{"limit=1&limit=1", bad(`"limit" is repeated`)},
		{"cursor=c", bad(`"cursor" needs "limit"`)},
		{"limit=1&cursor=", bad(`"cursor" is empty`)},
		{"limit=1&cursor=c%0A", bad(`"cursor" is not valid`)},
		{"limit=1&cursor=a+b", bad(`"cursor" is not valid`)},
		{"limit=1&cursor=%C3%BC", bad(`"cursor" is not valid`)},
		{"sort=", bad(`"sort" is empty`)},
		{"fields=", bad(`"fields" is empty`)},
		{"fields=,", bad(`has the unknown name ""`)},
		{"fields=svcHistory,", bad(`has the unknown name ""`)},
		{"fields=svcHistory,svcHistory", bad(`has "svcHistory" twice`)},
		{"fields=svchistory", bad(`has the unknown name "svchistory"`)},
		{"fields=svcHistory,+svcRedirect", bad(`has the unknown name " svcRedirect"`)},
		{"fields=_id", bad(`has the unknown name "_id"`)},
		{"fields=svcPublic", bad(`has the unknown name "svcPublic"`)},
		{"fields=" + strings.Repeat("x", 500), bad(`has the unknown name "xxxx`)},
		{"fields=svcPrivate", bad("mod-workflows")},
		{"count=", bad(`"count" is empty`)},
		{"count=1", bad(`"count" must be true or false`)},
		{"count=True", bad(`"count" must be true or false`)},
		{"count=yes", bad(`"count" must be true or false`)},
		{"explain=", bad(`"explain" is empty`)},
		{"explain=TRUE", bad(`"explain" must be true or false`)},
		{"offset=1", bad(`unknown query parameter "offset"`)},
		{"Limit=1", bad(`unknown query parameter "Limit"`)},
		{"limit=1;count=true", bad("the query is malformed")},
	}
	s := startServer(t, Options{}, nil)
	for _, c := range cases {
		t.Run(c.query, func(t *testing.T) {
			before := s.workflows.calls()
			a := s.do(t, get("/workflow/api/v1/instances/leave?"+c.query))
			if a.status != c.want.status || !strings.Contains(a.message(), c.want.message) {
				t.Fatalf("got %d %s, want %d with %q", a.status, a.body, c.want.status, c.want.message)
			}
			if c.want.status != 200 {
				checkErrorBody(t, a)
				if a.label() != "InvalidContent" || s.workflows.calls() != before {
					t.Errorf("got the word %q; the workflows were asked: %v", a.label(), s.workflows.calls() != before)
				}
				return
			}
			c.want.request.Caller, c.want.request.WorkflowID = ann, "leave"
			if got := s.workflows.mu.query; fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", c.want.request) {
				t.Errorf("got %+v, want %+v", *got, c.want.request)
			}
		})
	}
}

// TestQueryPrivileges holds gateway/INTERFACE.md, "Private data in queries", and
// gateway/INTERFACE.md, "Explain": what only holders of mod-workflows may ask for.
func TestQueryPrivileges(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, c := range []struct {
		query, header string
		status        int
		word          string
	}{
		{"explain=true", withToken, 403, "AccessDenied"},
		{"explain=true", withModToken, 200, ""},
		{"explain=false", withToken, 200, ""},
		{"fields=svcPrivate", withToken, 400, "InvalidContent"},
		{"fields=svcHistory,svcPrivate", withToken, 400, "InvalidContent"},
		{"fields=svcPrivate", withModToken, 200, ""},
	} {
		before := s.workflows.calls()
		a := s.do(t, request{method: "GET", path: "/workflow/api/v1/instances/leave?" + c.query, headers: []string{c.header}})
		if a.status != c.status || a.label() != c.word {
			t.Errorf("%s: got %d %s, want %d %s", c.query, a.status, a.body, c.status, c.word)
		}
		if asked := s.workflows.calls() != before; asked != (c.status == 200) {
			t.Errorf("%s: the workflows were asked: %v", c.query, asked)
		}
	}
}

// endingWith makes queries and histories that have a next page.
func endingWith(cursor string) *fakeWorkflows {
	return &fakeWorkflows{
		query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
			return &query.End{Next: cursor, Count: 1 << 40}, item([]byte(listedOne))
		},
		history: func(context.Context, *workflow.HistoryRequest) (*workflow.HistoryPage, error) {
			return &workflow.HistoryPage{Entries: []byte(entryOfAnn), Next: cursor}, nil
		},
	}
}

// TestNextPage holds gateway/INTERFACE.md, "Paging": the member next and the
// header Link say the same, and the Link is the same request with another cursor.
func TestNextPage(t *testing.T) {
	const evil = "a+b/c==<>\"\r\nSet-Cookie: x,;&%"
	for _, cursor := range []string{"c1", evil} {
		s := startServer(t, Options{BasePath: "/platform"}, endingWith(cursor))
		for _, c := range []struct{ path, query, want string }{
			{"/workflow/api/v1/instances/leave", "limit=1", "limit=1&cursor="},
			{"/workflow/api/v1/instances/leave", "limit=1&cursor=old", "limit=1&cursor="},
			{
				"/workflow/api/v1/instances/leave", "count=true&sort=-_id&filter=%7b%22svcPublic.a%22:%22x%20%3C%3E%22%7d&limit=5&cursor=x&fields=svcHistory",
				"filter=%7B%22svcPublic.a%22%3A%22x+%3C%3E%22%7D&limit=5&sort=-_id&fields=svcHistory&count=true&cursor=",
			},
			{"/workflow/api/v1/instances/leave", "limit=2&filter=", "filter=&limit=2&cursor="},
			{"/workflow/api/v1/instances/%6Ceave", "limit=2", "limit=2&cursor="},
			{"/workflow/api/v1/instance/leave/i1/history", "", "cursor="},
			{"/workflow/api/v1/instance/leave/i1/history", "cursor=old&limit=3", "limit=3&cursor="},
		} {
			a := s.do(t, get(c.path+"?"+c.query))
			var body struct{ Next string }
			if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 || body.Next != cursor {
				t.Errorf("%s: got %d %s (%v), want next %q", c.query, a.status, a.body, err, cursor)
			}
			path := "/platform" + strings.ReplaceAll(c.path, "%6C", "l")
			want := []string{"<" + path + "?" + c.want + url.QueryEscape(cursor) + `>; rel="next"`}
			if got := a.header.Values("Link"); !slices.Equal(got, want) {
				t.Errorf("%s: Link: got %q, want %q", c.query, got, want)
			}
			if len(a.header.Values("Set-Cookie")) > 0 {
				t.Error("the cursor became a header")
			}
		}
	}
}

// TestLastPage holds that there is no Link when there is no next page, and
// neither when nobody asked for pages.
func TestLastPage(t *testing.T) {
	last, more := startServer(t, Options{}, endingWith("")), startServer(t, Options{}, endingWith("c1"))
	for _, c := range []struct {
		server     *testServer
		path, want string
	}{
		{last, "/workflow/api/v1/instances/leave?limit=1", `{"instances":[` + listedOne + `],"next":null}`},
		{last, "/workflow/api/v1/instances/leave?limit=1&count=true", `{"instances":[` + listedOne + `],"next":null,"count":1099511627776}`},
		{last, "/workflow/api/v1/instance/leave/i1/history", `{"history":[` + entryOfAnn + `],"next":null}`},
		{more, "/workflow/api/v1/instances/leave", `{"instances":[` + listedOne + `]}`},
	} {
		a := c.server.do(t, get(c.path))
		if a.status != 200 || a.body != c.want || len(a.header.Values("Link")) > 0 {
			t.Errorf("%s: got %d %s, Link %q; want %s and none", c.path, a.status, a.body, a.header.Values("Link"), c.want)
		}
	}
}

// TestHistoryParameters holds gateway/INTERFACE.md, "Pages of a history": what it
// takes.
func TestHistoryParameters(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const path = "/workflow/api/v1/instance/leave/i1/history"
	for query, want := range map[string]workflow.HistoryRequest{
		"":                      {Limit: 100},
		"?limit=1":              {Limit: 1},
		"?limit=1000&cursor=c1": {Limit: 1000, Cursor: "c1"},
		"?cursor=c1":            {Limit: 100, Cursor: "c1"},
	} {
		want.Caller, want.WorkflowID, want.InstanceID = ann, "leave", "i1"
		if a := s.do(t, get(path+query)); a.status != 200 || *s.workflows.mu.pages != want {
			t.Errorf("%s: got %d and %+v, want 200 and %+v", query, a.status, *s.workflows.mu.pages, want)
		}
	}
	for _, query := range []string{"?limit=", "?limit=0", "?limit=1001", "?limit=+5", "?cursor=", "?cursor", "?cursor=c%0D", "?limit=1&limit=2", "?filter=%7B%7D", "?count=true", "?sort=_id"} {
		if a := s.do(t, get(path+query)); a.status != 400 || a.label() != "InvalidContent" {
			t.Errorf("%s: got %d %s, want 400", query, a.status, a.body)
		}
	}
	for _, target := range []string{"leave//history", "/i1/history", "leave/-a/history", "leave/i1/History", "leave/i1/history/", "leave/i1/events/x"} {
		if a := s.do(t, get("/workflow/api/v1/instance/"+target)); a.status != 404 {
			t.Errorf("%s: got %d %s, want 404", target, a.status, a.body)
		}
	}
}

// TestPageIsSentWhole holds that a page has its status, its Link and its length
// however large it is, and that a page that fails late is a status.
func TestPageIsSentWhole(t *testing.T) {
	var fail error
	s := startServer(t, Options{}, &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for range 100 {
			if err := item(bigItem); err != nil {
				return nil, err
			}
		}
		return &query.End{Next: "c1"}, fail
	}})
	a := s.do(t, get("/workflow/api/v1/instances/leave?limit=100"))
	if want := fmt.Sprint(len(a.body)); a.status != 200 || a.header.Get("Content-Length") != want || a.header.Get("Link") == "" {
		t.Errorf("got %d, Content-Length %q, Link %q; want 200, %s and a Link", a.status, a.header.Get("Content-Length"), a.header.Get("Link"), want)
	}
	head := s.do(t, request{method: "HEAD", path: "/workflow/api/v1/instances/leave?limit=100", headers: []string{withToken}})
	for _, name := range []string{"Link", "Content-Length"} {
		if head.header.Get(name) != a.header.Get(name) {
			t.Errorf("HEAD: %s: got %q, want %q", name, head.header.Get(name), a.header.Get(name))
		}
	}
	fail = fmt.Errorf("query: %w", failure.ErrBusy)
	a = s.do(t, get("/workflow/api/v1/instances/leave?limit=100"))
	if a.status != 503 || a.header.Get("Link") != "" {
		t.Errorf("got %d with Link %q, want 503 without", a.status, a.header.Get("Link"))
	}
}

// TestExplainThatCannotBeWritten holds that a fault behind the Link takes it
// away.
func TestExplainThatCannotBeWritten(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(context.Context, *query.Request, func([]byte) error) (*query.End, error) {
		return &query.End{Next: "c1", Explain: &query.Explain{Milliseconds: math.NaN()}}, nil
	}})
	a := s.do(t, request{method: "GET", path: "/workflow/api/v1/instances/leave?limit=1&explain=true", headers: []string{withModToken}})
	if a.status != 500 || a.label() != "Internal" || a.header.Get("Link") != "" {
		t.Errorf("got %d %s with Link %q, want 500 without", a.status, a.body, a.header.Get("Link"))
	}
}

// TestQueryMayTakeLongerThanARequest holds that a query goes on when ReadMax is
// over, and that its answer has WriteMax from its end.
func TestQueryMayTakeLongerThanARequest(t *testing.T) {
	const short = 250 * time.Millisecond
	s := startServer(t, Options{ReadMax: short, HeaderReadMax: short, WriteMax: short}, &fakeWorkflows{
		query: func(ctx context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
			select {
			case <-time.After(2 * short):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return smallEnd(), item([]byte(listedOne))
		},
	})
	for _, query := range []string{"", "?limit=1"} {
		if a := s.do(t, get("/workflow/api/v1/instances/leave"+query)); a.status != http.StatusOK {
			t.Errorf("%q: got %d %s, want 200", query, a.status, a.body)
		}
	}
}
