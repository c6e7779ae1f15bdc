package outbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/outbox"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func webhooks(t *testing.T, o outbox.WebhookOptions) *outbox.Webhooks {
	t.Helper()
	o.Clock = func() time.Time { return time.Unix(1_800_000_000, 0) }
	if o.Endpoint == nil {
		o.Endpoint = func(string, string) outbox.Endpoint { return outbox.Endpoint{} }
	}
	o.Source = "/workflow/api/v1"
	w := outbox.NewWebhooks(o)
	t.Cleanup(w.Close)
	return w
}

func attempt(url string) outbox.Attempt {
	return outbox.Attempt{
		ID: "msg_1", Instance: key.ID{1}, Queue: "hook", Webhook: &statemachine.Webhook{Name: "hook", URL: url},
		Delivery: &outbox.Delivery{Workflow: "order", Created: time.Unix(1_700_000_000, 0), Body: data.Value(`{"n":1}`)},
	}
}

// TestWhatAReceiverGets holds the headers and the signature of Standard Webhooks, and the body of CloudEvents.
func TestWhatAReceiverGets(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(`{"ok": true}`))
	}))
	defer s.Close()
	parsed, err := outbox.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(secret) + "\n")
	require.NoError(t, err)
	w := webhooks(t, outbox.WebhookOptions{Allow: loopback, Endpoint: func(workflow, name string) outbox.Endpoint {
		assert.True(t, workflow == "order" && name == "hook", "asked for %s/%s", workflow, name)
		return outbox.Endpoint{URL: s.URL + "/in", Headers: map[string]string{"Authorization": "Bearer x"}, Secret: parsed}
	}})
	a := w.Send(t.Context(), attempt("https://example.org"))
	require.True(t, a.Err == nil && a.Status == 200 && string(a.Body) == `{"ok":true}`, "got %+v", a)
	assert.True(t, got.Method == http.MethodPost && got.URL.Path == "/in" && got.Header.Get("Authorization") == "Bearer x", "%v %v %v", got.Method, got.URL, got.Header)
	id, stamp := got.Header.Get("Webhook-Id"), got.Header.Get("Webhook-Timestamp")
	assert.True(t, id == "msg_1" && stamp == "1800000000", "id %q, timestamp %q", id, stamp)
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("msg_1.1800000000." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	assert.Equal(t, want, got.Header.Get("Webhook-Signature"), "signature")
	var event map[string]any
	require.NoError(t, json.Unmarshal(body, &event))
	if event["specversion"] != "1.0" || event["id"] != "msg_1" || event["type"] != "order.hook" || fmt.Sprint(event["data"]) != "map[n:1]" ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "application/cloudevents+json") {
		t.Errorf("got %s", body)
	}
}

