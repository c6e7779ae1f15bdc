package listener

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// from is a connection that has an address and nothing else.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// admitAll makes a listener with a connection of each address, in order. Only the
// address 10.0.0.1 is a proxy's.
func admitAll(addresses ...string) (*Listener, []*Conn) {
	l := New(nil, 100, new(Counts), func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") })
	var all []*Conn
	for _, a := range addresses {
		one, other := net.Pipe()
		_ = other.Close()
		all = append(all, l.admit(from{one, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(a), 4711))}))
	}
	return l, all
}

func (c *Conn) request(withCredential bool) {
	c.Begin(new(http.Request))
	if withCredential {
		c.MarkAuthenticated()
	}
	c.End()
	c.sent()
}

// evictAll closes one after the other and returns the order.
func evictAll(l *Listener, all []*Conn) (order []int) {
	for l.evict() {
		for n, c := range all {
			if c.state.Load() == stateEvicted && c.position.group == nil && !slices.Contains(order, n) {
				order = append(order, n)
			}
		}
	}
	return order
}

// TestEvictionOrder holds the order of gateway/DESIGN.md, "Fairness".
func TestEvictionOrder(t *testing.T) {
	const one, two, proxy = "192.0.2.1 ", "192.0.2.2 ", "10.0.0.1 "
	for _, c := range []struct {
		line, addresses string
		prepare         func(all []*Conn)
		want            []int // -1 for any
	}{
		{"the oldest of one address", one + one + one, nil, []int{0, 1, 2}},
		{"the address with the most, down to one each", one + two + two + two, nil, []int{1, 2, -1, -1}},
		{"one customer's IPv6 addresses are one", one + "2001:db8::1 2001:db8::2 2001:db8::3", nil, []int{1, 2, -1, -1}},
		{"those without a credential, wherever they are", one + one + one + two, func(all []*Conn) {
			for _, c := range all[:3] {
				c.request(true)
			}
		}, []int{3, 0, 1, 2}},
		{"those that were never used", one + one + one, func(all []*Conn) { all[0].request(false) }, []int{1, 2, 0}},
		{"those with a request never", one + one + two, func(all []*Conn) { all[0].Begin(new(http.Request)) }, []int{1, 2}},
		{"those whose body nobody wants", one + one, func(all []*Conn) {
			all[0].Begin(new(http.Request))
			all[1].Begin(&http.Request{Body: io.NopCloser(strings.NewReader("x"))})
			all[1].End()
		}, []int{1}},
		{"a proxy's are not counted together", proxy + proxy + proxy + one + one, nil, []int{3, -1, -1, -1, -1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, all := admitAll(strings.Fields(c.addresses)...)
			clocktest.Advance(2 * stuckMin)
			if c.prepare != nil {
				c.prepare(all)
			}
			got := evictAll(l, all)
			for n, want := range c.want {
				if !assert.True(t, len(got) == len(c.want) && (want < 0 || got[n] == want), "%s: got the order %v, want %v", c.line, got, c.want) {
					break
				}
			}
			for _, one := range all {
				_ = one.Close()
			}
			open := l.count.Open.Load()
			assert.True(t, open == 0 && len(l.mu.anonymous.groups)+len(l.mu.authenticated.groups) == 0, "%s: at the end %d connections are open", c.line, open)
		})
	}
}

// TestAddressWithMoreThanHalfIsEvictedFirst: who has more than half of the connections gives way before
// anybody without a credential does.
func TestAddressWithMoreThanHalfIsEvictedFirst(t *testing.T) {
	addresses := []string{"192.0.2.2"}
	for range 53 {
		addresses = append(addresses, "192.0.2.1")
	}
	l, all := admitAll(addresses...)
	for _, c := range all[1:] {
		c.request(true)
	}
	assert.Equal(t, "[1 2 3 0]", fmt.Sprint(evictAll(l, all)[:4]), "got the order")
}

// TestStuckAnswersAreEvictedLast: an answer whose last bytes nobody takes does not keep a
// connection, but an answer that was just sent is not aborted.
func TestStuckAnswersAreEvictedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := admitAll("192.0.2.1", "192.0.2.1")
		all[0].Begin(new(http.Request))
		all[0].End()
		all[1].Begin(new(http.Request))
		assert.False(t, l.evict(), "an answer was aborted that was just sent")
		clocktest.Advance(stuckMin)
		assert.False(t, !l.evict() || all[0].state.Load() != stateEvicted || l.evict(), "got the states %d and %d, want the first closed", all[0].state.Load(), all[1].state.Load())
	})
}

// TestUnfinishedAnswersEndWithAReset holds gateway/INTERFACE.md, "What an answer means",
// for the last bytes of an answer, which net/http sends after the handler.
func TestUnfinishedAnswersEndWithAReset(t *testing.T) {
	for line, end := range map[string]func(*Listener, *Conn) bool{
		"evicted for a new one": func(l *Listener, c *Conn) bool {
			c.opened = c.opened.Add(-stuckMin)
			return l.evict()
		},
		"nobody reads for the time of an answer": func(_ *Listener, c *Conn) bool {
			_ = c.SetWriteDeadline(time.Unix(1, 0))
			_, err := c.Write([]byte("the rest"))
			return err != nil && c.Close() == nil
		},
	} {
		t.Run(line, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = inner.Close() }()
			caller, err := net.Dial("tcp", inner.Addr().String())
			require.NoError(t, err)
			defer func() { _ = caller.Close() }()
			l := New(inner, 1, new(Counts), func(netip.Addr) bool { return false })
			accepted, err := l.Accept()
			require.NoError(t, err)
			c := accepted.(*Conn)
			c.Begin(new(http.Request))
			c.End()
			require.True(t, end(l, c), "the connection was not closed")
			_, err = io.ReadAll(caller)
			assert.ErrorIs(t, err, syscall.ECONNRESET, "got the end")
		})
	}
}

func TestNetworks(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64",
	} {
		assert.Equal(t, want, NetworkOf(netip.MustParseAddr(address)).String(), address)
	}
	got := NetworkOf(netip.Addr{})
	assert.False(t, got.IsValid(), "no address: got %s", got)
}

// TestARestingConnectionMayBeClosed for a new one, and is not taken up again then.
func TestARestingConnectionMayBeClosed(t *testing.T) {
	l, all := admitAll("192.0.2.1")
	c := all[0]
	require.True(t, c.Begin(new(http.Request)))
	c.Rest()
	require.True(t, isIdle(c, c.state.Load()), "got the state %d of a connection that rests", c.state.Load())
	require.True(t, c.Resume())
	assert.False(t, l.evict(), "a connection with a request was closed")
	c.Rest()
	assert.True(t, l.evict())
	assert.False(t, c.Resume(), "a connection that was closed is taken up again")
}

// TestAConnectionOfManyRequests, as HTTP/2 has them, may be closed only when none of them is left.
func TestAConnectionOfManyRequests(t *testing.T) {
	l, all := admitAll("192.0.2.1")
	c, r := all[0], &http.Request{ProtoMajor: 2, Body: io.NopCloser(strings.NewReader("nobody reads this"))}
	over := tls.Server(c, new(tls.Config))
	OnState(over, http.StateActive)
	for range 3 {
		require.True(t, c.Begin(r))
	}
	c.End()
	c.Rest() // one waits to be refused
	assert.False(t, l.evict(), "one request is left")
	require.True(t, c.Resume())
	c.End()
	OnState(over, http.StateIdle) // the caller gave the last one up
	assert.False(t, l.evict(), "its handler still runs")
	c.End()
	assert.True(t, l.evict(), "got the state %d after the last one", c.state.Load())
}
