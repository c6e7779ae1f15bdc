package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/persistence/clocktest"
)

const (
	addressOne = "10.0.0.1:9400"
	addressTwo = "10.0.0.2:9400"
)

// inBubble runs a test with two nodes in a network of pipes. The first serves, and the
// second is started as well.
func inBubble(t *testing.T, change func(*Options), test func(t *testing.T, n *network, one, two *Port)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, at, n := newAuthority(testCluster), &addresses{}, newNetwork()
		start := func(id NodeID, address string, change func(*Options)) *Port {
			p, _ := newPort(t, member(a, id), at, func(o *Options) {
				if change != nil {
					change(o)
				}
				o.Address = address
			})
			n.attach(p)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			at.set(id, address)
			return p
		}
		test(t, n, start(nodeID(1), addressOne, change), start(nodeID(2), addressTwo, nil))
	})
}

// closedAfter returns when a connection was closed by the other end.
func closedAfter(c net.Conn) time.Duration {
	begun := time.Now()
	_, _ = io.Copy(io.Discard, c)
	return time.Since(begun)
}

// TestSlowHandshakes holds that 5 s are all that anybody has to show who they are and
// what they want.
func TestSlowHandshakes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *network, one, two *Port) {
		for name, c := range map[string]struct {
			handshake bool
			text      string // a byte of it in each second
		}{
			"nothing":              {false, ""},
			"a byte a second":      {false, "\x16\x03\x01\x02\x00\x01\x00\x01\x00"},
			"a record that is cut": {false, "\x16\x03"},
			"no shard":             {true, ""},
			"half a shard":         {true, "\x00"},
		} {
			inner, err := n.dial("10.0.0.3", addressOne)
			if err != nil {
				t.Fatal(err)
			}
			begun, to := time.Now(), inner
			if c.handshake {
				conn := tls.Client(inner, two.options.Identity.clientConfig(nodeID(1), protocolStream))
				if err := conn.Handshake(); err != nil {
					t.Fatal(err)
				}
				to = conn
			}
			for i := range len(c.text) {
				clocktest.Advance(time.Second)
				_ = to.SetWriteDeadline(time.Now())
				_, _ = io.WriteString(to, c.text[i:i+1])
				if time.Since(begun) == handshakeMax {
					break
				}
			}
			_, _ = io.Copy(io.Discard, to)
			if got := time.Since(begun); got != handshakeMax {
				t.Errorf("%s: closed after %s, want %s", name, got, handshakeMax)
			}
			_ = inner.Close()
		}
		synctest.Wait()
		if m := one.Metrics(); m.Connections != 0 || m.Handshakes != 0 {
			t.Errorf("got %+v, want nothing left", m)
		}
	})
}