func TestBadReceivers(t *testing.T) {
	handler := map[string]http.HandlerFunc{
		"/500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) },
		"/410": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"/429": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"/late": func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(50 * time.Millisecond)
			w.WriteHeader(http.StatusAccepted)
		},
		"/never": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() },
		"/half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		},
		"/huge": func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 10 {
				if _, err := w.Write(make([]byte, 1<<14)); err != nil {
					return
				}
			}
		},
		"/private": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusMovedPermanently)
		},
		"/moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/500", http.StatusPermanentRedirect)
		},
		"/text": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a\"\xff")) },
		"/json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"a":1`))
		},
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler[r.URL.Path](w, r) })
	plain, secure := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	defer plain.Close()
	defer secure.Close()
	// NB: the near end of a connection listens nowhere, and nobody else can at its port.
	near, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).Dial("tcp", plain.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = near.Close() }()
	open := webhooks(t, outbox.WebhookOptions{Allow: loopback, AttemptMax: 2 * time.Minute})
	shut := webhooks(t, outbox.WebhookOptions{})
	hasty := webhooks(t, outbox.WebhookOptions{Allow: loopback, AttemptMax: 100 * time.Millisecond})
	for _, c := range []struct {
		what, url string
		by        *outbox.Webhooks
		want      string // in the error; "" for none
		status    int
		final     bool
		body      string
		after     time.Duration
	}{
		{what: "an error", url: plain.URL + "/500", by: open, want: "the answer was 500", status: 500, body: `"broken\n"`},
		{what: "gone", url: plain.URL + "/410", by: open, want: "the answer was 410", status: 410, final: true},
		{what: "too many", url: plain.URL + "/429", by: open, want: "the answer was 429", status: 429, after: 30 * time.Second},
		{what: "a late answer", url: plain.URL + "/late", by: open, status: 202},
		{what: "no answer", url: plain.URL + "/never", by: hasty, want: "deadline exceeded"},
		{what: "half an answer", url: plain.URL + "/half", by: open, want: "broke off", status: 200, body: `"half"`},
		{what: "a redirect to a private address", url: plain.URL + "/private", by: open, want: "the answer was 301", status: 301},
		{what: "a redirect", url: plain.URL + "/moved", by: open, want: "the answer was 308", status: 308},
		{what: "a text", url: plain.URL + "/text", by: open, status: 200, body: "\"a\\\"\uFFFD\""},
		{what: "half of JSON", url: plain.URL + "/json", by: open, status: 200, body: `"{\"a\":1"`},
		{what: "an unknown authority", url: secure.URL + "/500", by: open, want: "certificate"},
		{what: "nobody there", url: "http://" + near.LocalAddr().String(), by: open, want: "refused"},
		{what: "loopback", url: plain.URL + "/text", by: shut, want: "webhooks.allow"},
		{what: "loopback by name", url: strings.Replace(plain.URL, "127.0.0.1", "localhost", 1) + "/text", by: shut, want: "webhooks.allow"},
		{what: "a network of a carrier", url: "http://100.64.1.1/", by: shut, want: "webhooks.allow"},
		{what: "an address of the link", url: "http://169.254.169.254/latest", by: shut, want: "webhooks.allow"},
		{what: "a private address inside IPv6", url: "http://[::ffff:10.0.0.1]/", by: shut, want: "webhooks.allow"},
		{what: "the same as it was once written", url: "http://[::10.0.0.1]/", by: shut, want: "webhooks.allow"},
		{what: "an address of a site", url: "http://[fec0::1]/", by: shut, want: "webhooks.allow"},
		{what: "an address with a zone", url: "http://[fec0::1%25lo]/", by: shut, want: "webhooks.allow"},
		{what: "loopback with a zone", url: "http://[64:ff9b::a00:1%25lo]/", by: shut, want: "webhooks.allow"},
		{what: "documentation", url: "http://[2001:db8::1]/", by: shut, want: "webhooks.allow"},
		{what: "a tunnel", url: "http://[2001::1]/", by: shut, want: "webhooks.allow"},
		{what: "a port that is none", url: "http://127.0.0.1:99999/", by: open, want: "http or https", final: true},
		{what: "nothing", url: "", by: open, want: "has no url", final: true},
	} {
		a := c.by.Send(t.Context(), attempt(c.url))
		assert.True(t, (a.Err == nil) == (c.want == "") && (a.Err == nil || strings.Contains(a.Err.Error(), c.want)), "%s: got %v, want %q", c.what, a.Err, c.want)
		assert.True(t, a.Status == c.status && a.Final == c.final && string(a.Body) == c.body && a.After == c.after, "%s: got %+v", c.what, a)
	}
	a := open.Send(t.Context(), attempt(plain.URL+"/huge"))
	assert.True(t, a.Err == nil && len(a.Body) <= 1<<20, "a huge body: %d bytes, %v", len(a.Body), a.Err)
}

// TestAnAnswerThatBecomesAnotherProtocolEnds: the body of a 101 is the connection, which nothing ends.
func TestAnAnswerThatBecomesAnotherProtocolEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	held := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(held)
			return
		}
		_, _ = c.Read(make([]byte, 1024))
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello")
		held <- c
	}()
	a := webhooks(t, outbox.WebhookOptions{Allow: loopback}).Send(t.Context(), attempt("http://"+l.Addr().String()))
	assert.True(t, a.Status == http.StatusSwitchingProtocols && a.Err != nil && !a.Final, "got %+v", a)
	if c := <-held; c != nil {
		_ = c.Close()
	}
	_ = l.Close()
}
