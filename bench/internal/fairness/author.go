package fairness

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"troupe/bench/load"
)

// authorAttacks are those of a user who may publish workflows. What they leave behind continues on its own, so
// that each has a home of its own.
func authorAttacks() []attack {
	all := []attack{
		{name: "author-schemas", what: "event data with a schema of 2^25 steps, and with a pattern of 270,000 instructions", run: func(ctx context.Context, e *hostile) {
			together(
				func() { e.sendOne(ctx, "doubling", doubling(25), "{}") },
				func() { e.sendOne(ctx, "pattern", patterned(300, 900), `{"text":"aaaaaaaaaa"}`) },
			)
		}},
		{name: "author-schedules", what: "5,000 schedules, and if they are refused 100, each of every minute", aligned: true, run: func(ctx context.Context, e *hostile) {
			if e.publish(ctx, "clock", schedules(5000), false) != http.StatusOK {
				e.publish(ctx, "clock", schedules(100), false)
			}
			<-ctx.Done()
		}},
		{name: "author-sends", what: "32 instances that send themselves an event for each that they take", run: func(ctx context.Context, e *hostile) {
			e.publish(ctx, "spin", spinning, false)
			for range 32 {
				e.sendOne(ctx, "spin", "", "{}")
			}
			<-ctx.Done()
		}},
		{name: "author-tasks", what: "tasks of the polite user's role whose instances that user may not read", before: func(ctx context.Context, e *hostile) {
			e.publish(ctx, "hidden", hidden, false)
			e.batches(ctx, e.tasks, `{"workflowId":"hidden"}`)
		}, run: idle},
		{name: "author-children", what: "a workflow whose 100 machines invoke it again", run: func(ctx context.Context, e *hostile) {
			e.publish(ctx, "fork", forking(), false)
			e.create(ctx, "fork")
			<-ctx.Done()
		}},
		{name: "author-histories", what: "an instance of 100 machines with long names, read again and again after many events", before: func(ctx context.Context, e *hostile) {
			e.publish(ctx, "wide", wide(), false)
			e.made = e.create(ctx, "wide")
			e.batches(ctx, e.tasks, `{"workflowId":"wide","instanceId":"`+e.made+`","event":{"name":"go"}}`)
		}, run: func(ctx context.Context, e *hostile) {
			e.loop(ctx, e.caller, 2, func(int) (path, body string) { return workflowPath + "/instance/wide/" + e.made, "" })
		}},
		{name: "author-checks", what: "60 callers that have 250 guards of 939 KiB checked and leave", run: func(ctx context.Context, e *hostile) {
			text := guards(250, 939<<10)
			e.each(ctx, 60, func(ctx context.Context) {
				ctx, leave := context.WithTimeout(ctx, 500*time.Millisecond)
				defer leave()
				if e.publish(ctx, "guarded", text, true) != http.StatusOK {
					load.Sleep(ctx, pauseAfterRefusal)
				}
			})
		}},
		{name: "idle-batches", what: "batches of lines that send none, beside 16 busy connections", run: func(ctx context.Context, e *hostile) {
			together(
				func() {
					e.hold(ctx, e.connections, e.head(workflowPath+"/events", "application/x-ndjson", 1<<20), 0)
				},
				func() { e.loop(ctx, e.caller, 16, e.floodEvents) },
			)
		}},
		{name: "wrong-bodies", what: "bodies of a MiB that end as 400, over 16 connections", run: func(ctx context.Context, e *hostile) {
			body := event(e.records[0], `{"text":"`+strings.Repeat("a", 1<<20-200)+`"`) // never closed
			e.loop(ctx, e.caller, 16, func(int) (path, text string) { return workflowPath + "/event", body })
		}},
	}
	for i := range all {
		all[i].alone = strings.HasPrefix(all[i].name, "author-")
	}
	return all
}

// idle does nothing more: what was published continues on its own.
func idle(ctx context.Context, _ *hostile) { <-ctx.Done() }

func (e *hostile) publish(ctx context.Context, id, text string, dryRun bool) (status int) {
	path := workflowPath + "/definitions/" + id
	if dryRun {
		path += "?dryRun=true"
	}
	r := e.request(ctx, path, text)
	r.Method = http.MethodPut
	r.Header.Set("Content-Type", "application/yaml")
	status, body, err := e.do(r)
	e.count("published: ", status, body, err)
	return status
}

