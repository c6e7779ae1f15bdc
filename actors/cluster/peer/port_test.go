package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestThreeNodes has streams and calls between all of them.
func TestThreeNodes(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	ports := map[NodeID]*Port{}
	for n := range 3 {
		p, _ := startPort(t, member(a, nodeID(n)), at, func(o *Options) { o.Calls = whoAsks })
		ports[nodeID(n)] = p
		for _, shard := range []uint16{0, 1, 0xffff} {
			echo(t, p, shard)
		}
	}
	for from, p := range ports {
		s := streamsOf(t, p, 7)
		assert.Equal(t, string(from), s.Addr().String(), "got the address %s", s.Addr())
		_ = s.Close()
		for to := range ports {
			for _, shard := range []uint16{0, 1, 0xffff} {
				p.mu.Lock()
				s := p.mu.streams[shard]
				p.mu.Unlock()
				c, err := s.Dial(string(to), time.Minute)
				require.NoError(t, err)
				assert.NoError(t, exchange(c, strings.Repeat("raft", 50000)), "%s to %s, shard %d", from, to, shard)
				_ = c.Close()
			}
			got, err := call(t.Context(), p, to, "/path")
			assert.True(t, err == nil && got == string(from)+" HTTP/2.0 /path", "a call from %s to %s: got %q, %v", from, to, got, err)
		}
	}
	assert.Empty(t, NodeOf(t.Context()), "nobody's call")
}

// TestRenewalWhileConnected changes a certificate under open streams and calls.
func TestRenewalWhileConnected(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	i := member(a, nodeID(2))
	one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) { o.Calls = whoAsks })
	two, _ := startPort(t, i, at, func(o *Options) { o.Calls = whoAsks })
	echo(t, two, 1)
	echo(t, one, 1)
	dial := func() net.Conn {
		one.mu.Lock()
		s := one.mu.streams[1]
		one.mu.Unlock()
		c, err := s.Dial(string(nodeID(2)), time.Minute)
		require.NoError(t, err)
		return c
	}
	serial := func(c net.Conn) string {
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := dial()
	works := func() {
		t.Helper()
		assert.NoError(t, exchange(before, "still here"), "the stream of before")
		for from, to := range map[*Port]NodeID{one: nodeID(2), two: nodeID(1)} {
			_, err := call(t.Context(), from, to, "/")
			assert.NoError(t, err)
		}
	}
	works()
	renewed := must(issueAuthority(testCluster, a.key, time.Now()))
	require.NoError(t, i.Accept(must(renewed.Sign(must(i.CSR()), nodeID(2), time.Now())), renewed.Certificate()))
	works()
	after := dial()
	defer func() { _ = after.Close() }()
	assert.NoError(t, exchange(after, "new"))
	if want := i.held.Load().certificate.Leaf.SerialNumber.String(); serial(after) != want || serial(before) == want {
		t.Errorf("got %s before and %s after, want another one and %s", serial(before), serial(after), want)
	}
	one.Disconnect(nodeID(2))
	_, err := before.Read(make([]byte, 1))
	assert.Error(t, err, "a stream survived Disconnect")
	_ = before.Close()
	for { // a call on the old connection may still fail
		if _, err := call(t.Context(), two, nodeID(1), "/"); err == nil {
			break
		}
	}
}

// TestRemovedNode: Admits is asked at each handshake and at each call.
func TestRemovedNode(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	var removed atomic.Bool
	one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Calls, o.Admits = whoAsks, func(NodeID) bool { return !removed.Load() }
	})
	two, _ := startPort(t, member(a, nodeID(2)), at, nil)
	got, err := call(t.Context(), two, nodeID(1), "/")
	assert.True(t, err == nil && strings.HasPrefix(got, string(nodeID(2))), "got %q, %v", got, err)
	removed.Store(true)
	got, err = call(t.Context(), two, nodeID(1), "/")
	assert.True(t, err == nil && strings.Contains(got, ErrNotMember.Error()), "on the connection of before: got %q, %v", got, err)
	one.Disconnect(nodeID(2))
	got, err = call(t.Context(), two, nodeID(1), "/")
	assert.Error(t, err, "after Disconnect: got %q", got)
}

