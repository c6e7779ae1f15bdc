package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/gateway/errorpage"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// TestEveryKindHasARow: a new kind without a row fails here.
func TestEveryKindHasARow(t *testing.T) {
	for kind := failure.Kind(1); kind < failure.Kinds; kind++ {
		if f := kernel.MappingOf(fmt.Errorf("operation: %w", kind)); f.Status == 0 || f.Text == "" || kind.Error() == "" {
			t.Errorf("kind %d: got the row %+v and the text %q", kind, f, kind.Error())
		}
	}
}

// TestErrorLabels holds the table of gateway/INTERFACE.md, "Errors".
func TestErrorLabels(t *testing.T) {
	for _, c := range []struct {
		status                 int
		portal, workflow, file string
	}{
		{400, "Bad request", "InvalidContent", "BadRequest"},
		{401, "Unauthorized", "Unauthorized", "Unauthorized"},
		{403, "Access denied", "AccessDenied", "AccessDenied"},
		{404, "Not found", "NotFound", "NotFound"},
		{405, "Method not allowed", "MethodNotAllowed", "MethodNotAllowed"},
		{409, "Conflict", "EventNotAllowed|Claimed|Ended|Conflict|AlreadyExists|InUse", "EventNotAllowed|Claimed|Ended|Conflict|AlreadyExists|InUse"},
		{412, "Precondition failed", "PreconditionFailed", "PreconditionFailed"},
		{413, "Too large", "TooLarge", "TooLarge"},
		{415, "Unsupported media type", "UnsupportedMediaType", "UnsupportedMediaType"},
		{422, "Unprocessable", "KeyReused|Unprocessable", "Unprocessable"},
		{429, "Busy", "Busy", "Busy"},
		{503, "Busy", "Busy|Unavailable", "Busy|Unavailable"},
		{504, "Busy", "OutcomeUnknown", "OutcomeUnknown"},
		{500, "Server error", "MarshallingError|Internal", "MarshallingError|Internal"},
	} {
		rows := 0
		for _, f := range kernel.ErrorMappings[1:] {
			if f.Status != c.status {
				continue
			}
			rows++
			for g, want := range map[kernel.Group]string{kernel.GroupPortal: c.portal, kernel.GroupWorkflow: c.workflow, kernel.GroupFile: c.file} {
				got := f.Labels[g]
				assert.True(t, got != "" && strings.Contains("|"+want+"|", "|"+got+"|"), "%d in group %d: got %q, want %s", c.status, g, got, want)
			}
			assert.Equal(t, c.status == 429 || c.status == 503, f.Retry, "%d: Retry-After", c.status)
		}
		assert.NotZero(t, rows, "no row has the status %d", c.status)
	}
}

// TestErrorsOfEveryRoute holds that the errors of the actors reach callers as the table
// says, whatever was asked (gateway/INTERFACE.md, "Errors").
func TestErrorsOfEveryRoute(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const instance = "/workflow/api/v1/instance/leave/" + instanceOne
	requests := map[kernel.Group][]request{kernel.GroupWorkflow: {get("/workflow/api/v1/instances/leave?limit=10&count=true")}}
	for _, rt := range s.kernel.Table {
		if !slices.Contains([]string{"choices", "session", "health"}, rt.Name) && (rt.Access.Kinds != 0 || rt.Name == "sign-in") { // the others ask no actor that can fail
			requests[rt.Group] = append(requests[rt.Group], requestOf(t, &rt))
		}
	}
	fail := func(err error) {
		err = fmt.Errorf("at /secret/place: %w", err)
		s.workflows.setFail(err)
		s.sessions.setFail(err)
		s.portal.setFail(err)
		f := fakeFiles{fail: err, list: func(yield func(string) error) error {
			return errors.Join(yield("/a.rml"), err) // a short piece, which is not sent yet
		}}
		s.Open(s.workflows.with(Services{Presentations: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Portal: s.portal, Repository: f, Templates: f, Homes: s.workflows, Definitions: s.workflows, Migrations: s.workflows}))
	}
	for kind := failure.Kind(1); kind < failure.Kinds; kind++ {
		fail(kind)
		want, tried := kernel.ErrorMappings[kind], 0
		for g, ofGroup := range requests {
			for _, r := range ofGroup {
				if !describes(r, want.Status) || kind == failure.ErrUnprocessable && g == kernel.GroupWorkflow || kind == failure.ErrExecution && r.Path == "/session" {
					continue // it has no such error
				}
				put, ofDefinition := r.Method == "PUT", strings.Contains(r.Path, "/definitions/")
				ofTask, ofEvents := strings.HasSuffix(r.Path, "/task"), kind == failure.ErrNotAllowed || kind == failure.ErrEnded
				retires := r.Method == "DELETE" && ofDefinition
				if retires && want.Status == 409 && kind != failure.ErrConflict && kind != failure.ErrInUse {
					continue // it has another one of 409
				}
				if !retires && g == kernel.GroupWorkflow && (kind == failure.ErrConflict && !put || (ofEvents || kind == failure.ErrClaimed) && put || ofEvents && ofTask) || kind == failure.ErrExists && !ofDefinition || kind == failure.ErrInUse && g == kernel.GroupWorkflow && !retires {
					continue // it has another one of 409
				}
				tried++
				a := s.do(t, r)
				if strings.HasSuffix(r.Path, "/v1/events") { // its items have the errors
					item := fmt.Sprintf(`{"status":%d,"error":%q,`, want.Status, want.Labels[g])
					assert.True(t, a.Status == 200 && strings.Count(a.Body, item) == 2 && !strings.Contains(a.Body, "secret"), "%v %v %v", a.Status, a.Body, item)
					continue
				}
				if a.Status != want.Status || a.Label() != want.Labels[g] || strings.Contains(a.Body, "secret") || a.Header.Get("ETag") != "" || a.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s %s: got %d %s %v, want %d %s", r.Method, r.Path, a.Status, a.Body, a.Header, want.Status, want.Labels[g])
				}
				got := a.Header.Get("Retry-After") != ""
				assert.Equal(t, want.Retry, got, "%s %s: %d: Retry-After", r.Method, r.Path, a.Status)
			}
		}
		if tried == 0 && kind != failure.ErrMethod { // which is of a path
			t.Errorf("no route answers %d", want.Status)
		}
	}
	fail(errors.New("disk on fire"))
	a := s.do(t, get(instance))
	id := a.Message()[strings.LastIndexByte(a.Message(), ' ')+1:]
	log := s.log.String()
	assert.True(t, a.Status == 500 && strings.Contains(log, `"request":"`+id+`"`) && strings.Contains(log, "disk on fire"), "%v %v %v", a.Status, id, log)
	assert.Equal(t, "127.0.0.1", s.sessions.address.String(), "the sign-in came")
}