func (e *hostile) create(ctx context.Context, workflow string) string {
	ids, err := e.createAll(ctx, 1, 1, func(int) (path, body string) {
		return workflowPath + "/create", `{"workflowId":"` + workflow + `"}`
	})
	if err != nil {
		e.got.Count("not created")
	}
	return ids[0]
}

// sendOne publishes a definition if there is one to publish, makes an instance of it and sends it one event "go" after
// the other for as long as they are answered with an error; a good answer is the last.
func (e *hostile) sendOne(ctx context.Context, workflow, text, data string) {
	if text != "" && e.publish(ctx, workflow, text, false) != http.StatusOK {
		return
	}
	body := `{"workflowId":"` + workflow + `","instanceId":"` + e.create(ctx, workflow) + `","event":{"name":"go","data":` + data + `}}`
	for e.goes(ctx) {
		status, reply, err := e.do(e.request(ctx, workflowPath+"/event", body))
		if e.count("", status, reply, err); status == http.StatusOK {
			return
		}
		load.Sleep(ctx, pauseAfterRefusal)
	}
}

func (e *hostile) batches(ctx context.Context, n int, item string) {
	const size = 1000
	items := "[" + strings.Repeat(item+",", size-1) + item + "]"
	for sent := 0; sent < n && e.goes(ctx); sent += size {
		status, reply, err := e.do(e.request(ctx, workflowPath+"/events", items))
		e.count("batches: ", status, reply, err)
	}
}

func (e *hostile) each(ctx context.Context, n int, act func(ctx context.Context)) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for e.goes(ctx) {
				act(ctx)
			}
		})
	}
	all.Wait()
}

// one is a definition with one machine whose node "a" has a body.
func one(id, head, body string) string {
	return "id: " + id + "\nname: " + id + "\n" + head + "stateMachines:\n  main:\n    initial: a\n    states:\n      a:\n" + body
}

func doubling(levels int) string {
	var b strings.Builder
	for level := range levels {
		fmt.Fprintf(&b, "        d%d: {allOf: [{$ref: '#/$defs/d%d'}, {$ref: '#/$defs/d%[2]d'}]}\n", level, level+1)
	}
	head := fmt.Sprintf("events:\n  go:\n    data:\n      $ref: '#/$defs/d0'\n      $defs:\n%s        d%d: {type: object}\n", b.String(), levels)
	return one("doubling", head, "        on: {go: a}\n")
}

func patterned(n, letters int) string {
	pattern := fmt.Sprintf("^(%s)*$", strings.Repeat(fmt.Sprintf("(a?){%d}", letters), n))
	return one("pattern", "events:\n  go:\n    data: {properties: {text: {pattern: '"+pattern+"'}}}\n", "        on: {go: a}\n")
}

func schedules(n int) string {
	var b strings.Builder
	b.WriteString("schedules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d: {cron: '* * * * *', missed: all}\n", i)
	}
	return one("clock", b.String(), "        on: {go: a}\n")
}

var spinning = one("spin", "", "        on: {go: {actions: [{send: {event: go}}]}}\n")

// hidden has a task for the polite user's role, who may not read it.
var hidden = one("hidden", "allow: {read: {roles: [author]}}\n", "        on: {go: {target: a, allow: {roles: [staff]}}}\n")

func forking() string {
	var b strings.Builder
	b.WriteString("id: fork\nname: fork\nstateMachines:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  m%d: {initial: a, states: {a: {invoke: {workflow: fork}, on: {go: a}}}}\n", i)
	}
	return b.String()
}

// wide has a hundred machines with long names; "go" moves one.
func wide() string {
	var b strings.Builder
	b.WriteString("id: wide\nname: wide\nstateMachines:\n")
	for i := range 100 {
		event := fmt.Sprintf("go%d", i)
		if i == 0 {
			event = "go" // moves one machine of a hundred
		}
		name := strings.Repeat("m", 50) + strconv.Itoa(i)
		fmt.Fprintf(&b, "  %s: {initial: %[1]s-a, states: {%[1]s-a: {on: {%s: {target: %[1]s-a, reenter: true}}}}}\n", name, event)
	}
	return b.String()
}

func guards(n, size int) string {
	var b strings.Builder
	for i := range n {
		text := fmt.Sprintf("svcPublic.n%d == 1", i)
		fmt.Fprintf(&b, "            - {guard: '%s%s', target: b}\n", text, strings.Repeat(" || "+text, (size/n-40)/(len(text)+4)))
	}
	return one("guarded", "", "        on:\n          go:\n"+b.String()+"            - b\n      b: {type: final}\n")
}
