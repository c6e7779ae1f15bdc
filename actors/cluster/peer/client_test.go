package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func countDials(p *Port) *atomic.Int64 {
	var dials atomic.Int64
	connect := p.connectTo
	p.connectTo = func(ctx context.Context, address string) (net.Conn, error) {
		dials.Add(1)
		return connect(ctx, address)
	}
	return &dials
}

// TestCallsShareAConnection begins hundreds of calls at once. Beyond the bound, and only there, nothing is sent.
func TestCallsShareAConnection(t *testing.T) {
	const callers, callsMax = 300, 200
	a, at := newAuthority(testCluster), &addresses{}
	var came sync.WaitGroup
	came.Add(callers)
	startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.CallsMax = callsMax
		o.Calls = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			came.Done()
			came.Wait()
		})
	})
	two, _ := newPort(t, member(a, nodeID(2)), at, nil)
	dials := countDials(two)
	var refused atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if _, err := call(t.Context(), two, nodeID(1), "/"); err != nil {
				assert.ErrorIs(t, err, ErrNotSent)
				refused.Add(1)
				came.Done()
			}
		})
	}
	all.Wait()
	assert.Equal(t, int64(callers-callsMax), refused.Load(), "calls beyond the bound")
	assert.Equal(t, int64(1), dials.Load(), "connections")
}

// TestAbandonedCalls: who waits for a node that does not answer is told at once, and the next call is sent.
func TestAbandonedCalls(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	begun, hangs := make(chan struct{}), make(chan struct{})
	startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Calls = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				close(begun)
				<-hangs
			}
		})
	})
	two, _ := newPort(t, member(a, nodeID(2)), at, nil)
	told := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), two, nodeID(1), "/hang")
		told <- err
	}()
	<-begun
	two.Abandon(nodeID(1))
	err := <-told
	close(hangs)
	assert.True(t, err != nil && !errors.Is(err, ErrNotSent), "got %v", err)
	_, err = call(t.Context(), two, nodeID(1), "/")
	assert.NoError(t, err, "the next call")
}

// TestNodeMoves stops a node under calls and starts it at another address.
func TestNodeMoves(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	i := member(a, nodeID(1))
	two, _ := newPort(t, member(a, nodeID(2)), at, nil)
	dials := countDials(two)
	const moves = 5
	var old string
	for range moves {
		one, _ := startPort(t, i, at, func(o *Options) { o.Calls = whoAsks })
		require.NotEqual(t, old, one.Addr().String(), "got the address")
		old = one.Addr().String()
		two.outgoing.mu.Lock()
		clear(two.outgoing.mu.dials) // as if 250 ms had passed
		two.outgoing.mu.Unlock()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for { // the end of the old connection may come with a call
					got, err := call(t.Context(), two, nodeID(1), "/")
					if err == nil {
						assert.True(t, strings.HasPrefix(got, string(nodeID(2))), "got %q", got)
						return
					}
				}
			})
		}
		all.Wait()
		_ = one.Stop(ended())
		got, err := call(t.Context(), two, nodeID(1), "/")
		assert.Error(t, err, "a node that is stopped has answered %q", got)
	}
	got := dials.Load()
	assert.True(t, got >= moves && got <= 3*moves, "%d connections for %d moves", got, moves)
}

type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error {
	*c.closed = true
	return nil
}

func TestRoundTripRefuses(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	one, _ := startPort(t, member(a, nodeID(1)), at, nil)
	for url, want := range map[string]string{
		"http://" + string(nodeID(1)) + "/":      "https://NODE/PATH",
		"https://" + string(nodeID(2)) + "/":     ErrUnknownNode.Error(),
		"https://" + string(nodeID(1)) + ":80/":  ErrUnknownNode.Error(),
		"https://127.0.0.1/":                     ErrUnknownNode.Error(),
		"https://" + strings.Repeat("x", 1000):   ErrUnknownNode.Error(),
		"https://" + string(nodeID(1)) + "@a/":   ErrUnknownNode.Error(),
		"https://" + string(nodeID(1))[:25] + "": ErrUnknownNode.Error(),
	} {
		var closed bool
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, closing{strings.NewReader("x"), &closed})
		require.NoError(t, err)
		answer, err := one.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		assert.True(t, err != nil && strings.Contains(err.Error(), want) && closed, "%.60s: got %v and a closed body: %t, want %q", url, err, closed, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := call(ctx, one, nodeID(1), "/")
	assert.ErrorIs(t, err, context.Canceled, "a context that is done")
	got, err := call(t.Context(), one, nodeID(1), "/")
	assert.True(t, err == nil && strings.HasPrefix(got, "404"), "a port without Calls, by itself: got %q, %v", got, err)
}

// TestWhatWasNotSent: only then can a call be made again that must not be made twice.
func TestWhatWasNotSent(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Calls = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	})
	gone, _ := startPort(t, member(a, nodeID(2)), at, nil)
	require.NoError(t, gone.Stop(t.Context()))
	three, _ := newPort(t, member(a, nodeID(3)), at, nil)
	for _, c := range []struct {
		to      NodeID
		notSent bool
	}{{nodeID(1), false}, {nodeID(1), false}, {nodeID(2), true}, {nodeID(4), true}} {
		_, err := call(t.Context(), three, c.to, "/")
		assert.True(t, err != nil && errors.Is(err, ErrNotSent) == c.notSent, "node %s: got %v, want that nothing was sent: %t", c.to, err, c.notSent)
	}
	require.NoError(t, three.Stop(t.Context()))
	_, err := call(t.Context(), three, nodeID(2), "/")
	assert.True(t, errors.Is(err, ErrStopped) && errors.Is(err, ErrNotSent), "a port that has stopped: got %v, want ErrStopped, and that nothing was sent", err)
}
