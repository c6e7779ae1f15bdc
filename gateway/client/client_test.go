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

func wantStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var refused *Error
	assert.True(t, errors.As(err, &refused) && refused.Status == status && refused.Code == code, "got %v, want an Error %d %s", err, status, code)
}

func handled(t *testing.T, o Options, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return connect(t, s.URL, o)
}

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
		assert.Equal(t, want, <-asked, "asked")
		assert.True(t, err == nil && got.Sequence == 5, "asked for %q: got %+v, %v, want sequence 5", want, got, err)
	}
}

// TestDataStaysAsItIs: what came is kept as it came, and what is no JSON is not sent.
func TestDataStaysAsItIs(t *testing.T) {
	s, c := started(t, Options{})
	public := `{"z":1e400,"a":12345678901234567890.10,"html":"<&>"}`
	made, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave", Public: json.RawMessage(public)})
	require.NoError(t, err)
	assert.Equal(t, public, string(made.Public))
	assert.Contains(t, string(made.Raw), public)
	page, err := c.History(t.Context(), HistoryRequest{WorkflowID: "leave", InstanceID: made.ID})
	require.NoError(t, err)
	assert.Contains(t, string(page.Items[0].Raw), `"ts":"2026-11-21T10:00:0`)
	sent := len(s.Requests())
	_, err = c.Create(t.Context(), CreateRequest{WorkflowID: "leave", Public: json.RawMessage("{")})
	require.ErrorIs(t, err, ErrInvalid)
	for _, wrong := range [][]json.RawMessage{{[]byte("{")}, make([]json.RawMessage, BatchMax+1)} {
		_, err := c.Batch(t.Context(), BatchRequest{Items: wrong})
		require.ErrorIs(t, err, ErrInvalid)
	}
	assert.Len(t, s.Requests(), sent)
}
