package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// TestErrorsOfEveryRoute holds that the errors of the actors reach callers as the table
// says, whatever was asked (gateway/INTERFACE.md, "Errors").
func TestErrorsOfEveryRoute(t *testing.T) {
	s := startServer(t, Options{}, nil)
	const instance = "/workflow/api/v1/instance/leave/" + instanceOne
	requests := map[kernel.Group][]request{kernel.GroupWorkflow: {get("/workflow/api/v1/instances/leave?limit=10&count=true")}}
	for _, rt := range s.kernel.Table {
		if !asksNobody(&rt) && (rt.Access.Kinds != 0 || rt.Name == "sign-in") { // the others ask no actor that can fail
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
		s.Open(s.workflows.with(Services{Presentations: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Identities: s.sessions, Portal: s.portal, Repository: f, Templates: f, Homes: s.workflows, Definitions: s.workflows, Migrations: s.workflows, BulkJobs: fakeBulk{s.workflows}}))
	}
	for kind := failure.Kind(1); kind < failure.Kinds; kind++ {
		fail(kind)
		want, tried := kernel.ErrorMappings[kind], 0
		for g, ofGroup := range requests {
			for _, r := range ofGroup {
				if !describes(r, want.Status) || (kind == failure.ErrUnprocessable || kind == failure.ErrLeaseLost) && g == kernel.GroupWorkflow || kind == failure.ErrExecution && r.Path == "/session" {
					continue // it has no such error
				}
				put, ofDefinition := r.Method == "PUT", strings.Contains(r.Path, "/definitions/")
				ofTask, ofEvents := strings.HasSuffix(r.Path, "/task"), kind == failure.ErrNotAllowed || kind == failure.ErrEnded
				retires := r.Method == "DELETE" && ofDefinition
				resets, shows := strings.HasSuffix(r.Path, "/reset"), r.Method == "GET" && strings.HasSuffix(r.Path, "/instance/leave/i1")
				if want.Status == 409 && ((resets || shows) != (kind == failure.ErrNotKept)) && !(resets && kind == failure.ErrKeyTaken) {
					continue // an entry may not be kept
				}
				if creates := strings.HasSuffix(r.Path, "/v1/create"); want.Status == 409 && g == kernel.GroupWorkflow && !resets && creates != (kind == failure.ErrKeyTaken) {
					continue // a create has this one of 409 alone
				}
				deletes := r.Method == "DELETE" && strings.Contains(r.Path, "/instance/")
				if (retires && kind != failure.ErrConflict || deletes) && want.Status == 409 && kind != failure.ErrInUse {
					continue // it has another one of 409
				}
				if !retires && g == kernel.GroupWorkflow && (kind == failure.ErrConflict && !put || (ofEvents || kind == failure.ErrClaimed) && put || ofEvents && ofTask) || kind == failure.ErrExists && !ofDefinition || kind == failure.ErrInUse && g == kernel.GroupWorkflow && !retires && !deletes {
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
				assert.Equal(t, want.Retry, a.Header.Get("Retry-After") != "", "%s %s: %d: Retry-After", r.Method, r.Path, a.Status)
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
	assert.Equal(t, "The workflow failed (expression error). Nothing was saved; until the workflow or the data is another, it fails again. Those who run it see why in troupe incident list. Reference 7ZAB.", kernel.MappingOf(failed).Message(failure.In("send", "x", failed), "id7"), "an expression")
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