// TestThousandIdleConnections holds that an address cannot use up the handshakes of
// others, and what all together can.
func TestThousandIdleConnections(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *network, one, two *Port) {
		echo(t, one, 1)
		s := streamsOf(t, two, 1)
		works := func() error {
			c, err := s.Dial(string(nodeID(1)), 0)
			if err != nil {
				return err
			}
			return errors.Join(exchange(c, "hello"), c.Close())
		}
		var idle []net.Conn
		open := func(from string) {
			c, err := n.dial(from, addressOne)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, c)
		}
		for range 1000 {
			open("10.0.0.3")
		}
		synctest.Wait()
		if m := one.Metrics(); m.Handshakes != 64 || m.Refused != 1000-64 {
			t.Errorf("of one address: got %+v, want 64 handshakes and the others refused", m)
		}
		if err := works(); err != nil {
			t.Errorf("another address: %v", err)
		}
		for i := range 1000 {
			open(fmt.Sprintf("10.0.1.%d", i%250))
		}
		synctest.Wait()
		if m := one.Metrics(); m.Handshakes != 256 {
			t.Errorf("of many addresses: got %+v, want 256 handshakes", m)
		}
		if err := works(); err == nil {
			t.Error("a connection beyond the bound was taken")
		}
		for _, c := range idle {
			if took := closedAfter(c); took > handshakeMax {
				t.Errorf("closed after %s", took)
			}
			_ = c.Close()
		}
		if m := one.Metrics(); m.Connections != 0 || len(one.mu.perAddress) != 0 {
			t.Errorf("got %+v and %d addresses, want none left", m, len(one.mu.perAddress))
		}
		if err := works(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// halfClosing is a connection that can be closed for writing, like one of TCP.
type halfClosing struct{ addressed }

func (halfClosing) CloseWrite() error { return nil }

// TestRefusedReadsWhy holds that a refused connection is closed only after the other end
// had time to read the alert.
func TestRefusedReadsWhy(t *testing.T) {
	inBubble(t, func(o *Options) { o.Admits = func(NodeID) bool { return false } }, func(t *testing.T, n *network, _, two *Port) {
		near, far := net.Pipe()
		n.listeners[addressOne].offer(halfClosing{addressed{far, "10.0.0.3:1"}})
		begun, c := time.Now(), tls.Client(near, two.options.Identity.clientConfig(nodeID(1), protocolStream))
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(begun) != 0 {
			t.Errorf("got %v after %s, want an alert at once", err, time.Since(begun))
		}
		if got := closedAfter(near); got != 500*time.Millisecond {
			t.Errorf("closed after %s", got)
		}
		_ = near.Close()
	})
}

func TestConnectionsMax(t *testing.T) {
	inBubble(t, func(o *Options) { o.ConnectionsMax = 2 }, func(t *testing.T, _ *network, one, two *Port) {
		echo(t, one, 1)
		s := streamsOf(t, two, 1)
		var open []net.Conn
		for range 2 {
			c, err := s.Dial(string(nodeID(1)), 0)
			if err == nil {
				err = exchange(c, "hello")
			}
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		if _, err := s.Dial(string(nodeID(1)), 0); err == nil {
			t.Error("a third connection was taken")
		}
		_ = open[0].Close()
		synctest.Wait()
		c, err := s.Dial(string(nodeID(1)), 0)
		if err == nil {
			err = exchange(c, "hello")
		}
		if err != nil {
			t.Errorf("when there is room again: %v", err)
		}
		clocktest.Advance(time.Hour) // no deadline is left on it
		if err := exchange(c, "hello"); err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}

// hole is a connection that loses everything once it is broken, also its end.
type hole struct {
	net.Conn
	broken *atomic.Bool
	closed chan struct{}
	close  func()
}

func newHole(t *testing.T, inner net.Conn, broken *atomic.Bool) hole {
	t.Cleanup(func() { _ = inner.Close() })
	h := hole{Conn: inner, broken: broken, closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

func (h hole) Write(p []byte) (int, error) {
	if h.broken.Load() {
		return len(p), nil
	}
	return h.Conn.Write(p)
}

func (h hole) Read(p []byte) (int, error) {
	for {
		n, err := h.Conn.Read(p)
		if !h.broken.Load() {
			return n, err
		}
		if err != nil {
			<-h.closed
			return 0, net.ErrClosed
		}
	}
}

func (h hole) Close() error {
	h.close()
	if h.broken.Load() {
		return nil // Read goes on to take what the other end still sends
	}
	return h.Conn.Close()
}

// TestDeadPeer loses all packets between two nodes: both notice within 5 s.
func TestDeadPeer(t *testing.T) {
	came, gone := make(chan struct{}), make(chan time.Time, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		gone <- time.Now()
	})
	// The channels belong to the bubble when they are made in it.
	inBubble(t, func(o *Options) { came, gone, o.Calls = make(chan struct{}), make(chan time.Time, 1), handler }, func(t *testing.T, n *network, _, two *Port) {
		var broken atomic.Bool
		two.connectTo = func(_ context.Context, address string) (net.Conn, error) {
			c, err := n.dial("10.0.0.2", address)
			if err != nil {
				return nil, err
			}
			return newHole(t, c, &broken), nil
		}
		var all sync.WaitGroup
		var ended time.Time
		var err error
		all.Go(func() {
			_, err = call(t.Context(), two, nodeID(1), "/")
			ended = time.Now()
		})
		<-came
		clocktest.Advance(time.Minute) // pings keep it open
		synctest.Wait()
		if err != nil {
			t.Fatalf("a quiet call: %v", err)
		}
		broken.Store(true)
		begun := time.Now()
		all.Wait()
		if took := ended.Sub(begun); err == nil || took > pingAfter+pingMax || took < pingMax {
			t.Errorf("the caller noticed after %s: %v", took, err)
		}
		if took := (<-gone).Sub(begun); took > pingAfter+pingMax {
			t.Errorf("the other end noticed after %s", took)
		}
	})
}

// TestSilentNode dials an address from which nothing comes back. All calls that wait for
// the same connection fail with its dial.
func TestSilentNode(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *network, _, two *Port) {
		var dials atomic.Int64
		silent := true
		two.connectTo = func(ctx context.Context, address string) (net.Conn, error) {
			if !silent {
				return n.dial("10.0.0.2", address)
			}
			dials.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begun := time.Now()
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				_, err := call(t.Context(), two, nodeID(1), "/")
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != dialMax {
					t.Errorf("got %v after %s, want an end after %s", err, took, dialMax)
				}
			})
		}
		all.Wait()
		if dials.Load() != 1 {
			t.Errorf("it was dialed %d times", dials.Load())
		}
		s := streamsOf(t, two, 1)
		begun = time.Now()
		if _, err := s.Dial(string(nodeID(1)), 700*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 700*time.Millisecond {
			t.Errorf("a stream: got %v after %s", err, time.Since(begun))
		}
		silent = false
		clocktest.Advance(failureMax)
		if _, err := call(t.Context(), two, nodeID(1), "/"); err != nil {
			t.Errorf("when it is there: %v", err)
		}
	})
}

// faulty is a listener whose Accept fails for a while.
type faulty struct {
	*inbox
	faults, asked int
}

func (f *faulty) Accept() (net.Conn, error) {
	if f.asked++; f.asked <= f.faults {
		return nil, errors.New("too many open files")
	}
	return f.inbox.Accept()
}

func TestAcceptGoesOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, at, n := newAuthority(testCluster), &addresses{}, newNetwork()
		l := &faulty{inbox: newInbox(10), faults: 100}
		n.listeners[addressOne] = l.inbox
		at.set(nodeID(1), addressOne)
		one, log := newPort(t, member(a, nodeID(1)), at, func(o *Options) { o.Calls = whoAsks })
		one.listenOn = func(context.Context, string) (net.Listener, error) { return l, nil }
		two, _ := newPort(t, member(a, nodeID(2)), at, nil)
		n.attach(two)
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		clocktest.Advance(2 * time.Minute)
		if l.asked != l.faults+1 {
			t.Errorf("Accept was called %d times", l.asked)
		}
		if _, err := call(t.Context(), two, nodeID(1), "/"); err != nil {
			t.Error(err)
		}
		log.await(t, "too many open files")
	})
}