// TestRemovedDuringItsHandshake: Disconnect does not find a node that has not shown yet
// who it is, so it is asked about once more.
func TestRemovedDuringItsHandshake(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	var asked atomic.Int64
	one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Admits = func(NodeID) bool { return asked.Add(1) == 1 }
	})
	echo(t, one, 1)
	two, _ := startPort(t, member(a, nodeID(2)), at, nil)
	c, err := streamsOf(t, two, 1).Dial(string(nodeID(1)), 0)
	require.NoError(t, err)
	assert.Error(t, exchange(c, "hello"), "a removed node got a stream")
}

func TestStreamsEnd(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	one, _ := startPort(t, member(a, nodeID(1)), at, nil)
	two, log := startPort(t, member(a, nodeID(2)), at, func(o *Options) { o.StreamsQueued, o.Log = 2, o.Log.Level(-1) })
	from, to := streamsOf(t, one, 5), streamsOf(t, two, 5)
	if _, err := one.Streams(5); !errors.Is(err, ErrShardTaken) {
		t.Errorf("taken twice: got %v", err)
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := from.Dial(string(nodeID(2)), 0)
		require.NoError(t, err)
		return c
	}
	isClosed := func(name string, c net.Conn) {
		t.Helper()
		n, err := c.Read(make([]byte, 1))
		assert.True(t, n == 0 && err != nil, "%s: got %d bytes, %v, want an end", name, n, err)
	}
	queued, second := dial(), dial()
	accepted, err := to.Accept()
	require.NoError(t, err)
	third, beyond := dial(), dial()
	log.await(t, "nobody accepts it for shard 5")
	assert.Equal(t, uint64(1), two.Metrics().StreamsUnwanted, "streams were unwanted, want the one beyond the bound")
	require.NoError(t, to.Close())
	for name, c := range map[string]net.Conn{"accepted": accepted, "queued": queued, "the second": second, "the third": third, "beyond the bound": beyond} {
		isClosed(name, c)
	}
	_, err = to.Accept()
	assert.ErrorIs(t, err, net.ErrClosed, "Accept after Close")
	assert.NoError(t, to.Close(), "a second Close")
	_, err = to.Dial(string(nodeID(1)), 0)
	assert.Error(t, err, "closed streams dialed")
	isClosed("nobody accepts", dial())
	log.await(t, "nobody accepts it for shard 5")

	echo(t, two, 5) // taken again
	again := dial()
	assert.NoError(t, exchange(again, "again"))
	if err := from.Close(); err != nil { // it closes what it has dialed
		t.Error(err)
	}
	isClosed("dialed", again)
}

// TestGarbageAfterTheHandshake is what a node of the cluster may send by mistake.
func TestGarbageAfterTheHandshake(t *testing.T) {
	t.Parallel() // net/http waits a second before it closes some
	a, at := newAuthority(testCluster), &addresses{}
	p, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) { o.Calls, o.Join = whoAsks, whoAsks })
	echo(t, p, 1)
	two, _ := startPort(t, member(a, nodeID(2)), at, nil)
	for _, protocol := range []string{protocolStream, protocolCalls, protocolJoin} {
		for _, garbage := range []string{"", "x", "\xff\xff", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 1000), strings.Repeat("\x00", 100000)} {
			if protocol == protocolStream && strings.HasPrefix(garbage, "\x00") {
				continue // a stream of shard 0
			}
			c, err := two.dial(t.Context(), nodeID(1), protocol, nil)
			require.NoError(t, err)
			_, _ = io.WriteString(c, garbage)
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c) // until the port closes it
			_ = c.Close()
		}
	}
	got, err := call(t.Context(), two, nodeID(1), "/")
	assert.True(t, err == nil && got != "", "afterwards: got %q, %v", got, err)
}

