package fairness

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

func queryAll(filter, more string) string {
	return workflowPath + "/instances/ticket?filter=" + url.QueryEscape(filter) + more
}

// Filters that no index helps with; slowMatch has nearly as many steps as are allowed.
const (
	noneMatches = `{"svcPublic.text":"nowhere"}`
	slowMatch   = `{"svcPublic.text":{"$regex":"(a{0,16}){30}b"}}`
)

// attacks are all, in the order in which they are carried out.
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
		{name: "bodies", what: "huge bodies and such that are no JSON, with a credential and without", run: func(ctx context.Context, e *hostile) {
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
