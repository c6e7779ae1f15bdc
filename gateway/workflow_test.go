package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/statemachine/data"
)

// TestWorkflowRoutes goes through the operations of group B in gateway/openapi.yaml,
// and holds gateway/INTERFACE.md, "Success is 200", and gateway/INTERFACE.md,
// "The record". Each case says what it holds.
func TestWorkflowRoutes(t *testing.T) {
	record := func(history bool) string {
		text := `{"_id":"` + instanceOne + `","workflowId":"leave","svcPublic":{},"svcPrivate":{}`
		if history {
			text += `,"svcHistory":[` + entryOfAnn + `]`
		}
		return text + `,"states":[{"stateMachineId":"main","nodeId":"draft"}]}`
	}
	cases := []struct {
		line    string
		request request
		want    string
		tag     string
	}{
		{
			line:    "POST workflow/api/v1/create | {workflowId, instanceId, state} where state is the instance record",
			request: post("create", createBody),
			want:    `{"workflowId":"leave","instanceId":"` + instanceOne + `","state":` + record(true) + `}`,
			tag:     `"1"`,
		},
		{
			line:    "POST workflow/api/v1/create | data: object with optional svcPublic object and optional svcPrivate object",
			request: post("create", `{"workflowId":"leave","data":{}}`),
			want:    `{"workflowId":"leave","instanceId":"` + instanceOne + `","state":` + record(true) + `}`,
			tag:     `"1"`,
		},
		{
			line:    "POST workflow/api/v1/create | workflowId (string, required), data (optional)",
			request: post("create", `{"workflowId":"leave"}`),
			want:    `{"workflowId":"leave","instanceId":"` + instanceOne + `","state":` + record(true) + `}`,
			tag:     `"1"`,
		},
		{
			line:    "POST workflow/api/v1/event | {workflowId, instanceId, state} with the updated instance record",
			request: post("event", eventBody),
			want:    `{"workflowId":"leave","instanceId":"` + instanceOne + `","state":` + record(true) + `}`,
			tag:     `"2"`,
		},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			s := startServer(t, Options{}, nil)
			a := s.do(t, c.request)
			if a.status != 200 || a.body != c.want {
				t.Errorf("got %d %s\nwant 200 %s", a.status, a.body, c.want)
			}
			if got := a.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type: got %q, want application/json", got)
			}
			if got := a.header.Get("ETag"); got != c.tag {
				t.Errorf("ETag: got %q, want %q", got, c.tag)
			}
			if got, want := a.header.Get("Content-Length"), fmt.Sprint(len(c.want)); got != want {
				t.Errorf("Content-Length: got %q, want %q", got, want)
			}
		})
	}
}

// TestWorkflowRequests holds what the requests of group B hand on.
func TestWorkflowRequests(t *testing.T) {
	s := startServer(t, Options{}, nil)
	t.Run("create hands on the objects of data as they were sent", func(t *testing.T) {
		s.do(t, post("create", ` { "workflowId" : "leave", "data": {"svcPublic": {"b": 9007199254740993, "a": "\u0041"}} } `))
		got := s.workflows.lastCreate()
		if got.WorkflowID != "leave" || got.Caller != ann || !got.WithHistory {
			t.Errorf("got workflow %q, caller %v, history %v", got.WorkflowID, got.Caller, got.WithHistory)
		}
		if want := `{"b":9007199254740993,"a":"\u0041"}`; got.Public.String() != want {
			t.Errorf("svcPublic: got %s, want %s", got.Public, want)
		}
		if got.Private.Kind() != data.Absent {
			t.Errorf("svcPrivate: got %s, want nothing", got.Private)
		}
		if got.Retry != (workflow.Retry{}) {
			t.Errorf("retry: got %v, want none", got.Retry)
		}
	})
	t.Run("event hands on name, data and id", func(t *testing.T) {
		s.do(t, post("event", `{"workflowId":"leave","instanceId":"i1","event":{"id":"k1","name":"approve","data":{"svcPublic":{}}}}`))
		got := s.workflows.lastEvent()
		if got.WorkflowID != "leave" || got.InstanceID != "i1" || got.Name != "approve" || got.ID != "k1" || got.Retry.Key != "k1" {
			t.Errorf("got %+v", got)
		}
		if got.Data.String() != `{"svcPublic":{}}` || got.IfMatch != nil {
			t.Errorf("got data %s, If-Match %v", got.Data, got.IfMatch)
		}
	})
}