// TestErrorMessages holds what a message may be made of.
func TestErrorMessages(t *testing.T) {
	long := parse.Malformed("%s", strings.Repeat("ü", 1000))
	got := kernel.MappingOf(long).Message(long, "")
	assert.True(t, len(got) <= parse.MessageBytesMax+len("…") && strings.HasSuffix(got, "ü…"), "a long text: got %d bytes, %q", len(got), got)
	evil := "invalid content: " + strings.Repeat("x", 300)
	for _, c := range []struct {
		err  error
		want string
	}{
		{failure.ErrInvalid, "invalid content"},
		{parse.Malformed("unknown event"), "unknown event"},
		{fmt.Errorf("send %q: %w", evil, parse.Malformed("%w", errors.New("unknown event"))), "unknown event"},
		{fmt.Errorf("send %q: %w", evil, errors.Join(errors.New("other"), parse.Malformed("unknown event"))), "unknown event"},
		{parse.Malformed("the body is %s", "wrong"), "the body is wrong"},
	} {
		assert.Equal(t, c.want, kernel.MappingOf(c.err).Message(c.err, ""), c.err)
	}
	failed := error(&failure.Error{Kind: failure.ErrExecution, Reference: "7ZAB", Cause: errors.New("no such key")})
	got = kernel.MappingOf(failed).Message(failure.In("send", "x", failed), "id7")
	assert.Equal(t, "The workflow failed (expression error). Nothing was saved. Reference 7ZAB.", got, "an expression")
	again := failure.Refuse(failure.ErrExecution, "the event failed again: no such key")
	assert.Equal(t, "the event failed again: no such key", kernel.MappingOf(again).Message(again, "id7"), "a retry")
	f := kernel.MappingOf(errors.New("new"))
	assert.True(t, f == &kernel.ErrorMappings[failure.ErrInternal] && f.Message(nil, "id7") == "an internal error occurred; the log has more under id7", f)
}

// TestRetryAfterHasJitter holds gateway/INTERFACE.md, "Refusals under load":
// callers who were refused together do not come back together.
func TestRetryAfterHasJitter(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		seen[kernel.RetryAfter(kernel.RetryAfterMin)[0]] = true
	}
	assert.Len(t, seen, 3, "got the values")
}

// TestQuotaErrorNamesTheQuota holds gateway/INTERFACE.md, "Quotas": the answer names the
// quota, and says when the next request passes.
func TestQuotaErrorNamesTheQuota(t *testing.T) {
	const rate, entries = "a user can send at most 3 events per second", "an instance can have at most 7 history entries"
	for _, c := range []struct {
		err         error
		want, retry string
	}{
		{&failure.Error{Kind: failure.ErrQuota, Reason: rate + "; nothing was done", Wait: 90*time.Second + 1}, rate, "91"},
		{(&quota.Limits{HistoryEntries: 7}).MayAdd(7), entries, "3600"},
	} {
		s := startServer(t, Options{}, &fakeWorkflows{send: func(context.Context, *message.Event) (*message.Reply, error) {
			return nil, fmt.Errorf("send to leave: %w", c.err)
		}})
		a := s.do(t, post("event", eventBody))
		got := a.Header.Get("Retry-After")
		assert.True(t, a.Status == 429 && a.Label() == "Busy" && a.Message() == c.want+"; nothing was done" && got == c.retry,
			"got %d %s and Retry-After %q, want 429 Busy, %q and %q", a.Status, a.Body, got, c.want, c.retry)
	}
}

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
		server.Open(new(fakeWorkflows).with(Services{Credentials: fakeCredentials{}, Portal: new(fakePortal), Sessions: new(fakeSessions)}))
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
