package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// FuzzBatch sends any bytes as a batch. Lines are answered as a reader answers them that
// has all of them at once, however they come in, and an array as its elements.
func FuzzBatch(f *testing.F) {
	s := newRouteFuzzer(f)
	for _, seed := range []string{
		"", "[]", "[1,{}]", eventBody + "\n" + createBody + "\r\n\n \n1\n{\n" + eventBody, "[" + eventBody + "," + createBody + "]", "[" + eventBody, eventBody + "\n\"\xff\"",
		strings.Repeat(createBody+"\n", 300), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(" \n", 20_000) + `{"a":"` + strings.Repeat("b", 70_000) + `"}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, byBytes bool) {
		send := func(contentType string, byBytes bool) answer {
			r := newTestRequest("POST", "/workflow/api/v1/events", " ", withToken, "Content-Type: "+contentType)
			r.ContentLength = -1
			var body io.Reader = bytes.NewReader(text)
			if byBytes {
				body = iotest.OneByteReader(body)
			}
			r.Body = io.NopCloser(body)
			w := newRecorder()
			s.ServeHTTP(w, r)
			return answer{Status: w.status, Body: w.body.String()}
		}
		want := ""
		for line := range bytes.SplitSeq(text, []byte{'\n'}) {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			item, err := data.Clean(line)
			if err != nil {
				want += "400,"
				break
			}
			want += s.alone(item)
		}
		got := send("application/x-ndjson", byBytes)
		assert.False(t, got.Status != 200 || statusesOf(t, strings.Split(got.Body, "\n")) != want, "lines %q: got %d %s, want %s", text, got.Status, got.Body, want)
		got = send("application/json", byBytes)
		if got.Status == 400 {
			items, err := data.CleanArray(text, 1<<20)
			assert.Error(t, err, "%q has %d items, and got %s", text, len(items), got.Body)
			return
		}
		var items []json.RawMessage
		var reply struct{ Results []json.RawMessage }
		require.True(t, json.Unmarshal(text, &items) == nil && json.Unmarshal([]byte(got.Body), &reply) == nil, "array %q: got %d %s", text, got.Status, got.Body)
		want = ""
		for _, item := range items {
			item, _ := data.Clean(item)
			want += s.alone(item)
		}
		var lines []string
		for _, result := range reply.Results {
			lines = append(lines, string(result))
		}
		assert.Equal(t, want, statusesOf(t, lines), "array %q", text)
	})
}

// alone is the status of an item in a request of its own.
func (s *routeFuzzer) alone(item data.Value) string {
	if item.Kind() != data.Object {
		return "400,"
	}
	path := "/workflow/api/v1/create"
	if _, isEvent := item.Lookup("instanceId"); isEvent {
		path = "/workflow/api/v1/event"
	}
	w := newRecorder()
	s.ServeHTTP(w, newTestRequest("POST", path, string(item), withToken, jsonLine))
	return strconv.Itoa(w.status) + ","
}

func statusesOf(t *testing.T, lines []string) (all string) {
	t.Helper()
	for _, line := range lines {
		if line == "" {
			continue
		}
		var r struct{ Status int }
		require.NoError(t, json.Unmarshal([]byte(line), &r), "result %q", line)
		all += strconv.Itoa(r.Status) + ","
	}
	return all
}

// The oracles of this file are regular expressions and net/url.

func FuzzQueryParameters(f *testing.F) {
	for _, seed := range []string{
		"", "filter=", "filter=a+b", "filter=%257B", "filter=%7B%7D&limit=3&cursor=c&sort=x&fields=svcHistory&count=true&explain=false", "x=1", "Limit=1", "offset=1",
		"limit=1", "limit=1000", "limit=%31%30", "%6Cimit=5", "limit=", "limit", "limit=0", "limit=1001", "limit=-1", "limit=+1", "limit=%2B1", "limit=01", "limit=1.0", "limit=1e2",
		"limit=0x1", "limit=1_0", "limit=%EF%BC%91", "limit=99999999999999999999", "limit=1&limit=2", "limit=9;count=true",
		"cursor=c", "limit=7&cursor=%3C%22%3E", "limit=1&cursor=", "limit=1&cursor=c%0A", "limit=1&cursor=a+b", "limit=1&cursor=%C3%BC", "sort=-_id", "sort=",
		"fields=svcHistory,svcRedirect", "fields=svcPrivate", "fields=", "fields=,", "fields=svcHistory,", "fields=svcHistory,svcHistory", "fields=svchistory",
		"fields=svcHistory,+svcRedirect", "fields=_id", "count=true&explain=false", "count=false", "count=", "count=1", "count=True", "explain=", "explain=TRUE",
	} {
		f.Add(seed)
	}
	var row *kernel.Route
	for _, r := range routes() {
		if r.Name == "instances" {
			row = &r
		}
	}
	shape := map[string]*regexp.Regexp{
		"filter":  regexp.MustCompile(`(?s)^.*$`),
		"limit":   regexp.MustCompile(`^([1-9][0-9]{0,2}|1000)$`),
		"cursor":  regexp.MustCompile(`^[!-~]+$`),
		"sort":    regexp.MustCompile(`(?s)^.+$`),
		"fields":  regexp.MustCompile(`^(svcHistory|svcRedirect|svcPrivate)(,(svcHistory|svcRedirect|svcPrivate))*$`),
		"count":   regexp.MustCompile(`^(true|false)$`),
		"explain": regexp.MustCompile(`^(true|false)$`),
	}
	f.Fuzz(func(t *testing.T, raw string) {
		x := kernel.Exchange{Route: row, Request: &http.Request{URL: &url.URL{RawQuery: raw}}}
		err := x.ParseQuery()
		var got *query.Request
		if err == nil {
			got, err = instances.ParseQueryRequest(x.Query)
		}
		values, stdErr := url.ParseQuery(raw)
		ok := stdErr == nil && (values.Get("cursor") == "" || values.Has("limit"))
		for name, list := range values {
			ok = ok && shape[name] != nil && len(list) == 1 && shape[name].MatchString(list[0])
		}
		names := strings.Split(values.Get("fields"), ",")
		slices.Sort(names)
		ok = ok && len(slices.Compact(slices.Clone(names))) == len(names)
		require.Equal(t, ok, err == nil, "%q: got %v, want ok", raw, err)
		if err != nil {
			checkRefusal(t, err)
			assert.ErrorIs(t, err, failure.ErrInvalid, raw)
			return
		}
		limit, _ := strconv.Atoi(values.Get("limit")) // 0 when it is not there
		if got.Limit != limit || got.Filter != values.Get("filter") || got.Cursor != values.Get("cursor") || got.Sort != values.Get("sort") ||
			strings.Join(got.Fields, ",") != values.Get("fields") || got.Count != (values.Get("count") == "true") || got.Explain != (values.Get("explain") == "true") {
			t.Errorf("%q: got %+v", raw, got)
		}
	})
}

// FuzzWatchEvent holds that whatever stands in the data, a client reads one
func FuzzWatchEvent(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, "{\n\"a\":\r\n1}", "", "\n", "data: x\n\nid: 9\n\n", ": beat", "\u2028"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range []watch.Kind{watch.Entry, watch.Lost} {
			events := readEvents(string(instances.AppendWatchEvent(nil, watch.Event{Kind: kind, ID: "p1", Data: text})))
			assert.True(t, len(events) == 1 && events[0].data == strings.NewReplacer("\r", "\n").Replace(string(text)) && events[0].id == "p1", "%q is read as %+v", text, events)
			assert.False(t, json.Valid(text) && !json.Valid([]byte(events[0].data)), "%q is no JSON any more: %q", text, events[0].data)
		}
		assert.Equal(t, 2, bytes.Count(instances.AppendWatchEvent(nil, watch.Event{Kind: watch.Heartbeat}), []byte("\n")))
	})
}

type event struct{ name, id, data string }

// readEvents reads a stream as WHATWG HTML says ("Interpreting an event
// stream").
func readEvents(stream string) []event {
	var events []event
	var now event
	var lines []string
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream), "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && lines != nil:
			now.data = strings.Join(lines, "\n")
			events, lines = append(events, now), nil
		case field == "data":
			lines = append(lines, value)
		case field == "id":
			now.id = value
		case field == "event":
			now.name = value
		}
	}
	return events
}

// checkRefusal holds that an error of a reader is the caller's, and short.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	f := kernel.MappingOf(err)
	assert.False(t, f.Status != 400 && f.Status != 404, "%v is answered with %d", err, f.Status)
	text := f.Message(err, "")
	assert.LessOrEqual(t, len(text), 300, "a message, %q", text)
}

// routeFuzzer is a server on fakes, and the right request of each route.
type routeFuzzer struct {
	*Server
	workflows *fakeWorkflows
	portal    *fakePortal
	sessions  *fakeSessions
	requests  []request // as in table
}

func newRouteFuzzer(f *testing.F) *routeFuzzer {
	f.Helper()
	server, err := New(Options{})
	require.NoError(f, err)
	s := &routeFuzzer{Server: server, workflows: new(fakeWorkflows), portal: new(fakePortal), sessions: new(fakeSessions)}
	s.Open(s.workflows.with(Services{Presentations: s.workflows, Credentials: fakeCredentials{}, Portal: s.portal, Sessions: s.sessions, Definitions: s.workflows, Migrations: s.workflows, BulkJobs: fakeBulk{s.workflows}, Repository: fakeFiles{}, Templates: fakeFiles{}}))
	for _, rt := range s.kernel.Table {
		s.requests = append(s.requests, requestOf(f, &rt))
	}
	return s
}

// FuzzTarget sends any request target: the answer is one that the document describes,
// and never a success without a credential where it demands one.
func FuzzTarget(f *testing.F) {
	s := newRouteFuzzer(f)
	seeds := []string{
		"//", "*", "/%2F", "http://x/workflow/api/v1/choices", "/workflow/api/v1/watch/a/", "/workflow/api/v1/instance/%00/b", "/workflow/api/v1/choices?a;b",
		"/workflow/api/v1/instance//", "/workflow/api/v1/instances/a?filter=%7B%7D&limit=1&fields=svcPrivate&explain=true", "/login?next=//x", "/login/",
		"/login/oidc/callback?state=x&code=y&other=z", "/livez?verbose", "/readyz?%zz", "/form-portal/workflows?x", "/form-portal/checklists/role/%00",
		"/form-runtime/%61pi/v1/form/-/-", "/form-runtime/api/v1/draft/a/b",
	}
	for _, r := range s.requests {
		seeds = append(seeds, r.Path)
	}
	for _, target := range seeds {
		f.Add("GET", target, true)
		f.Add("POST", target, false)
	}
	f.Fuzz(func(t *testing.T, method, target string, signed bool) {
		text := method + " " + target + " HTTP/1.1\r\nHost: x\r\n"
		if signed {
			text += withToken + "\r\n" + withPortal + "\r\n" // each route takes what it knows
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			return // net/http answers that itself
		}
		w := newRecorder()
		observe(t, s.Server).ServeHTTP(w, r)
		if w.status != http.StatusOK || signed {
			return
		}
		o, _ := theInterface().find(method, r.URL.Path)
		assert.True(t, o != nil && kindsOf(theInterface().doc, o.Operation) == 0, "%s %q is answered without a credential: %s", method, target, w.body.String())
	})
}

// FuzzBody sends any body to the routes that read one, and compares what reaches the
// actors with what the standard library reads.
func FuzzBody(f *testing.F) {
	s := newRouteFuzzer(f)
	s.requests = slices.DeleteFunc(s.requests, func(r request) bool {
		// home.FuzzUnpack has an archive, and the parser of definitions is none of the gateway's.
		return r.Body == "" || strings.HasPrefix(r.Path, kernel.AdminPath) || strings.Contains(r.Path, "/definitions/")
	})
	seeds := []string{
		"", "{}", "null", `{"workflowId":"w"}`, `{"workflowId":"w","workflowId":"w"}`, `{"WorkflowId":"w"}`, `{"\u0077orkflowId":"w"}`, "{\"workflowId\":\"\xff\"}",
		`{"workflowId":"w"} x`, `{"workflowId":1}`, `{"workflowId":"w","data":null}`, `{"workflowId":"w","data":{"svcPublic":{},"svcPrivate":{}}}`,
		`{"workflowId":"w","instanceId":"i","event":{"name":"n","data":{},"id":"k"}}`, `{"formId":"f","workflowId":""}`, `{"checklistId":"c","":1}`,
		`{"data":{"a":9007199254740993}}`, `{"workflowId":"-","instanceId":"-","data":{"a":[1,{"b":null}]}}`, `{"formId":"` + strings.Repeat("f", 129) + `"}`,
		`{"user":"ann","password":"\ud83d\udc0e"}`, `{"user":"ann","password":"\ud800"}`, `{"user":"","password":""}`,
	}
	for _, r := range s.requests {
		seeds = append(seeds, r.Body)
	}
	for _, seed := range seeds {
		for route := range s.requests {
			f.Add(uint8(route), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, text []byte) {
		r := s.requests[int(route)%len(s.requests)]
		if strings.HasSuffix(r.Path, "/v1/events") {
			t.Skip("FuzzBatch has it")
		}
		s.workflows.asked, s.portal.asked, s.sessions.asked = nil, nil, nil
		w := newRecorder()
		observe(t, s.Server).ServeHTTP(w, newTestRequest(r.Method, r.Path, string(text), r.Headers...))
		var asked any
		for _, one := range []any{s.workflows.asked, s.portal.asked, s.sessions.asked} {
			if one != nil {
				asked = one
			}
		}
		a := answer{Body: w.body.String()}
		require.NotEqual(t, asked != nil, w.status == 400 || w.status == 404 || w.status == 413 && len(text) > 100_000, "%s %q: got %d %s, the actors were asked %+v", r.Path, text, w.status, a.Body, asked)
		if asked == nil {
			assert.False(t, len(a.Message()) > 300 || !utf8.ValidString(a.Body), "a message of %d bytes: %q", len(a.Message()), a.Body)
			return
		}
		var std struct {
			WorkflowID, InstanceID, FormID, ChecklistID, User, Password string
			Event, Data                                                 json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &std), "%s %q passed, but encoding/json", r.Path, text)
		var got, want, ids []string
		switch asked := asked.(type) {
		case *message.Create:
			var parts struct{ SvcPublic, SvcPrivate json.RawMessage }
			_ = json.Unmarshal(std.Data, &parts) // no data is no parts
			got, want, ids = []string{asked.WorkflowID}, []string{std.WorkflowID}, []string{asked.WorkflowID}
			checkSame(t, asked.Public, parts.SvcPublic)
			checkSame(t, asked.Private, parts.SvcPrivate)
		case *message.Event:
			var event struct {
				Name, ID string
				Data     json.RawMessage
			}
			require.NoError(t, json.Unmarshal(std.Event, &event), "%s %q passed, but encoding/json", r.Path, text)
			got, want = []string{asked.WorkflowID, asked.InstanceID, asked.Name, asked.ID}, []string{std.WorkflowID, std.InstanceID, event.Name, event.ID}
			ids = got[:2]
			checkSame(t, asked.Data, event.Data)
			assert.False(t, asked.ID != "" && !parse.IsIdempotencyKey(asked.ID), "%q: got the id %q", text, asked.ID)
		case *formportal.CreateRequest:
			got, want, ids = []string{asked.TemplateID, asked.WorkflowID}, []string{std.FormID + std.ChecklistID, std.WorkflowID}, []string{asked.TemplateID}
			if asked.WorkflowID != "" {
				ids = got
			}
		case *formportal.DraftRequest:
			checkSame(t, asked.Data, std.Data)
		case *formportal.TaskDraftRequest:
			checkSame(t, asked.Data, std.Data)
		case *formportal.TaskSubmitRequest:
			var event string
			_ = json.Unmarshal(std.Event, &event) // none is ""
			got, want = []string{asked.Event}, []string{event}
			checkSame(t, asked.Data, std.Data)
		case *formportal.SubmitRequest:
			got, want, ids = []string{asked.WorkflowID, asked.InstanceID}, []string{std.WorkflowID, std.InstanceID}, []string{strings.Replace(asked.WorkflowID, "-", "x", 1), asked.InstanceID}
			checkSame(t, asked.Data, std.Data)
		case [2]string:
			got, want = asked[:], []string{std.User, std.Password}
		}
		assert.True(t, slices.Equal(got, want), "%s %q: got %q, encoding/json reads %q", r.Path, text, got, want)
		i := slices.IndexFunc(ids, func(id string) bool { return !statemachine.IsIdentifier(id) })
		assert.Negative(t, i, "%s %q: handed on the identifiers %q", r.Path, text, ids)
	})
}

// checkSame holds that a value is an object that the standard library reads
// alike, or that both have none.
func checkSame(t *testing.T, got data.Value, std json.RawMessage) {
	t.Helper()
	if got.Kind() == data.Absent && std == nil {
		return
	}
	want, err := data.Clean(std)
	assert.True(t, err == nil && got.Kind() == data.Object && data.Equal(got, want), "got %s, encoding/json reads %s", got, std)
}
