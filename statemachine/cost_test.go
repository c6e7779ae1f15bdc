package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/transit"
)

// manyGuards is a definition with n conditions of the form that text has, with the number in place of N.
func manyGuards(n int, text string) string {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines:\n  m:\n    states:\n      a:\n        on:\n")
	for i := range n {
		fmt.Fprintf(&b, "          e%d: {guard: '%s', target: b}\n", i, strings.ReplaceAll(text, "N", fmt.Sprint(i)))
	}
	return b.String() + "      b: {type: final}\n"
}

// manySchemas is a definition with n events that have a schema each.
func manySchemas(n int, schema string) string {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\nevents:\n  go: {}\n")
	for i := range n {
		fmt.Fprintf(&b, "  e%d: {data: %s}\n", i, strings.ReplaceAll(schema, "N", fmt.Sprint(i)))
	}
	return b.String()
}

func TestWhatAFileTakesToCompileIsBounded(t *testing.T) {
	long := "[" + strings.Repeat("1, ", 3000) + "N] == svcPublic.x"
	for _, c := range []struct {
		name          string
		few, many     string
		want          string
		line          int
		storedRefused bool
	}{
		{"expressions", manyGuards(20, long), manyGuards(30, long), "the bytes of its expressions come to more than 250000", 34, false},
		{
			"patterns in expressions", manyGuards(5, `user.id.matches("(N|bc){0,200}")`), manyGuards(50, `user.id.matches("(N|bc){0,200}")`),
			"the instructions of its regular expressions come to more than 20000", 19, true,
		},
		{
			"patterns in schemas", manySchemas(8, "{pattern: '(N|bc){0,200}'}"), manySchemas(50, "{pattern: '(N|bc){0,200}'}"),
			"the instructions of its regular expressions come to more than 20000", 17, true,
		},
		{
			"large schemas", manySchemas(9, "{anyOf: ["+strings.Repeat("{}, ", 2000)+"{const: N}]}"), manySchemas(40, "{anyOf: ["+strings.Repeat("{}, ", 1000)+"{const: N}]}"),
			"the mappings and lists in its schemas come to more than 30000", 34, false,
		},
	} {
		if _, err := parseAs(t, c.few, ParserOptions{}); err != nil {
			t.Errorf("%s: few: got %.300v", c.name, err)
		}
		_, err := parseAs(t, c.many, ParserOptions{})
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && len(faults) == 1 && strings.Contains(faults[0].Reason, c.want) && faults[0].Line == c.line,
			"%s: got %.300v, want one fault in line %d: %s", c.name, err, c.line, c.want)
		_, err = parseAs(t, c.many, ParserOptions{Stored: true})
		assert.Equal(t, c.storedRefused, err != nil, "%s: stored: got %.300v", c.name, err)
	}
}

// TestAParserStopsWhenNobodyWaits counts how often the parser asks, so that it is known that it stops between two expressions.
func TestAParserStopsWhenNobodyWaits(t *testing.T) {
	gone := errors.New("the caller is gone")
	for _, text := range []string{manyGuards(20, "svcPublic.a == N"), manySchemas(20, "{type: object}")} {
		asked := 0
		ended := func() error {
			if asked++; asked > 5 {
				return gone
			}
			return nil
		}
		_, err := newParser(t).Until(ended).With(ParserOptions{}).Parse(Source{File: "a.yaml", Text: []byte(text)})
		assert.True(t, errors.Is(err, gone) && asked == 6, "got %v after it was asked %d times, want the reason after 6", err, asked)
	}
}

// TestAParserStopsAmidYAML: a long text has no expression before its end.
func TestAParserStopsAmidYAML(t *testing.T) {
	gone, asked := errors.New("the caller is gone"), 0
	ended := func() error {
		if asked++; asked > 3 {
			return gone
		}
		return nil
	}
	text := "id: long\n" + strings.Repeat("# a remark\n", 10_000)
	_, err := newParser(t).Until(ended).Parse(Source{File: "a.yaml", Text: []byte(text)})
	assert.True(t, errors.Is(err, gone) && asked <= 5, "got %v after it was asked %d times, want the reason after 4", err, asked)
}

func chartOf(t *testing.T, p, r0 string, regions int, region string) *Definition {
	t.Helper()
	var b strings.Builder
	b.WriteString("id: a\ncontext: {svcPublic: {n: 0}}\nstateMachines: {m: {states: {\np: {type: parallel, " + p + ", states: {\nr0: {" + r0 + "},\n")
	for i := range regions {
		fmt.Fprintf(&b, "r%d: {"+region+"},\n", i+1)
	}
	b.WriteString("}}, b: {type: final}}}}\n")
	parsed, err := parseAs(t, b.String(), ParserOptions{})
	require.NoError(t, err)
	return parsed.Definition
}

func events(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "e%d: b,\n", i)
	}
	return b.String()
}

