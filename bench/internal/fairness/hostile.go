package fairness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

type hostile struct {
	*caller              // with the credentials of a user
	stranger    *caller  // without, from the same address
	neighbour   *caller  // without, from the polite user's address
	records     []string // instances of its own
	hot         string   // one with a long history
	made        string   // what an attack has made before
	tasks       int      // how many tasks it makes that nobody else may read
	loops       int
	connections int
	got         harness.Observed
	budget      atomic.Int64 // requests and connections that are left
}

// budgetMax bounds what one attack sends, whatever its time.
const budgetMax = 2_000_000

func (e *hostile) close() {
	e.stranger.close()
	e.neighbour.close()
}

// goes reports whether the attack goes on, and takes one from the budget.
func (e *hostile) goes(ctx context.Context) bool {
	return ctx.Err() == nil && e.budget.Add(-1) >= 0
}

// Pauses of the hostile client, which shares the processors with the server.
const (
	pauseAfterRefusal = 10 * time.Millisecond
	pauseAfterClose   = 100 * time.Millisecond
	trickle           = 100 * time.Millisecond // between two bytes of a slow body
	heldMax           = 10 * time.Second       // an answer is left unread for so long
)

// loop keeps n requests going until ctx ends, each made by next with a number, and reads the answers.
func (e *hostile) loop(ctx context.Context, c *caller, n int, next func(number int) (path, body string)) {
	var all sync.WaitGroup
	var number atomic.Int64
	for range n {
		all.Go(func() {
			for e.goes(ctx) {
				path, body := next(int(number.Add(1)))
				status, reply, err := c.do(c.request(ctx, path, body))
				switch {
				case ctx.Err() != nil:
				case err != nil:
					e.got.Count(cause(err))
					load.Sleep(ctx, pauseAfterRefusal)
				default:
					e.got.Count(statusText(status, reply))
					if load.IsShed(status) {
						load.Sleep(ctx, pauseAfterRefusal)
					}
				}
			}
		})
	}
	all.Wait()
}

// hold keeps n connections open until ctx ends. Each sends text, then a byte after each
// pause, unless that is 0, and does not read more of an answer than its status.
func (e *hostile) hold(ctx context.Context, n int, text []byte, pause time.Duration) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for e.goes(ctx) {
				e.got.Count(e.holdOne(ctx, text, pause))
				load.Sleep(ctx, pauseAfterClose)
			}
		})
	}
	all.Wait()
}

// holdOne is one connection of hold. It returns what became of it.
func (e *hostile) holdOne(ctx context.Context, text []byte, pause time.Duration) string {
	conn, err := e.dial(ctx, "tcp", e.addr)
	if err != nil {
		return "not connected: " + cause(err)
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	// The less fits into buffers, the sooner the server has to wait.
	if tcp, ok := conn.(interface{ SetReadBuffer(bytes int) error }); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	writing.Go(func() {
		_, err := conn.Write(text)
		for pause > 0 && err == nil && ctx.Err() == nil {
			load.Sleep(ctx, pause)
			_, err = conn.Write([]byte{' '})
		}
	})
	var line [len("HTTP/1.1 200")]byte
	_, err = io.ReadFull(conn, line[:])
	switch {
	case ctx.Err() != nil:
		return "held to the end without an answer"
	case errors.Is(err, io.EOF):
		return "closed without an answer"
	case err != nil:
		return cause(err)
	case string(line[9:]) == "200":
		load.Sleep(ctx, heldMax)
		return "status 200, not read"
	}
	return "status " + string(line[9:])
}

func together(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// slowBody is the beginning of a request whose body never comes to its end.
func slowBody(c *caller, path string) []byte {
	return append(c.head(path, "application/json", 65536), '{')
}

// head is the head of a request with a body of so many bytes.
func (c *caller) head(path, contentType string, length int) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n", path, c.addr, contentType, length)
	if c.token != "" {
		head += "Authorization: svc.token " + c.token + "\r\n"
	}
	return []byte(head + "\r\n")
}

type attack struct {
	name string
	what string
	// run goes on until ctx ends, and returns when its connections are closed.
	run func(ctx context.Context, e *hostile)

	before  func(ctx context.Context, e *hostile) // what is done before anything is measured; may be nil
	alone   bool                                  // it has a home of its own, because it leaves something behind
	aligned bool                                  // a full minute begins in the measured window
}
