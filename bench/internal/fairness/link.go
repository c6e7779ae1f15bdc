package fairness

import (
	"context"
	"net"

	"golang.org/x/time/rate"
)

// link is a network that a client shares, of so many bytes a second each way: over loopback a client
// moves gigabytes a second, with processors that it shares with the server.
type link struct{ up, down *rate.Limiter }

// linkBurst is how much of a link goes at once, in bytes.
const linkBurst = 64 << 10

// linkMegabits is the hostile one's network, in megabits a second.
const linkMegabits = 1000

// newLink makes one of so many megabits a second.
func newLink(megabits float64) *link {
	limit := rate.Limit(megabits * 1e6 / 8)
	return &link{rate.NewLimiter(limit, linkBurst), rate.NewLimiter(limit, linkBurst)}
}

func (l *link) carry(c net.Conn) net.Conn { return &carried{c, l} }

// carried is a connection over a link. NB: it hides the other methods of the connection, which would go round the link.
type carried struct {
	net.Conn
	over *link
}

func (c *carried) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p[:min(len(p), linkBurst)])
	if wait := c.over.down.WaitN(context.Background(), n); err == nil {
		err = wait
	}
	return n, err
}

func (c *carried) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(len(p), n+linkBurst)]
		if err = c.over.up.WaitN(context.Background(), len(part)); err == nil {
			var wrote int
			wrote, err = c.Conn.Write(part)
			n += wrote
		}
	}
	return n, err
}

func (c *carried) SetReadBuffer(bytes int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetReadBuffer(bytes)
	}
	return nil
}
