package servertest

import (
	"net"
	"testing"
)

// Nobody returns an address, "host:port", where nobody listens until the test
// ends. The port of a server that was closed would not do: it may be somebody
// else's a moment later.
func Nobody(t testing.TB) string {
	t.Helper()
	// The near end of a connection has its port for itself and does not listen.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// With a local address the port is bound as a server's is, so that not even a
	// connection to elsewhere shares it.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}
