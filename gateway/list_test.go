package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/template"
	"troupe/gateway/internal/kernel"
)

// fakeFiles lists what list says, and has templates without parameters. Its zero
// value has nothing.
type fakeFiles struct {
	list func(yield func(string) error) error
	fail error // of Parameters
}

func (f fakeFiles) List(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
	if f.list == nil {
		return nil
	}
	return f.list(yield)
}

func (f fakeFiles) Parameters(context.Context, *identity.Principal, template.Kind, string) ([]template.Param, error) {
	return []template.Param{}, f.fail
}

const filesPath = "/repository/api/v1/list-files?extension=rml"

// TestLongListsOfFiles are streamed.
func TestLongListsOfFiles(t *testing.T) {
	const many = 50_000
	s := startServer(t, Options{}, nil)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Repository: fakeFiles{list: func(yield func(string) error) error {
		for i := range many {
			if err := yield(fmt.Sprintf("/folder/%06d.rml", i)); err != nil {
				return err
			}
		}
		return nil
	}}})
	a := s.do(t, get(filesPath))
	var paths []string
	err := json.Unmarshal([]byte(a.Body), &paths)
	assert.True(t, err == nil && len(paths) == many && paths[many-1] == "/folder/049999.rml" && a.Header.Get("Content-Length") == "",
		"got %d paths, %v and Content-Length %q, want %d, streamed", len(paths), err, a.Header.Get("Content-Length"), many)
}

// pieces takes an answer and notes the largest piece that it came in.
type pieces struct {
	recorder
	largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.largest = max(p.largest, len(text))
	return p.recorder.Write(text)
}

// TestALongListIsStreamed holds that a list of any length needs the memory of one
// piece.
func TestALongListIsStreamed(t *testing.T) {
	const forms = 20_000
	s := startServer(t, Options{}, nil)
	s.portal.list = func(item func(*formportal.Summary) error) error {
		for range forms {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return nil
	}
	request := newTestRequest("GET", "/form-portal/forms/mycurrent", "", withPortal)
	w := &pieces{recorder: *newRecorder()}
	s.ServeHTTP(w, request)
	assert.Equal(t, "["+strings.Repeat(leaveJSON+",", forms-1)+leaveJSON+"]", w.body.String(), "got %d bytes", w.body.Len())
	assert.True(t, w.largest <= kernel.StreamBytes+len(leaveJSON)+1 && w.header.Get("Content-Length") == "", "%v %v", w.largest, w.header.Get("Content-Length"))
	perForm := testing.AllocsPerRun(1, func() {
		w.body.Reset()
		s.Server.ServeHTTP(w, request)
	}) / forms
	assert.LessOrEqual(t, perForm, 0.1, "allocations a form")
}

// TestPageThatFailsLate holds that a page whose list breaks off is a status, however
// much of it there was.
func TestPageThatFailsLate(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for range 100 {
			if err := item(bigItem); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("query: %w", failure.ErrBusy)
	}})
	a := s.do(t, get("/workflow/api/v1/instances/leave?limit=100"))
	assert.True(t, a.Status == 503 && a.Header.Get("Link") == "", "got %d with Link %q, want 503 without", a.Status, a.Header.Get("Link"))
}

// TestExplainThatCannotBeWritten holds that a fault behind the Link takes it
// away.
func TestExplainThatCannotBeWritten(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(context.Context, *query.Request, func([]byte) error) (*query.End, error) {
		return &query.End{Next: "c1", Explain: &query.Explain{Plan: "scan", Milliseconds: math.NaN()}}, nil
	}})
	a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/instances/leave?limit=1&explain=true", Headers: []string{withModToken}})
	assert.True(t, a.Status == 500 && a.Label() == "Internal" && a.Header.Get("Link") == "", "%v %v %v", a.Status, a.Body, a.Header.Get("Link"))
}

// TestALongHistoryNamesItsPages holds gateway/INTERFACE.md, "The record".
func TestALongHistoryNamesItsPages(t *testing.T) {
	from := uint64(0)
	f := &fakeWorkflows{load: func(_ context.Context, r *message.Load) (*message.Reply, error) {
		reply := smallReply(r.WorkflowID, r.InstanceID, 9, true)
		reply.HistoryFrom = from
		return reply, nil
	}}
	s := startServer(t, Options{}, f)
	for k, want := range []string{"", "", `</workflow/api/v1/instance/order/` + instanceOne + `/history>; rel="prev"`} {
		from = uint64(k)
		a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/instance/order/" + instanceOne, Headers: []string{withToken}})
		got := a.Header.Get("Link")
		assert.True(t, got == want && strings.Contains(a.Body, `],"historyFrom":2,"states"`) == (want != ""), "from %d: got %q, %s", k, got, a.Body)
	}
}
