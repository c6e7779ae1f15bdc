package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

const testCluster = ClusterID("01J0000000000000000000000C")

func nodeID(n int) NodeID { return NodeID(fmt.Sprintf("01J%023d", n)) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newAuthority(cluster ClusterID) *Authority { return must(NewAuthority(cluster, time.Now())) }

func identify(a *Authority, node NodeID, at time.Time) (i *Identity, certificate []byte) {
	i = must(NewIdentity(node))
	return i, must(a.Sign(must(i.CSR()), node, at))
}

func member(a *Authority, node NodeID) *Identity {
	i, certificate := identify(a, node, time.Now())
	if err := i.Accept(certificate, a.Certificate()); err != nil {
		panic(err)
	}
	return i
}

// forced puts a certificate into use that Accept would refuse.
func forced(a *Authority, node NodeID, at time.Time) *Identity {
	i, certificate := identify(a, node, at)
	i.held.Store(must(i.parse(certificate, [][]byte{a.Certificate()})))
	return i
}

// addresses says where nodes are.
type addresses struct{ nodes sync.Map }

func (a *addresses) set(node NodeID, address string) { a.nodes.Store(node, address) }

func (a *addresses) resolve(node NodeID) (string, bool) {
	address, ok := a.nodes.Load(node)
	if !ok {
		return "", false
	}
	return address.(string), true
}

// lines takes a log and lets a test wait for a line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody looks at so many
	}
	return len(line), nil
}

func (l lines) await(t *testing.T, text string) string {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return line
			}
		case <-t.Context().Done():
			t.Fatalf("no line with %q", text)
		}
	}
}

func newPort(t *testing.T, i *Identity, at *addresses, change func(*Options)) (*Port, lines) {
	t.Helper()
	log := make(lines, 1000)
	o := Options{Address: "127.0.0.1:0", Identity: i, Resolve: at.resolve, Log: zerolog.New(log)}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop(ended()) })
	return p, log
}

// ended is a context that is done: Stop then waits for nothing but the port's own.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func startPort(t *testing.T, i *Identity, at *addresses, change func(*Options)) (*Port, lines) {
	t.Helper()
	p, log := newPort(t, i, at, change)
	require.NoError(t, p.Start())
	at.set(i.Node(), p.Addr().String())
	return p, log
}

func streamsOf(t *testing.T, p *Port, shard uint16) *Streams {
	t.Helper()
	s, err := p.Streams(shard)
	require.NoError(t, err)
	return s
}

// echo answers all streams of a shard with what they bring, until it is closed.
func echo(t *testing.T, p *Port, shard uint16) {
	t.Helper()
	s := streamsOf(t, p, shard)
	var all sync.WaitGroup
	t.Cleanup(func() { _ = s.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
}

// exchange sends a text over an echoing stream and demands it back.
func exchange(c net.Conn, text string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("got %q, want %q", got, text)
	}
	return nil
}

// whoAsks answers calls with the caller's id and the path.
var whoAsks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s %s %s", NodeOf(r.Context()), r.Proto, r.URL.Path)
})

func call(ctx context.Context, p *Port, node NodeID, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+string(node)+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := p.RoundTrip(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), errors.Join(err, answer.Body.Close())
}

// network connects ports by pipes, on the clock of a bubble of testing/synctest.
type network struct {
	mu        sync.Mutex
	listeners map[string]*inbox
	dials     int
}

func newNetwork() *network { return &network{listeners: map[string]*inbox{}} }

// attach makes a port listen and dial in the network. Its address is from its options.
func (n *network) attach(p *Port) {
	host, _, _ := net.SplitHostPort(p.options.Address)
	p.listenOn = func(_ context.Context, address string) (net.Listener, error) {
		l := newInbox(2000)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.listeners[address] = l
		return l, nil
	}
	p.connectTo = func(ctx context.Context, address string) (net.Conn, error) { return n.dial(host, address) }
}

func (n *network) dial(from, to string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	n.dials++
	n.mu.Unlock()
	near, far := net.Pipe()
	if l == nil || !l.offer(addressed{far, from + ":1"}) {
		return nil, errors.New("connection refused")
	}
	return near, nil
}

// addressed is a connection that comes from an address.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr { return nodeAddr(a.from) }
