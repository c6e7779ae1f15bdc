package client

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/gateway/api"
	"troupe/gateway/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect makes a client of a service that waits only a moment.
func connect(t *testing.T, address string, o Options) *Client {
	t.Helper()
	o.Address = address
	o.RetryWait = cmp.Or(o.RetryWait, 1)
	c, err := New(o)
	require.NoError(t, err, "New")
	t.Cleanup(c.Close)
	return c
}

// started runs the service and makes a client of it.
func started(t *testing.T, o Options) (*servertest.Server, *Client) {
	t.Helper()
	s := servertest.Start(t)
	o.Token = s.Token
	return s, connect(t, s.URL, o)
}

// unkept makes a connection for each request: net/http repeats a read by itself on
// one that was kept.
func unkept() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct{ name, address, token, want string }{
		{"no address", "", "", "must be a URL"},
		{"no scheme", "127.0.0.1:18082", "", "must be a URL: http://127.0.0.1:18082 or"},
		{"a host with its port", "localhost:8080", "", "must be a URL: http://localhost:8080 or"},
		{"another scheme", "ftp://localhost", "", "must be a URL"},
		{"no host", "http:///x", "", "must be a URL"},
		{"a password", "http://u:hidden@localhost", "", "must not hold a user"},
		{"a broken password", "http://u:hidden@local host", "", "must be a URL such as"},
		{"a query", "http://localhost?x=1", "", "must end with its path"},
		{"an empty query", "http://localhost?", "", "must end with its path"},
		{"a fragment", "http://localhost#x", "", "must end with its path"},
		{"a token of two lines", "http://localhost", "hidden\r\nX-A: b", "token holds characters"},
		{"a token with a comma", "http://localhost", "hidden,hidden", "token holds characters"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(Options{Address: test.address, Token: test.token})
			assert.True(t, errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), test.want) && !strings.Contains(err.Error(), "hidden"), "%v %v", err, test.want)
		})
	}
}

// TestCreateSendsWhatItIsGiven looks at the request byte for byte.
func TestCreateSendsWhatItIsGiven(t *testing.T) {
	s, c := started(t, Options{})
	public := `{"z":1e400,"a":12345678901234567890.10,"html":"<&>"}`
	made, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave", Public: json.RawMessage(public), Key: "my-key"})
	require.NoError(t, err)
	assert.True(t, string(made.Public) == public && strings.Contains(string(made.Raw), public), "got svcPublic %s in %s, want %s", made.Public, made.Raw, public)
	if made.ID == "" || made.Sequence != 1 || len(made.History) != 1 || made.History[0].Time.IsZero() ||
		len(made.States) != 1 || made.States[0] != (api.Position{StateMachineID: "main", NodeID: "draft"}) {
		t.Errorf("got %+v, want an instance of sequence 1 in draft", made)
	}
	r := s.Requests()[0]
	want := `{"workflowId":"leave","data":{"svcPublic":` + public + `}}`
	assert.Equal(t, want, strings.TrimSpace(r.Body), "body: got %s", r.Body)
	for name, want := range map[string]string{
		"Authorization": "svc.token " + s.Token, "Idempotency-Key": "my-key",
		"Content-Type": "application/json", "Accept": "application/json", "Prefer": "", "If-Match": "", "User-Agent": "troupe-client",
	} {
		assert.Equal(t, want, r.Header.Get(name), name)
	}
}

func TestSend(t *testing.T) {
	s, c := started(t, Options{})
	id := s.Create(`{}`)
	moved, err := c.Send(t.Context(), SendRequest{
		WorkflowID: "leave", InstanceID: id, Event: "submit", Data: json.RawMessage(`{"days":5}`), IfMatch: 1, Minimal: true,
	})
	require.True(t, err == nil && moved.Sequence == 2 && moved.States[0].NodeID == "review" && moved.History == nil, "%v %v", moved, err)
	r := s.Requests()[0]
	assert.True(t, r.Header.Get("If-Match") == `"1"` && r.Header.Get("Prefer") == "return=minimal" && len(r.Header.Get("Idempotency-Key")) >= 22, r.Header)
	_, err = c.Send(t.Context(), SendRequest{WorkflowID: "leave", InstanceID: id, Event: "approve", IfMatch: 1})
	wantStatus(t, err, 412, "PreconditionFailed")
	again := s.Requests()[1].Header.Get("Idempotency-Key")
	assert.True(t, again != r.Header.Get("Idempotency-Key") && again != "", "got the key %q again", again)
}

func wantStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var refused *Error
	assert.True(t, errors.As(err, &refused) && refused.Status == status && refused.Code == code, "got %v, want an Error %d %s", err, status, code)
}

func TestReads(t *testing.T) {
	s, c := started(t, Options{})
	id := s.Create(`{"days":5}`, "submit")
	i, err := c.Instance(t.Context(), InstanceRequest{WorkflowID: "leave", InstanceID: id})
	assert.True(t, err == nil && i.ID == id && i.Sequence == 2 && len(i.History) == 2, "Instance: got %+v, %v", i, err)
	i, err = c.Instance(t.Context(), InstanceRequest{WorkflowID: "leave", InstanceID: id, Minimal: true})
	assert.True(t, err == nil && i.History == nil, "Instance, minimal: got %+v, %v", i, err)
	choices, err := c.Choices(t.Context())
	assert.True(t, err == nil && len(choices) == 1 && choices[0] == (api.Choice{ID: "leave", Name: "Leave request"}), "Choices: got %v, %v", choices, err)
	events, err := c.Events(t.Context(), "leave", id)
	require.True(t, err == nil && events.Sequence == 2 && len(events.Events) == 3 && json.Valid(events.Raw), "Events: got %+v, %v", events, err)
	extend := events.Events[1]
	if extend.Name != "extend" || extend.Guard != api.GuardTrue || len(extend.Transitions) != 2 ||
		extend.Transitions[0].Guard != api.GuardUnknown || extend.Transitions[1].Targets[0] != "review" || len(extend.Schema) < 10 {
		t.Errorf("Events: got %+v", extend)
	}
}

func TestListParameters(t *testing.T) {
	s, c := started(t, Options{})
	s.Create(`{}`, "submit")
	page, err := c.Instances(t.Context(), ListRequest{
		WorkflowID: "leave", Filter: `{"states.nodeId":"review"}`, Limit: 7, Sort: "-_id",
		Fields: []string{"svcHistory", "svcPrivate"}, Count: true, Explain: true,
	})
	require.True(t, err == nil && len(page.Items) == 1 && page.Count != nil && *page.Count == 1 && page.Next == "", "got %+v, %v", page, err)
	i := page.Items[0]
	assert.True(t, len(i.History) == 2 && string(i.Private) == "{}" && i.Sequence == 0, "got %+v, want history and svcPrivate", i)
	var explain api.Explain
	if err := json.Unmarshal(page.Explain, &explain); err != nil || explain.Plan == nil || *explain.Plan != "index" || explain.Index == nil || *explain.Index != "states.nodeId" || explain.Matched != 1 || explain.Milliseconds == nil || *explain.Milliseconds <= 0 {
		t.Errorf("explain: got %+v, %v", explain, err)
	}
	assert.Equal(t, "count=true&explain=true&fields=svcHistory%2CsvcPrivate&filter=%7B%22states.nodeId%22%3A%22review%22%7D&limit=7&sort=-_id", s.Requests()[0].Query.Encode(), "query")
	whole, err := c.Instances(t.Context(), ListRequest{WorkflowID: "leave"})
	if err != nil || len(whole.Items) != 1 || whole.Count != nil || whole.Explain != nil || len(s.Requests()[1].Query) != 0 {
		t.Errorf("without a limit: got %+v, %v, query %v", whole, err, s.Requests()[1].Query)
	}
}

func TestPages(t *testing.T) {
	s, c := started(t, Options{})
	var want []string
	for range 7 {
		want = append(want, s.Create(`{}`, "submit"))
	}
	var got []string
	for page, err := range c.InstancePages(t.Context(), ListRequest{WorkflowID: "leave", Limit: 3, Count: true}) {
		require.NoError(t, err)
		for _, i := range page.Items {
			got = append(got, i.ID)
		}
	}
	assert.Equal(t, strings.Join(want, " "), strings.Join(got, " "), "got %v, want %v", got, want)
	counted := 0
	for _, r := range s.Requests() {
		counted += len(r.Query["count"])
	}
	n := len(s.Requests())
	assert.True(t, n == 3 && counted == 1, "got %d requests, %d of them with count, want 3 and 1", n, counted)
	for _, err := range c.InstancePages(t.Context(), ListRequest{WorkflowID: "leave", Limit: 1}) {
		assert.NoError(t, err)
		break
	}
	assert.Len(t, s.Requests(), 4)
}