// TestWorkflowErrors goes through the errors of group B (gateway/INTERFACE.md,
// "Errors").
func TestWorkflowErrors(t *testing.T) {
	cases := []struct {
		line   string
		err    error
		status int
		word   string
		retry  bool
	}{
		{"400 InvalidContent | Invalid workflow data format", failure.ErrInvalid, 400, "InvalidContent", false},
		{"403 AccessDenied | No permission to access the workflow", failure.ErrForbidden, 403, "AccessDenied", false},
		{"404 NotFound | Workflow or instance not found", failure.ErrNotFound, 404, "NotFound", false},
		{"500 MarshallingError | Workflow data could not be processed", failure.ErrExecution, 500, "MarshallingError", false},
		{"409 | AlreadyExists, EventNotAllowed", failure.ErrNotAllowed, 409, "EventNotAllowed", false},
		{"412 | PreconditionFailed", failure.ErrPrecondition, 412, "PreconditionFailed", false},
		{"413 | TooLarge", failure.ErrTooLarge, 413, "TooLarge", false},
		{"422 | KeyReused for an idempotency key", failure.ErrKeyReused, 422, "KeyReused", false},
		{"429, 503, 504 | Busy", failure.ErrInstanceBusy, 429, "Busy", true},
		{"429, 503, 504 | Busy", failure.ErrBusy, 503, "Busy", true},
		{"429, 503, 504 | Unavailable", failure.ErrUnavailable, 503, "Unavailable", true},
		{"429, 503, 504 | OutcomeUnknown", failure.ErrOutcomeUnknown, 504, "OutcomeUnknown", false},
		{"500 | otherwise Internal", failure.ErrInternal, 500, "Internal", false},
		{"500 | an error that nobody knows", errors.New("disk on fire at /secret/place"), 500, "Internal", false},
	}
	var current error
	fail := fmt.Errorf
	workflows := &fakeWorkflows{
		create: func(context.Context, *workflow.CreateRequest) (*workflow.Reply, error) {
			return nil, fail("create: %w", current)
		},
		send: func(context.Context, *workflow.EventRequest) (*workflow.Reply, error) {
			return nil, fail("send: %w", current)
		},
		load: func(context.Context, *workflow.LoadRequest) (*workflow.Reply, error) {
			return nil, fail("load: %w", current)
		},
		query: func(context.Context, *query.Request, func([]byte) error) (*query.End, error) {
			return nil, fail("query: %w", current)
		},
		events: func(context.Context, *workflow.LoadRequest) (*workflow.EventsReply, error) {
			return nil, fail("events: %w", current)
		},
		history: func(context.Context, *workflow.HistoryRequest) (*workflow.HistoryPage, error) {
			return nil, fail("history: %w", current)
		},
		watch: func(context.Context, *watch.Request, func(watch.Event) error) error {
			return fail("watch: %w", current)
		},
	}
	s := startServer(t, Options{}, workflows)
	requests := []request{
		post("create", createBody), post("event", eventBody),
		get("/workflow/api/v1/instance/leave/" + instanceOne), get("/workflow/api/v1/instances/leave"),
		get("/workflow/api/v1/instances/leave?limit=10&count=true"), get("/workflow/api/v1/instance/leave/" + instanceOne + "/events"),
		get("/workflow/api/v1/instance/leave/" + instanceOne + "/history"), get("/workflow/api/v1/watch/leave"),
		get("/workflow/api/v1/watch/leave/" + instanceOne),
	}
	tried := 0
	for _, c := range cases {
		current = c.err
		for _, r := range requests {
			if !describes(r, c.status) {
				continue // it has no such error
			}
			tried++
			t.Run(c.line+" "+r.path, func(t *testing.T) {
				a := s.do(t, r)
				if a.status != c.status || a.label() != c.word || a.message() == "" {
					t.Errorf("got %d %s, want %d %s", a.status, a.body, c.status, c.word)
				}
				if got := a.header.Get("Retry-After") != ""; got != c.retry {
					t.Errorf("Retry-After: got %v, want %v", got, c.retry)
				}
				if a.header.Get("ETag") != "" {
					t.Errorf("an error carries the entity tag %s", a.header.Get("ETag"))
				}
				if strings.Contains(a.body, "secret") {
					t.Errorf("the answer tells what happened inside: %s", a.body)
				}
				checkErrorBody(t, a)
			})
		}
	}
	if tried < 90 {
		t.Errorf("tried %d errors", tried)
	}
}

// TestInternalErrorIsInTheLogUnderItsID ties the answer of a 500 to the log.
func TestInternalErrorIsInTheLogUnderItsID(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{
		load: func(context.Context, *workflow.LoadRequest) (*workflow.Reply, error) {
			return nil, errors.New("disk on fire")
		},
	})
	a := s.do(t, get("/workflow/api/v1/instance/leave/i1"))
	message := a.message()
	id := message[strings.LastIndexByte(message, ' ')+1:]
	log := s.log.String()
	if !strings.Contains(log, `"request":"`+id+`"`) || !strings.Contains(log, "disk on fire") {
		t.Errorf("the log has nothing about %q: %s", id, log)
	}
}
