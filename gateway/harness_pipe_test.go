package gateway

import (
	"context"
	"net"
	"testing"

	"troupe/gateway/wiretest"
	"troupe/persistence/clocktest"
)

// startOnPipes starts a server whose connections are pipes, for a bubble of testing/synctest.
func startOnPipes(t testing.TB, o Options, workflows *fakeWorkflows) *testServer {
	t.Helper()
	p := clocktest.NewPipes()
	s := startServerOn(t, o, workflows, func(string, string) (net.Listener, error) { return p, nil })
	s.client = &wiretest.Client{Connect: func() (net.Conn, error) { return p.Dial(context.Background(), "", "") }}
	return s
}

// pipes is a listener whose every connection is a pipe that nobody uses.
type pipes struct{ net.Listener }

func (pipes) Accept() (net.Conn, error) {
	one, _ := net.Pipe()
	return one, nil
}
