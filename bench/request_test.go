package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/bench/load"
	"troupe/gateway"
)

// newServer is the whole service in this process: gateway, credentials, router,
// store. It returns the handler and a token.
func newServer(tb testing.TB, h *fixture) (*gateway.Server, string) {
	tb.Helper()
	credentials, err := identity.Start(identity.Options{Store: h.store, Directory: h.directory})
	require.NoError(tb, err)
	tb.Cleanup(func() { stop(tb, credentials) })
	token, _, err := credentials.Create(context.Background(), identity.Token, identity.CreateCredential{User: load.UserID})
	require.NoError(tb, err)
	server, err := gateway.New(gateway.Options{Addr: "127.0.0.1:0"})
	require.NoError(tb, err)
	server.Open(gateway.Services{Workflows: h.Router, Credentials: credentials})
	return server, token
}

// stop stops a server.
func stop(tb testing.TB, s interface{ Stop(context.Context) error }) {
	tb.Helper()
	assert.NoError(tb, s.Stop(context.Background()))
}

// recorder takes an answer as cheaply as possible and keeps its status.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRequest is an event from the handler to the disk and back: all that
// troupe does itself, without net/http and the network. 64 callers.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct{ name, prefer string }{{"minimal reply", "return=minimal"}, {"full reply", ""}} {
		b.Run(c.name, func(b *testing.B) { benchRequest(b, c.prefer) })
	}
	b.Run("batch of 100 events", benchBatch)
}

func benchBatch(b *testing.B) {
	const items = 100
	h := newFixture(b)
	server, token := newServer(b, h)
	ids := h.create(b, callers*items)
	runParallel(b, func(caller int) func(n int) error {
		header := http.Header{"Authorization": {"svc.token " + token}, "Content-Type": {"application/json"}}
		w := &recorder{header: http.Header{}}
		var bodies [2]string // NB: what they cost is not the service's
		for n := range bodies {
			name, content, _ := eventAfter(n)
			var events []string
			for _, id := range ids[caller*items:][:items] {
				events = append(events, fmt.Sprintf(`{"workflowId":%q,"instanceId":%q,"event":{"name":%q,"data":%s}}`, load.WorkflowID, id, name, content))
			}
			bodies[n] = "[" + strings.Join(events, ",") + "]"
		}
		return func(n int) error { return post(server, w, header, "/workflow/api/v1/events", bodies[n%len(bodies)]) }
	})
	assert.Equal(b, int64(b.N)*items, h.Metrics().Events)
}

func post(server *gateway.Server, w *recorder, header http.Header, path, body string) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, path, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return err
	}
	r.Header, r.ContentLength = header, int64(len(body))
	clear(w.header)
	server.ServeHTTP(w, r)
	if w.status != http.StatusOK {
		return fmt.Errorf("got status %d", w.status)
	}
	return nil
}

func benchRequest(b *testing.B, prefer string) {
	h := newFixture(b)
	server, token := newServer(b, h)
	ids := h.create(b, callers*instancesEach)
	runParallel(b, func(caller int) func(n int) error {
		header := http.Header{"Authorization": {"svc.token " + token}, "Content-Type": {"application/json"}}
		if prefer != "" {
			header.Set("Prefer", prefer)
		}
		w := &recorder{header: http.Header{}}
		return func(n int) error {
			name, content, _ := eventAfter(n / instancesEach)
			body := `{"workflowId":"` + load.WorkflowID + `","instanceId":"` + ids[caller*instancesEach+n%instancesEach] +
				`","event":{"name":"` + name + `","data":` + content + `}}`
			return post(server, w, header, "/workflow/api/v1/event", body)
		}
	})
}

// TestTheLoadRunsAgainstTheService holds the load generator and the service to each other: every kind of request,
// checked answers, no error. A disk that stands still may leave a window without an answer; then it is repeated with a
// longer one.
func TestTheLoadRunsAgainstTheService(t *testing.T) {
	h := newFixture(t)
	server, token := newServer(t, h)
	require.NoError(t, server.Start())
	defer stop(t, server)
	for _, o := range []load.Options{
		{Mix: load.Mix{1, 8, 1}},
		{Mix: load.Mix{1, 8, 1}, Minimal: true, Rate: 200},
		{Instances: 1, Preload: 20},
	} {
		o.Addr, o.Token, o.Connections = server.Addr().String(), token, 8
		o.WarmUp, o.Duration = -1, 300*time.Millisecond
		if o.Instances == 0 {
			o.Instances = 50
		}
		answers := int64(0)
		for ; answers == 0 && o.Duration < 20*time.Second; o.Duration *= 4 {
			result, err := load.Run(t.Context(), o)
			require.NoError(t, err)
			answers = result.All.Count
			require.True(t, result.ErrorsTotal == 0 && result.Shed == 0, "%v %v %v %v %v", o.Mix, o.Duration, answers, result.Shed, result.Errors)
		}
		assert.NotZero(t, answers, "mix %s: got no answer even in the longest window", o.Mix)
	}
}
