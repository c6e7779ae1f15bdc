package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func rendered(events []Available) string {
	var lines []string
	for _, e := range events {
		line := fmt.Sprintf("%s %s:", e.Name, e.Guard)
		for _, t := range e.Transitions {
			line += fmt.Sprintf(" %s.%s", t.From.Machine, t.From.Node)
			for _, target := range t.Targets {
				line += fmt.Sprintf(">%s", target)
			}
			line += fmt.Sprintf(" %s;", t.Guard)
		}
		if e.Schema != nil {
			line += " " + string(e.Schema)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// machineOf is a definition of one state machine; on is what its first node takes.
func machineOf(on string) string {
	return "id: w\nstateMachines: {main: {initial: a, states: {a: {on: {" + on + "}}, b: {on: {back: a}}}}}\n"
}

// TestAvailableSeesTheTimeThatStepSees: it never goes back within an instance.
func TestAvailableSeesTheTimeThatStepSees(t *testing.T) {
	parsed := parseChart(t, machineOf(`go: {guard: 'now >= timestamp("2026-01-01T00:00:00Z")', target: b}`))
	caller := &Caller{ID: "john"}
	r, err := parsed.Create(Creation{ID: "i", Caller: caller, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	late := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // a clock that was set back
	next, err := parsed.Step(&r.Instance, Event{Name: "go", Caller: caller, Now: late})
	require.True(t, err == nil && next.Outcome == Moved, "control: %+v, %v", next, err)
	assert.Equal(t, "go true: main.a>b true;", rendered(View{Instance: &r.Instance, Of: parsed}.Available(caller, late)))
}

// guarded draws charts as chart does, with guards, rights and wildcards, but not "*", which takes the errors of guards as well.
type guarded struct{ plainChart }

func (g *guarded) transition(last bool) string {
	parts := []string{fmt.Sprintf("reenter: %v", rapid.Bool().Draw(g.t, "reenter"))}
	if g.pick("target", "target", "none") == "target" {
		parts = append(parts, "target: "+g.pick(g.names...))
	}
	if !last {
		parts = append(parts, "guard: '"+g.pick("svcPublic.k == 1", "svcPublic.k == 2", "event.data.x == 1", "has(event.data.x)", `user.id == "u"`, "svcPublic.none == 1",
			`svcPublic.k == 1 && event.name == "e1"`, `now > timestamp("1970-01-01T00:00:05Z")`, `In("`+g.pick(g.names...)+`")`)+"'")
	}
	if allow := g.pick("", "", "{users: [u]}", "{users: [v]}", "{roles: [r]}", `{when: 'user.id == "u"'}`, "{users: [u], when: 'event.data.x == 1'}",
		"{deny: {users: [u]}}", "{when: 'event.data.x == 1', deny: {users: [v]}}", "{deny: {when: 'event.data.x == 1'}}", "{roles: [r], deny: {users: [v], when: 'svcPublic.k == 1'}}"); allow != "" {
		parts = append(parts, "allow: "+allow)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (g *guarded) on(_ *shape, indent string) {
	fmt.Fprintf(&g.b, "%son:\n", indent)
	for _, name := range []string{"e0", "e1", "e.x", g.pick("e.*", "e2")} {
		var list []string
		for n := range rapid.IntRange(0, 3).Draw(g.t, "transitions") {
			list = append(list, g.transition(n == 2))
		}
		if len(list) > 0 {
			fmt.Fprintf(&g.b, "%s  %s: [%s]\n", indent, name, strings.Join(list, ", "))
		}
	}
	fmt.Fprintf(&g.b, "%s  go: {target: %s}\n", indent, g.pick(g.names...)) // or too many nodes have no exit
}

func guardedChart(t *rapid.T, p *Parser) (*Definition, string) {
	g := &guarded{plainChart{t: t}}
	fmt.Fprintf(&g.b, "id: random\nunmatched: %s\ncontext: {svcPublic: {k: 1}}\nstateMachines:\n", g.pick("record", "reject", "ignore"))
	for m := range rapid.IntRange(1, 2).Draw(t, "machines") {
		g.machine(fmt.Sprintf("m%d", m), g.pick("compound", "compound", "parallel"), 1, g.on)
	}
	parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(g.b.String())})
	if err != nil {
		return nil, ""
	}
	return parsed.Definition, g.b.String()
}

// TestAvailableForeseesStep: what is listed as sure moves the instance, and what is listed as impossible, or is not listed,
// does not, whatever the data. The positions of each entry are those of the instance that it led to.
func TestAvailableForeseesStep(t *testing.T) {
	p := newParser(t)
	callers := []*Caller{{ID: "u"}, {ID: "v"}, {ID: "v", Roles: []string{"r"}}, {ID: "u", Roles: []string{"r"}}}
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		d, text := guardedChart(rt, p)
		if d == nil {
			return
		}
		counts["charts"]++
		r := started(rt, d)
		for n := range 8 {
			now := time.Unix(int64(n), 0)
			holdStates(rt, d, &r, text)
			next := r
			for _, caller := range callers {
				available := View{Instance: &r.Instance, Of: d}.Available(caller, now)
				for name := range d.Declared.Exact {
					for _, given := range []string{`{}`, `{"x":1}`, `{"x":2}`} {
						moved, err := d.Step(&r.Instance, Event{Name: name, Data: data.Value(given), Caller: caller, Now: now})
						verdict := unforeseen(available, name, moved.Outcome, err, counts)
						if verdict != "" {
							rt.Fatalf("step %d, %s with %s by %+v: %s, outcome %d, %v\nin %s\n%s\n%s", n, name, given, caller, verdict, moved.Outcome, err,
								d.States(&r.Instance), rendered(available), text)
						}
						if err == nil && moved.Outcome == Moved {
							holdStates(rt, d, &moved, text)
							if rapid.IntRange(0, 9).Draw(rt, "go on") == 0 {
								next = moved
							}
						}
					}
				}
			}
			r = next
		}
	})
	t.Logf("%v", counts)
	for _, what := range []string{"charts", "true", "false", "unknown", "unlisted", "unlisted and forbidden"} {
		assert.NotZero(t, counts[what], "no %s: the test tested little", what)
	}
}

func unforeseen(available []Available, name EventName, outcome Outcome, err error, counts map[string]int) string {
	moved := err == nil && outcome == Moved
	for _, a := range available {
		if a.Name != name {
			continue
		}
		counts[a.Guard.String()]++
		switch {
		case a.Guard == GuardTrue && (err == nil && !moved || errors.Is(err, ErrRejected) || errors.Is(err, ErrForbidden)):
			return "it was sure"
		case a.Guard == GuardFalse && moved:
			return "it was impossible"
		}
		return ""
	}
	counts["unlisted"]++
	if errors.Is(err, ErrForbidden) {
		counts["unlisted and forbidden"]++
	}
	if moved {
		return "it was not listed"
	}
	return ""
}

func holdStates(t *rapid.T, d *Definition, r *Result, text string) {
	if !d.IsWhole(r.Instance.State.At.Active) {
		t.Fatalf("no configuration: %s\n%s", d.States(&r.Instance), text)
	}
	entry := r.Entry.AppendJSON(nil)
	require.Equal(t, string(d.States(&r.Instance)), string(d.StatesOf(entry)), "positions of %s, %s", entry, text)
}
