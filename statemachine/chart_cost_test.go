package statemachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/transit"
)

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