// TestTheChartIsPartOfTheCost: without it, each of these takes minutes to come to the bound on microsteps.
func TestTheChartIsPartOfTheCost(t *testing.T) {
	for what, d := range map[string]*Definition{
		"tasks":     chartOf(t, "on: {out: b}", "entry: [{raise: u}], on: {u: p}", 3900, "task: {assignee: x}"),
		"timers":    chartOf(t, "on: {out: b}", "entry: [{raise: u}], on: {u: p}", 990, "after: {P1D: b}"),
		"conflicts": chartOf(t, "on: {out: b}", "states: {a: {entry: [{raise: u}], on: {u: {target: a, reenter: true}}}}", 1900, "states: {a%[1]d: {on: {u: {target: a%[1]d, reenter: true}}}}"),
		"conditions": chartOf(t, "on: {out: b}, always: ["+strings.Repeat("{guard: svcPublic.n==1, target: b},\n", 2800)+"]",
			"entry: [{raise: u}], on: {u: {target: r0, reenter: true}}", 1, ""),
	} {
		_, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "me"}, Now: time.Unix(1, 0)})
		assert.True(t, err != nil && err.Error() == errTooCostly.Error(), "%s: got %v, want %v", what, err, errTooCostly)
	}
}

// TestASelectionAsksEachNodeOnce: not once for each active leaf below it.
func TestASelectionAsksEachNodeOnce(t *testing.T) {
	const leaves, transitions = 300, 4000
	d := chartOf(t, "on: {out: b,\n"+events(transitions)+"}", "", leaves, "")
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "me"}, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	m := d.newMacrostep(&r.Instance, r.Instance.State.At.Active, &Caller{ID: "me"}, time.Unix(2, 0))
	defer m.release()
	m.budget = expr.NewBudget((transitions + transit.LooksPerUnit) / transit.LooksPerUnit)
	if picked, _ := m.selectTransitions(trigger{name: "nothing"}); len(picked) > 0 || m.budget.Exhausted() {
		t.Errorf("got %d transitions, exhausted %t", len(picked), m.budget.Exhausted())
	}
}

// TestALongListOfEventsEnds: the last region comes when the others have cost as much as an event may.
func TestALongListOfEventsEnds(t *testing.T) {
	const transitions = 20_000
	d := chartOf(t, "on: {out: b,\n"+events(transitions)+"}", "on: {first: b}", 300, "on: {last%[1]d: b}")
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "me"}, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	listed := map[EventName]bool{}
	for _, a := range (View{Instance: &r.Instance, Of: d}).Available(&Caller{ID: "me"}, time.Unix(2, 0)) {
		listed[a.Name] = true
	}
	assert.True(t, listed["first"] && listed["out"] && listed["e0"] && listed[EventName(fmt.Sprintf("e%d", transitions-1))] && !listed["last300"],
		"got %d events, with the last region: %t", len(listed), listed["last300"])
}

// TestACheckHoldsNoTransitionAgainstEachOther: tens of thousands of one node would take half a minute.
func TestACheckHoldsNoTransitionAgainstEachOther(t *testing.T) {
	text := "id: a\nstateMachines: {m: {states: {s: {on: {out: b,\n" + strings.ReplaceAll(events(40_000), "b,", "s,") + "}}, b: {type: final}}}}\n"
	parseWithin(t, text, 10*time.Second)
}

func parseWithin(t *testing.T, text string, most time.Duration) *Parsed {
	t.Helper()
	took := cputest.Watch()
	p, err := parseAs(t, text, ParserOptions{})
	assert.LessOrEqual(t, took(), most, "it took")
	require.NoError(t, err)
	return p
}

// TestTheSearchForCirclesEnds: each of the regions sends what all of them take, and enters all of them.
func TestTheSearchForCirclesEnds(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines: {m: {states: {\n p: {type: parallel, on: {out: b}, states: {\n")
	for i := range 700 {
		fmt.Fprintf(&b, "  r%d: {states: {a%[1]d: {entry: [{send: {event: go}}], on: {go: p}}}},\n", i)
	}
	b.WriteString(" }}, b: {type: final}}}}\n")
	p := parseWithin(t, b.String(), 10*time.Second) // without a bound it is minutes
	assert.Contains(t, p.Warnings.Error(), "a circle of steps", "got %.200v", p.Warnings)
}

// TestNamesAreComparedWhileTheyAreFew: each of thousands of reads would be held against each of thousands of names.
func TestNamesAreComparedWhileTheyAreFew(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: a\ncontext: {svcPublic: {")
	for i := range 20_000 {
		fmt.Fprintf(&b, "abcdefghijk%dx: 1, ", i)
	}
	b.WriteString("x: 1}}\nstateMachines: {m: {states: {p: {entry: [\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "{assign: {svcPublic.x: '${svcPublic.zbcdzfghzjk%d}'}},\n", i)
	}
	b.WriteString("], on: {out: b}}, b: {type: final}}}}\n")
	parseWithin(t, b.String(), 20*time.Second) // without a bound it is a minute
}