func TestHistoryPages(t *testing.T) {
	s, c := started(t, Options{})
	id := s.Create(`{}`)
	s.Send(id, "submit")
	s.Send(id, "approve")
	var got []string
	pages := 0
	for page, err := range c.HistoryPages(t.Context(), HistoryRequest{WorkflowID: "leave", InstanceID: id, Limit: 2}) {
		require.NoError(t, err)
		pages++
		for _, e := range page.Items {
			got = append(got, e.TransitionEvent)
			assert.Contains(t, string(e.Raw), `"ts":"2026-11-21T10:00:0`, "got the entry")
		}
	}
	assert.True(t, strings.Join(got, " ") == " submit approve" && pages == 2, "got %q on %d pages, want creation, submit and approve on 2", got, pages)
	newest, err := c.History(t.Context(), HistoryRequest{WorkflowID: "leave", InstanceID: id, Limit: 1, NewestFirst: true})
	assert.True(t, err == nil && len(newest.Items) == 1 && newest.Items[0].TransitionEvent == "approve" && newest.Next != "", "%v %v", newest, err)
	page, err := c.History(t.Context(), HistoryRequest{WorkflowID: "leave", InstanceID: id})
	assert.True(t, err == nil && len(page.Items) == 3 && !s.Requests()[3].Query.Has("limit"), "got %+v, %v, want the service's own limit", page, err)
}

// handled makes a client of a service that a handler of the test is.
func handled(t *testing.T, o Options, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return connect(t, s.URL, o)
}

