package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/message"
)

// quickWorkflows answers every event with the same reply: what is measured is
// the gateway.
type quickWorkflows struct {
	Workflows
	reply *message.Reply
}

func (q quickWorkflows) Send(context.Context, *message.Event) (*message.Reply, error) {
	return q.reply, nil
}

func (q quickWorkflows) Load(context.Context, *message.Load) (*message.Reply, error) {
	return q.reply, nil
}

func (quickWorkflows) StopWatching() {}

// benchReply is a usual record: about 300 bytes of data and a short history.
func benchReply() *message.Reply {
	reply := smallReply("leave-request", instanceOne, 5, true)
	entry := `{"user":"ann","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:00.000Z"}`
	reply.History = []byte(entry + "," + entry + "," + entry)
	return reply
}

const benchBody = `{"workflowId":"leave-request","instanceId":"01JD0000000000000000000001","event":{"name":"approve","data":{"comment":"fine with me","days":3,"list":[1,2,3],"nested":{"a":"b"}}}}`

type discardResponse struct{ header http.Header }

func (s *discardResponse) Header() http.Header         { return s.header }
func (s *discardResponse) WriteHeader(int)             {}
func (s *discardResponse) Write(p []byte) (int, error) { return len(p), nil }

// rewindBody is a request body that can be read again. Like that of net/http it
// says that it is at its end together with the last bytes.
type rewindBody struct{ bytes.Reader }

func (r *rewindBody) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.Len() == 0 {
		err = io.EOF
	}
	return n, err
}

func (*rewindBody) Close() error { return nil }

func benchServer(b *testing.B) *Server {
	b.Helper()
	s, err := New(Options{Addr: "127.0.0.1:0"})
	require.NoError(b, err)
	s.Open(Services{Workflows: quickWorkflows{reply: benchReply()}, Credentials: fakeCredentials{}})
	return s
}

// BenchmarkEvent is what the gateway adds to an event: everything but net/http
// and the workflow. DESIGN.md has its budget.
func BenchmarkEvent(b *testing.B) { benchEvent(b, func(*Server) {}) }

// BenchmarkExchangePool is the claim that the pool of exchanges is worth
// having: the same event with the pool emptied before each.
func BenchmarkExchangePool(b *testing.B) {
	b.Run("kept", func(b *testing.B) { benchEvent(b, func(*Server) {}) })
	b.Run("emptied", func(b *testing.B) { benchEvent(b, func(s *Server) { s.kernel.Exchanges.Get() }) })
}

func benchEvent(b *testing.B, before func(*Server)) {
	b.Helper()
	s := benchServer(b)
	r := newTestRequest("POST", "/workflow/api/v1/event", benchBody, withToken, "Content-Type: application/json")
	body, text := new(rewindBody), []byte(benchBody)
	r.Body = body
	w := &discardResponse{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(text)
		clear(w.header)
		before(s)
		s.ServeHTTP(w, r)
	}
}
