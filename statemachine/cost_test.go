package statemachine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"troupe/statemachine/internal/fault"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/transit"
)

// TestAParserStopsWhenNobodyWaits counts how often the parser asks, so that it is known that it stops between two expressions.
func TestAParserStopsWhenNobodyWaits(t *testing.T) {
	gone := errors.New("the caller is gone")
	for _, text := range []string{
		"id: a\nstateMachines: {m: {states: {a: {on: {⟨e#: {guard: 'svcPublic.a == #', target: b}, ⟩{20}}}, b: {type: final}}}}\n",
		"id: a\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\nevents: {go: {}, ⟨e#: {data: {type: object}}, ⟩{20}}\n",
	} {
		asked := 0
		ended := func() error {
			if asked++; asked > 5 {
				return gone
			}
			return nil
		}
		_, err := newParser(t).Until(ended).With(ParserOptions{}).Parse(Source{File: "a.yaml", Text: []byte(expand(text))})
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

// TestASelectionAsksEachNodeOnce: not once for each active leaf below it.
func TestASelectionAsksEachNodeOnce(t *testing.T) {
	const transitions = 4000
	d := parseChart(t, expand("id: a\nstateMachines: {m: {states: {p: {type: parallel, on: {out: b, ⟨e#: b, ⟩{4000}}, states: {⟨r#: {}, ⟩{300}}}, b: {type: final}}}}\n"))
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "me"}, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	m := d.newMacrostep(&r.Instance, r.Instance.State.At.Active, &Caller{ID: "me"}, time.Unix(2, 0))
	defer m.release()
	m.budget = expr.NewBudget((transitions + transit.LooksPerUnit) / transit.LooksPerUnit)
	if picked, _ := m.selectTransitions(trigger{name: "nothing"}); len(picked) > 0 || m.budget.Exhausted() {
		t.Errorf("got %d transitions, exhausted %t", len(picked), m.budget.Exhausted())
	}
}

// TestALongListOfEventsEnds: the last region comes when the others have cost as much as they may.
func TestALongListOfEventsEnds(t *testing.T) {
	d := parseChart(t, expand("id: a\nstateMachines: {m: {states: {p: {type: parallel, on: {out: b, ⟨e#: b, ⟩{2000}}, states: {"+
		"r0: {on: {first: b}}, ⟨q#: {on: {last#: b}}, ⟩{300}}}, b: {type: final}}}}\n"))
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "me"}, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	listed := map[EventName]bool{}
	for _, a := range (View{Instance: &r.Instance, Of: d, Budget: NewBudget(fault.MaxCost / 10)}).Available(&Caller{ID: "me"}, time.Unix(2, 0)) {
		listed[a.Name] = true
	}
	assert.True(t, listed["first"] && listed["out"] && listed["e0"] && listed["e1999"] && !listed["last299"],
		"got %d events, with the last region: %t", len(listed), listed["last299"])
}
