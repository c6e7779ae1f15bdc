package fairness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"troupe/bench/load"
)

// caller sends requests with the credentials of one user, or with none. Its fields are only read once it is in use.
type caller struct {
	addr          string // of the server
	token, cookie string // "" is none
	dial          func(ctx context.Context, network, addr string) (net.Conn, error)
	client        *http.Client
}

const answerWaitMax = 5 * time.Second

// newCaller makes a caller whose connections come from a loopback address, over a link; nil is
// loopback itself. It keeps up to connections of them.
func newCaller(addr, from string, connections int, over *link) *caller {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := &caller{addr: addr, dial: dialer.DialContext}
	if over != nil {
		c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return over.carry(conn), nil
		}
	}
	c.client = &http.Client{Transport: &http.Transport{
		DialContext: c.dial, MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
	}}
	return c
}

func (c *caller) close() { c.client.CloseIdleConnections() }

func (c *caller) with(token, cookie string) *caller {
	d := *c
	d.token, d.cookie = token, cookie
	return &d
}

// request makes a request; an empty body is a GET. The credential is the one that
// the path's group takes (gateway/INTERFACE.md, "Credentials").
func (c *caller) request(ctx context.Context, path, body string) *http.Request {
	method, reader := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, reader = http.MethodPost, strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, reader)
	if err != nil {
		panic(err) // our own path
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.token == "":
	case strings.HasPrefix(path, "/form-"):
		r.AddCookie(&http.Cookie{Name: "session", Value: c.cookie})
	case strings.HasPrefix(path, "/workflow/"):
		r.Header.Set("Authorization", "svc.token "+c.token)
	default:
		r.Header.Set("Authentication", "svc.token "+c.token)
	}
	return r
}

func (c *caller) raw(path, body string) []byte {
	var b bytes.Buffer
	if err := c.request(context.Background(), path, body).Write(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

func (c *caller) do(r *http.Request) (status int, body []byte, err error) {
	reply, err := c.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	body, err = io.ReadAll(reply.Body)
	return reply.StatusCode, body, err
}

// statusText names an answer. One that refuses for now has its reason too, which
// does not mention the request and so repeats.
func statusText(status int, body []byte) string {
	var reply struct {
		Message string `json:"message"`
	}
	text := "status " + strconv.Itoa(status)
	if load.IsShed(status) && json.Unmarshal(body, &reply) == nil && reply.Message != "" {
		text += " (" + reply.Message + ")"
	}
	return text
}

// cause is why there was no answer, without ports, so that it repeats.
func cause(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in " + answerWaitMax.String()
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed without an answer"
	}
	if text := err.Error(); strings.Contains(text, "server closed") {
		return "closed without an answer"
	} else if _, reason, ok := strings.Cut(text, `": `); ok { // net/http puts the address in front
		return reason
	}
	return err.Error()
}

const workflowPath = "/workflow/api/v1"

// event is the body of an event "note".
func event(id, data string) string {
	return `{"workflowId":"ticket","instanceId":"` + id + `","event":{"name":"note","data":` + data + `}}`
}

func newTicket(text string) func(int) (path, body string) {
	body := `{"workflowId":"ticket","data":{"svcPublic":{"text":"` + text + `"}}}`
	return func(int) (string, string) { return workflowPath + "/create", body }
}

// createAll sends n requests, several at a time, and returns the instances that the
// answers name. Any other answer than 200 ends it.
func (c *caller) createAll(ctx context.Context, n, parallel int, next func(n int) (path, body string)) ([]string, error) {
	ids := make([]string, n)
	err := load.Each(ctx, parallel, n, func(ctx context.Context, i int) error {
		path, body := next(i)
		status, reply, err := c.do(c.request(ctx, path, body))
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("fill the store: %s: status %d %s: %w", path, status, reply, err)
		}
		var named struct {
			ID string `json:"instanceId"`
		}
		_ = json.Unmarshal(reply, &named) // group A answers with a text
		ids[i] = named.ID
		return nil
	})
	return ids, err
}

// link is a network that a client shares, of so many bytes per second each way: over loopback a client
// moves gigabytes per second, with processors that it shares with the server.
type link struct{ up, down *rate.Limiter }

// linkBurst is how much of a link goes at once, in bytes.
const linkBurst = 64 << 10

const linkMegabits = 1000

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
