package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"troupe/actors/cluster/frame"
	"troupe/actors/failure"
	"troupe/gateway/wiretest"
	"troupe/persistence/clocktest"
)

// node is a started server of a cluster, as the others reach it.
type node struct {
	*testServer
	name  string
	peer  Peer // as the others see it
	peers *fakePeers
	lose  func() // lose ends the connection over which they do, for good
}

// startNodes starts servers that reach each other. All of them say that the first one named by
// lead leads every shard. No fake knows of shards: see elsewhere.
func startNodes(t testing.TB, o Options, names ...string) map[string]*node {
	t.Helper()
	nodes := map[string]*node{}
	for _, name := range names {
		n := &node{testServer: startServer(t, o, nil), name: name, peers: &fakePeers{}}
		// NB: what the connection is encrypted with is not the subject; TestClusterPort has the real one. There mutual
		// TLS has the name of the sender.
		port := &frame.Server{Handler: n.PeerHandler(func(*http.Request) string { return "a-node" }), StreamsMax: 1000}
		near, far := net.Pipe()
		client := frame.NewClient(near)
		var running sync.WaitGroup
		running.Go(func() { _ = port.Serve(context.Background(), addressed{far}) })
		running.Go(func() { _ = client.Run() })
		t.Cleanup(func() { client.Close(); running.Wait() })
		n.peer, n.lose = Peer{Node: name, Transport: client}, client.Close
		nodes[name] = n
	}
	for _, n := range nodes {
		n.open(nil)
	}
	return nodes
}

// addressed is an end of a pipe that has an address.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (n *node) open(change func(*Services)) {
	services := n.workflows.with(Services{
		Credentials: fakeCredentials{}, Sessions: n.sessions, Identities: n.sessions, Portal: n.portal, Provider: n.provider,
		Presentations: n.workflows, Repository: fakeFiles{}, Templates: fakeFiles{}, Peers: n.peers, Homes: n.workflows, Definitions: n.workflows, Migrations: n.workflows, BulkJobs: fakeBulk{n.workflows},
	})
	if change != nil {
		change(&services)
	}
	n.Open(services)
}

func (n *node) fail(err error) {
	n.workflows.setFail(err)
	n.sessions.setFail(err)
	n.portal.setFail(err)
	n.provider.setFail(err)
	n.open(func(s *Services) {
		files := fakeFiles{fail: err, list: func(func(string) error) error { return err }}
		s.Repository, s.Templates = files, files
	})
}

// follow makes the node believe that another one leads everything.
func (n *node) follow(leader *node) {
	n.fail(failure.Elsewhere(7))
	n.peers.say(leading(leader.peer))
}

// fakePeers says who leads: one answer for each call, and the last one for ever.
type fakePeers struct {
	mu      sync.Mutex
	answers []saidLeader // guarded by mu, as is the rest
	shards  []uint16     // of the calls
}

// saidLeader is one answer of fakePeers, given after a time. Without a name there is no leader.
type saidLeader struct {
	Peer
	after time.Duration
}

func leading(p Peer) saidLeader { return saidLeader{Peer: p} }

var errLeaderless = errors.New("nobody leads")

func (f *fakePeers) say(answers ...saidLeader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = answers
}

func (f *fakePeers) Leader(ctx context.Context, shard uint16) (Peer, error) {
	f.mu.Lock()
	f.shards = append(f.shards, shard)
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	f.mu.Unlock()
	if answer.after > 0 {
		select {
		case <-time.After(answer.after):
		case <-ctx.Done():
			return Peer{}, ctx.Err()
		}
	}
	if answer.Node == "" {
		return Peer{}, errLeaderless
	}
	return answer.Peer, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// recorder is a small http.ResponseWriter for tests that need no connection.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// newTestRequest makes a request as net/http hands it to a server.
func newTestRequest(method, target, body string, headers ...string) *http.Request {
	text := method + " " + target + " HTTP/1.1\r\nHost: x\r\n"
	for _, line := range headers {
		text += line + "\r\n"
	}
	if body != "" {
		text += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n" + body)))
	if err != nil {
		panic(err) // the test's own text is wrong
	}
	return r
}

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
