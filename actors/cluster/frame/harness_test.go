package frame

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection with both of its ends.
type pair struct {
	*Client
	server    *Server
	near, far net.Conn
	log       logtest.Log
	served    error // why the answering end has ended; after over
	asked     error
	over      sync.WaitGroup
}

func connect(t *testing.T, handler http.HandlerFunc) *pair {
	t.Helper()
	return connectBy(t, handler, func(c net.Conn) net.Conn { return c })
}

// connectBy has the asking end use a changed connection.
func connectBy(t *testing.T, handler http.HandlerFunc, change func(net.Conn) net.Conn) *pair {
	t.Helper()
	e := &pair{}
	e.server = &Server{Handler: handler, StreamsMax: 100, Log: zerolog.New(&e.log)}
	e.near, e.far = net.Pipe()
	e.near = change(e.near)
	e.Client = NewClient(e.near)
	e.over.Go(func() { e.served = e.server.Serve(context.WithValue(context.Background(), key{}, "value"), e.far) })
	e.over.Go(func() { e.asked = e.Run() })
	t.Cleanup(func() {
		e.Close()
		e.over.Wait()
	})
	return e
}

type key struct{}

func newRequest(t *testing.T, ctx context.Context, method, target, body string) *http.Request { //nolint:revive // as tests have it
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "https://a-node"+target, strings.NewReader(body))
	require.NoError(t, err)
	return r
}

// ask returns status and body of the answer to a request.
func (e *pair) ask(t *testing.T, method, target, body string) (int, string, error) {
	t.Helper()
	a, err := e.RoundTrip(newRequest(t, t.Context(), method, target, body))
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, string(text), errors.Join(err, a.Body.Close())
}

func (e *pair) works(t *testing.T) {
	t.Helper()
	for range 10 {
		status, got, err := e.ask(t, http.MethodPost, "/echo", "hello")
		require.NoError(t, err)
		assert.True(t, status == http.StatusOK && got == "hello", "got %d %q", status, got)
	}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