// answering makes a client of a service that answers all with one body.
func answering(t *testing.T, status int, header, body string) *Client {
	t.Helper()
	return handled(t, Options{BodyBytesMax: 1000, RetryMax: -1}, func(w http.ResponseWriter, _ *http.Request) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func TestAnswersThatAreNone(t *testing.T) {
	tests := []struct{ name, body string }{
		{"no JSON", "<html>"},
		{"cut JSON", `{"state":{"_id":"a"`},
		{"nothing", ""},
		{"no state", `{}`},
		{"an instance without an id", `{"state":{}}`},
		{"another kind", `{"state":[]}`},
		{"too much", `{"state":{"_id":"` + strings.Repeat("a", 1000) + `"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := answering(t, 200, "", test.body)
			i, err := c.Instance(t.Context(), InstanceRequest{WorkflowID: "a", InstanceID: "b"})
			assert.ErrorIs(t, err, ErrProtocol, "got %v", i)
		})
	}
}

// TestPagesEndWhenTheServiceGoesRound holds that a wrong cursor is no endless
// loop.
func TestPagesEndWhenTheServiceGoesRound(t *testing.T) {
	c := answering(t, 200, "", `{"instances":[],"next":"again"}`)
	pages := 0
	for page, err := range c.InstancePages(t.Context(), ListRequest{WorkflowID: "a"}) {
		if pages++; err != nil && (!errors.Is(err, ErrProtocol) || page != nil) || pages > 3 {
			t.Fatalf("page %d: got %v, %v", pages, page, err)
		}
	}
	if pages != 3 { // two pages and the error
		t.Errorf("got %d, want two pages and an error", pages)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Ana é 日本 😀 a\\b":         "Ana é 日本 😀 a\\b",
		"a\tb\nc\x1b[31m\x00\x7f": `a\tb\nc\x1b[31m\x00\x7f`,
		"\u009b31m":               `\u009b31m`,          // C1
		"a\u202eb\u2066":          `a\u202eb\u2066`,     // direction
		"\u2028\u2029\u0085":      `\u2028\u2029\u0085`, // line separators
		"a\xff\xc3":               `a\xff\xc3`,          // no UTF-8
		"�":                       "�",
	} {
		assert.Equal(t, want, Printable(text))
	}
}

func TestErrorText(t *testing.T) {
	tests := []struct {
		name         string
		status       int
		header, body string
		code, want   string
	}{
		{"the service's", 404, "", `{"error":"NotFound","message":"there is nothing here"}`, "NotFound", "404 NotFound: there is nothing here"},
		{"a proxy's", 502, "", "<html>bad gateway</html>", "", "502 Bad Gateway"},
		{"no body", 403, "", "", "", "403 Forbidden"},
		{"a message for the terminal", 400, "", `{"error":"x\u001b[2J","message":"a\nb\u202e\u009b"}`, "x\x1b[2J", `400 x\x1b[2J: a\nb\u202e\u009b`},
		{"a redirect", 302, "Location: http://127.0.0.1:1/elsewhere", "", "", "302 Found"},
		{"a success of another kind", 204, "", "", "", "204 No Content"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := answering(t, test.status, test.header, test.body)
			_, err := c.Choices(t.Context())
			wantStatus(t, err, test.status, test.code)
			assert.Equal(t, "list choices: "+test.want, err.Error())
		})
	}
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	s, c := started(t, Options{})
	ctx := t.Context()
	calls := map[string]func() error{
		"no workflow": func() error { _, err := c.Create(ctx, CreateRequest{}); return err },
		"a path":      func() error { _, err := c.Instances(ctx, ListRequest{WorkflowID: "../choices"}); return err },
		"a long id":   func() error { _, err := c.Events(ctx, "leave", strings.Repeat("a", 129)); return err },
		"no instance": func() error { _, err := c.Instance(ctx, InstanceRequest{WorkflowID: "leave"}); return err },
		"dots": func() error {
			_, err := c.History(ctx, HistoryRequest{WorkflowID: "leave", InstanceID: ".."})
			return err
		},
		"a limit":           func() error { _, err := c.Instances(ctx, ListRequest{WorkflowID: "leave", Limit: 1001}); return err },
		"a negative limit":  func() error { _, err := c.Instances(ctx, ListRequest{WorkflowID: "leave", Limit: -1}); return err },
		"a key with blanks": func() error { _, err := c.Create(ctx, CreateRequest{WorkflowID: "leave", Key: "a b"}); return err },
		"a quoted key":      func() error { _, err := c.Create(ctx, CreateRequest{WorkflowID: "leave", Key: `"a"`}); return err },
		"data that is no JSON": func() error {
			_, err := c.Create(ctx, CreateRequest{WorkflowID: "leave", Public: json.RawMessage("{")})
			return err
		},
		"a watch of nothing": func() error { return endOf(t, c.Watch(ctx, WatchRequest{})) },
		"a place with a line end": func() error {
			return endOf(t, c.Watch(ctx, WatchRequest{WorkflowID: "leave", LastEventID: "1\r\nX: y"}))
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, call(), ErrInvalid)
		})
	}
	assert.Empty(t, s.Requests(), "got the requests")
}

// TestBasePath holds that a service behind a path is found there.
func TestBasePath(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = w.Write([]byte(`{"workflows":[]}`))
	}))
	defer s.Close()
	c := connect(t, s.URL+"/platform/", Options{})
	_, err := c.Choices(t.Context())
	assert.True(t, err == nil && asked == "/platform/workflow/api/v1/choices", "got %q, %v", asked, err)
}

// TestConnectionsAreKept holds that answers, errors too, are read to their end.
// It runs on a false clock, which stands still while anybody works or waits for
// the network: net/http gives a connection up that is not ready again 50 ms after
// the answer.
func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"NotFound","message":"` + strings.Repeat("m", 20_000) + `"}`))
		}))
		s.Config.ConnState = countNew(&connections)
		s.Start()
		c := connect(t, s.URL, Options{})
		for range 5 {
			_, err := c.Choices(t.Context())
			wantStatus(t, err, 404, "NotFound")
		}
		s.Close() // no connection is counted any more
		assert.Equal(t, 1, connections)
	})
}

// TestPackedAnswers: the package's own client asks for plain bytes; a caller's own may
// ask for packed ones, and their tag says the same.
func TestPackedAnswers(t *testing.T) {
	asked := make(chan string, 1)
	pack := func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Accept-Encoding")
		text := []byte(`{"state":{"_id":"i1","workflowId":"w"}}`)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"5"`)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("ETag", `"5-gzip"`)
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = packed.Write(text)
			_ = packed.Close()
			return
		}
		_, _ = w.Write(text)
	}
	for want, own := range map[string]*http.Client{"": nil, "gzip": unkept()} {
		got, err := handled(t, Options{HTTP: own}, pack).Instance(t.Context(), InstanceRequest{WorkflowID: "w", InstanceID: "i1"})
		accepted := <-asked
		assert.Equal(t, want, accepted, "asked")
		assert.True(t, err == nil && got.Sequence == 5, "asked for %q: got %+v, %v, want sequence 5", want, got, err)
	}
}
