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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/frame"
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
			require.NoError(t, p.Start())
			at.set(id, address)
			return p
		}
		test(t, n, start(nodeID(1), addressOne, change), start(nodeID(2), addressTwo, nil))
	})
}

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
			require.NoError(t, err)
			begun, to := time.Now(), inner
			if c.handshake {
				conn := tls.Client(inner, two.options.Identity.clientConfig(nodeID(1), protocolStream))
				require.NoError(t, conn.Handshake())
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
			assert.Equal(t, handshakeMax, time.Since(begun), "%s: closed", name)
			_ = inner.Close()
		}
		synctest.Wait()
		m := one.Metrics()
		assert.True(t, m.Connections == 0 && m.Handshakes == 0, "got %+v, want nothing left", m)
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
			require.NoError(t, err)
			idle = append(idle, c)
		}
		for range 1000 {
			open("10.0.0.3")
		}
		synctest.Wait()
		m := one.Metrics()
		assert.True(t, m.Handshakes == 64 && m.Refused == 1000-64, "of one address: got %+v, want 64 handshakes and the others refused", m)
		assert.NoError(t, works(), "another address")
		for i := range 1000 {
			open(fmt.Sprintf("10.0.1.%d", i%250))
		}
		synctest.Wait()
		assert.Equal(t, 256, one.Metrics().Handshakes, "of many addresses")
		assert.Error(t, works(), "a connection beyond the bound was taken")
		for _, c := range idle {
			assert.LessOrEqual(t, closedAfter(c), handshakeMax, "closed")
			_ = c.Close()
		}
		m = one.Metrics()
		assert.True(t, m.Connections == 0 && len(one.mu.perAddress) == 0, "got %+v and %d addresses, want none left", m, len(one.mu.perAddress))
		assert.NoError(t, works(), "afterwards")
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
		_, err := c.Read(make([]byte, 1))
		assert.True(t, err != nil && time.Since(begun) == 0, "got %v after %s, want an alert at once", err, time.Since(begun))
		assert.Equal(t, 500*time.Millisecond, closedAfter(near), "closed")
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
			require.NoError(t, err)
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
		assert.NoError(t, err, "when there is room again")
		clocktest.Advance(time.Hour) // no deadline is left on it
		assert.NoError(t, exchange(c, "hello"), "an hour later")
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
		var over atomic.Bool
		var ended time.Time
		var err error
		all.Go(func() {
			_, err = call(t.Context(), two, nodeID(1), "/")
			ended = time.Now()
			over.Store(true)
		})
		<-came
		clocktest.Advance(time.Minute) // pings keep it open
		synctest.Wait()
		require.False(t, over.Load(), "a quiet call has ended")
		broken.Store(true)
		begun := time.Now()
		all.Wait()
		took := ended.Sub(begun)
		assert.True(t, err != nil && took <= frame.SilenceMax && took >= 3*time.Second, "the caller noticed after %s: %v", took, err)
		assert.LessOrEqual(t, (<-gone).Sub(begun), frame.SilenceMax, "the other end noticed")
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
				took := time.Since(begun)
				assert.True(t, errors.Is(err, context.DeadlineExceeded) && took == dialMax, "got %v after %s, want an end after %s", err, took, dialMax)
			})
		}
		all.Wait()
		assert.Equal(t, int64(1), dials.Load(), "it was dialed")
		s := streamsOf(t, two, 1)
		begun = time.Now()
		if _, err := s.Dial(string(nodeID(1)), 700*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 700*time.Millisecond {
			t.Errorf("a stream: got %v after %s", err, time.Since(begun))
		}
		silent = false
		clocktest.Advance(failureMax)
		_, err := call(t.Context(), two, nodeID(1), "/")
		assert.NoError(t, err, "when it is there")
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
		require.NoError(t, one.Start())
		clocktest.Advance(2 * time.Minute)
		assert.Equal(t, l.faults+1, l.asked, "Accept was called")
		_, err := call(t.Context(), two, nodeID(1), "/")
		assert.NoError(t, err)
		log.await(t, "too many open files")
	})
}
