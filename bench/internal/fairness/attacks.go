package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

func queryAll(filter, more string) string {
	return workflowPath + "/instances/ticket?filter=" + url.QueryEscape(filter) + more
}

// Filters that no index helps with; slowMatch has nearly as many steps as are allowed.
const (
	noneMatches = `{"svcPublic.text":"nowhere"}`
	slowMatch   = `{"svcPublic.text":{"$regex":"(a{0,16}){30}b"}}`
)

func attacks() []attack {
	return slices.Concat(readAttacks(), heldAttacks(), writeAttacks(), authorAttacks())
}

func readAttacks() []attack {
	loop := func(next func(e *hostile, n int) string) func(context.Context, *hostile) {
		return func(ctx context.Context, e *hostile) {
			e.loop(ctx, e.caller, e.loops, func(n int) (path, body string) { return next(e, n), "" })
		}
	}
	lists := []string{"forms/mycurrent", "forms/mysubmitted", "forms/myarchived", "checklists/mycurrent", "forms/role/staff", "role-info"}
	return []attack{
		{name: "nobody", what: "no attack: what the others are compared with", run: func(ctx context.Context, _ *hostile) { <-ctx.Done() }},
		{name: "queries-unread", what: "pages of 1,000 records whose answers are never read", run: func(ctx context.Context, e *hostile) {
			e.hold(ctx, e.connections/2, bytes.Repeat(e.raw(queryAll(`{"states.nodeId":"open"}`, "&limit=1000"), ""), 8), 0)
		}},
		{name: "queries-regex", what: "the slowest regular expression over all records", run: loop(func(*hostile, int) string { return queryAll(slowMatch, "") })},
		{name: "queries-scan", what: "full scans for nothing", run: loop(func(*hostile, int) string { return queryAll(noneMatches, "&count=true") })},
		{name: "histories-unread", what: "an instance with a long history, many times on each connection, never read", run: func(ctx context.Context, e *hostile) {
			e.hold(ctx, e.connections/2, bytes.Repeat(e.raw(workflowPath+"/instance/ticket/"+e.hot, ""), 64), 0)
		}},
		{name: "forms-lists", what: "lists of group A", run: loop(func(_ *hostile, n int) string { return "/form-portal/" + lists[n%len(lists)] })},
	}
}

func heldAttacks() []attack {
	return []attack{
		{name: "idle-connections", what: "connections without a credential that send nothing", run: func(ctx context.Context, e *hostile) {
			e.hold(ctx, e.connections, nil, 0)
		}},
		{name: "slow-bodies", what: "bodies of an event that come byte by byte, with a credential", run: func(ctx context.Context, e *hostile) {
			e.hold(ctx, e.connections, slowBody(e.caller, workflowPath+"/event"), trickle)
		}},
		{name: "slow-bodies-stranger", what: "bodies of a sign-in that come byte by byte, without a credential", run: func(ctx context.Context, e *hostile) {
			e.hold(ctx, e.connections, slowBody(e.stranger, "/session"), trickle)
		}},
		{name: "line-without-end", what: "batches of lines: eight lines of 15 MiB that go on byte by byte", run: func(ctx context.Context, e *hostile) {
			head := e.head(workflowPath+"/events", "application/x-ndjson", 16<<20)
			e.hold(ctx, 8, append(head, `{"workflowId":"`+strings.Repeat("x", 15<<20)...), time.Millisecond)
		}},
		{name: "watches", what: "streams of events that are never read, while events come", run: func(ctx context.Context, e *hostile) {
			watch := e.raw(workflowPath+"/watch/ticket?filter="+url.QueryEscape(`{"svcPublic.comment":{"$regex":"number .*7$"}}`), "")
			together(
				func() { e.hold(ctx, e.connections, watch, 0) },
				func() { e.loop(ctx, e.caller, 4, e.floodEvents) },
			)
		}},
	}
}

func writeAttacks() []attack {
	return []attack{
		{name: "hot-instance", what: "events to one instance", run: func(ctx context.Context, e *hostile) {
			e.loop(ctx, e.caller, e.loops, func(int) (string, string) { return workflowPath + "/event", event(e.records[0], `{"comment":"flood"}`) })
		}},
		{name: "creates", what: "new instances", run: func(ctx context.Context, e *hostile) { e.loop(ctx, e.caller, e.loops, newTicket("flood")) }},
		{name: "passwords", what: "wrong passwords for other users, from the polite user's address", run: func(ctx context.Context, e *hostile) {
			e.loop(ctx, e.neighbour, e.loops, func(n int) (string, string) {
				user := "hostile"
				if n%2 == 0 {
					user = fmt.Sprintf("nobody-%d", n)
				}
				return "/session", fmt.Sprintf(`{"user":%q,"password":"wrong number %d"}`, user, n)
			})
		}},
		{name: "bodies", what: "huge bodies and bodies that are not JSON, with a credential and without", run: func(ctx context.Context, e *hostile) {
			bodies := []string{
				event(e.records[0], "["+strings.Repeat("[1],", 1<<17)+"1]"),
				event(e.records[0], `{"a":`+strings.Repeat(`{"a":`, 1<<17)), // never closed
				event(e.records[0], `{"text":"`+strings.Repeat("a", 8<<20)+`"}`),
			}
			next := func(path string) func(int) (string, string) {
				return func(n int) (string, string) { return path, bodies[n%len(bodies)] }
			}
			together(
				func() { e.loop(ctx, e.caller, e.loops/2+1, next(workflowPath+"/event")) },
				func() { e.loop(ctx, e.stranger, e.loops/2+1, next("/session")) },
			)
		}},
	}
}

func (e *hostile) floodEvents(n int) (path, body string) {
	return workflowPath + "/event", event(e.records[n%len(e.records)], fmt.Sprintf(`{"comment":"number %d"}`, n))
}

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
func (e *hostile) goes(ctx context.Context) bool { return ctx.Err() == nil && e.budget.Add(-1) >= 0 }

// Pauses of the hostile client, which shares the processors with the server.
const (
	pauseAfterRefusal = 10 * time.Millisecond
	pauseAfterClose   = 100 * time.Millisecond
	trickle           = 100 * time.Millisecond // between two bytes of a slow body
	heldMax           = 10 * time.Second       // an answer is left unread for so long
)

// loop keeps n requests going until ctx ends, each made by next with a number, and reads the answers.
func (e *hostile) loop(ctx context.Context, c *caller, n int, next func(number int) (path, body string)) {
	var number atomic.Int64
	e.each(ctx, n, func(ctx context.Context) {
		path, body := next(int(number.Add(1)))
		status, reply, err := c.do(c.request(ctx, path, body))
		if ctx.Err() != nil {
			return
		}
		if e.count("", status, reply, err); err != nil || load.IsShed(status) {
			load.Sleep(ctx, pauseAfterRefusal)
		}
	})
}

func (e *hostile) count(what string, status int, reply []byte, err error) {
	if err != nil {
		e.got.Count(what + cause(err))
	} else {
		e.got.Count(what + statusText(status, reply))
	}
}

// hold keeps n connections open until ctx ends. Each sends text, then a byte after each pause, unless that is 0, and does
// not read more of an answer than its status.
func (e *hostile) hold(ctx context.Context, n int, text []byte, pause time.Duration) {
	e.each(ctx, n, func(ctx context.Context) {
		e.got.Count(e.holdOne(ctx, text, pause))
		load.Sleep(ctx, pauseAfterClose)
	})
}

// holdOne is one connection of hold. It returns what happened to it.
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