func TestStop(t *testing.T) {
	t.Parallel() // net/http waits a second before it closes idle connections
	a := newAuthority(testCluster)
	t.Run("before Start", func(t *testing.T) {
		p, _ := newPort(t, member(a, nodeID(1)), &addresses{}, nil)
		s := streamsOf(t, p, 1)
		for range 2 {
			assert.NoError(t, p.Stop(t.Context()))
		}
		assert.ErrorIs(t, p.Start(), ErrStopped, "Start after Stop")
		_, err := s.Accept()
		assert.ErrorIs(t, err, net.ErrClosed, "Accept after Stop")
		_, err = p.Streams(2)
		assert.ErrorIs(t, err, ErrStopped, "Streams after Stop")
		if p.Addr() != nil {
			t.Errorf("got the address %s", p.Addr())
		}
	})
	t.Run("everything is closed", func(t *testing.T) {
		at := &addresses{}
		one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) { o.Calls = whoAsks })
		two, _ := startPort(t, member(a, nodeID(2)), at, nil)
		assert.Error(t, one.Start(), "started twice")
		from, to := streamsOf(t, two, 1), streamsOf(t, one, 1)
		c, err := from.Dial(string(nodeID(1)), 0)
		require.NoError(t, err)
		accepted, err := to.Accept()
		require.NoError(t, err)
		_, err = call(t.Context(), two, nodeID(1), "/")
		require.NoError(t, err)
		idle, err := net.Dial("tcp", one.Addr().String())
		require.NoError(t, err)
		var stops sync.WaitGroup
		for range 3 {
			stops.Go(func() { _ = one.Stop(t.Context()) })
		}
		stops.Wait()
		for name, c := range map[string]net.Conn{"dialed": c, "accepted": accepted, "idle": idle} {
			_, err := c.Read(make([]byte, 1))
			assert.Error(t, err, "%s: still open", name)
			_ = c.Close()
		}
		_, err = net.Dial("tcp", one.Addr().String())
		assert.Error(t, err, "the port is open")
		got := one.Metrics()
		assert.True(t, got.Connections == 0 && got.Handshakes == 0, "got %+v, want nothing open", got)
		_, err = to.Dial(string(nodeID(2)), 0)
		assert.ErrorIs(t, err, ErrStopped, "Dial after Stop")
		_, err = call(t.Context(), one, nodeID(2), "/")
		assert.ErrorIs(t, err, ErrStopped, "a call after Stop")
		_, err = call(t.Context(), two, nodeID(1), "/")
		assert.Error(t, err, "a call of a stopped port was answered")
	})
	t.Run("a call is answered first", func(t *testing.T) {
		at, came, answer := &addresses{}, make(chan struct{}), make(chan struct{})
		one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
			o.Calls = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { close(came); <-answer; _, _ = io.WriteString(w, "done") })
		})
		two, _ := startPort(t, member(a, nodeID(2)), at, nil)
		var all sync.WaitGroup
		all.Go(func() {
			got, err := call(t.Context(), two, nodeID(1), "/")
			assert.True(t, err == nil && got == "done", "got %q, %v", got, err)
		})
		<-came
		all.Go(func() { _ = one.Stop(t.Context()) })
		for { // until the port is closed, and Stop waits for the call
			c, err := net.Dial("tcp", one.Addr().String())
			if err != nil {
				break
			}
			_ = c.Close()
		}
		close(answer)
		all.Wait()
	})
	t.Run("a call that does not end is cut off, at both ends", func(t *testing.T) {
		at, came, ended := &addresses{}, make(chan struct{}, 1), ended()
		one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
			o.Calls = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came <- struct{}{}; <-r.Context().Done() })
		})
		two, _ := startPort(t, member(a, nodeID(2)), at, nil)
		three, _ := startPort(t, member(a, nodeID(3)), at, nil)
		for _, c := range []struct{ caller, stopped *Port }{{two, two}, {three, one}} {
			var all sync.WaitGroup
			all.Go(func() {
				_, err := call(t.Context(), c.caller, nodeID(1), "/")
				assert.Error(t, err, "answered")
			})
			<-came
			_ = c.stopped.Stop(ended)
			all.Wait()
		}
	})
}

func TestOptions(t *testing.T) {
	_, err := New(Options{ConnectionsMax: -1})
	require.Error(t, err, "got a port without options")
	for _, want := range []string{"no address", "no way to resolve", "no identity", "below zero"} {
		assert.Contains(t, err.Error(), want)
	}
	_, err = New(Options{Address: ":0", Resolve: (&addresses{}).resolve, Identity: must(NewIdentity(nodeID(1)))})
	assert.ErrorIs(t, err, ErrNoCertificate)
	a := newAuthority(testCluster)
	one, _ := startPort(t, member(a, nodeID(1)), &addresses{}, nil)
	two, _ := newPort(t, member(a, nodeID(2)), &addresses{}, func(o *Options) { o.Address = one.Addr().String() })
	err = two.Start()
	assert.True(t, err != nil && strings.Contains(err.Error(), one.Addr().String()), "a taken port: got %v", err)
}
