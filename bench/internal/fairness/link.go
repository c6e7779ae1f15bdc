package fairness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/time/rate"

	"troupe/bench/internal/harness"
	"troupe/bench/process"
)

// link is a network that a client shares, of so many bytes a second each way: over loopback a client
// moves gigabytes a second, with processors that it shares with the server.
type link struct{ up, down *rate.Limiter }

// linkBurst is how much of a link goes at once, in bytes.
const linkBurst = 64 << 10

// newLink makes one of so many megabits a second; of 0 it is nil.
func newLink(megabits float64) *link {
	if megabits == 0 {
		return nil
	}
	limit := rate.Limit(megabits * 1e6 / 8)
	return &link{rate.NewLimiter(limit, linkBurst), rate.NewLimiter(limit, linkBurst)}
}

func (l *link) carry(c net.Conn) net.Conn { return &carried{c, l} }

// carried is a connection over a link. NB: it hides the other methods of the connection, which would
// go round the link.
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

// SetReadBuffer is that of the connection.
func (c *carried) SetReadBuffer(bytes int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetReadBuffer(bytes)
	}
	return nil
}

// refuseCommand is the command by which this program is a server that is ready and
// refuses everything at once: the smallest that an attack can have.
const refuseCommand = "refuse"

func refuse(ctx context.Context, h *harness.Harness) error {
	listen := h.Flags.String("listen", "", "address")
	if err := h.Parse(""); err != nil {
		return err
	}
	s := &http.Server{Addr: *listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startRefuser starts it in a process of its own.
func startRefuser(ctx context.Context, log string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, log, self, refuseCommand)
}
