package statemachine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

// TestPlainRulesTakeNoMemory holds that a right which names alone decide is found without anything made for expressions.
func TestPlainRulesTakeNoMemory(t *testing.T) {
	anna := &Caller{ID: "anna", Roles: []string{"clerk"}, Privileges: []string{"mod-form"}}
	d := parseChart(t, "id: w\nallow: {create: {roles: [clerk]}, send: {roles: [manager]}}\n"+chartOfRights)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		d.CreateRight(anna, time.Time{})
		d.ReadRight(anna, time.Time{})
		d.SendRight(anna, time.Time{})
	}))
}

const chartOfRights = "stateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

func requested(t *testing.T) View {
	t.Helper()
	of := parseChart(t, "id: w\nversion: 7\n"+chartOfRights)
	r, err := of.Create(Creation{
		ID: "1", Caller: &Caller{ID: "anna"}, Public: data.Value(`{"requester":"anna"}`), Private: data.Value(`{"secret":true}`),
	})
	require.NoError(t, err)
	return View{Instance: &r.Instance, Of: of}
}

// TestSendWithoutARuleIsTheRightToRead holds statemachine/DEFINITION.md, "Allow".
func TestSendWithoutARuleIsTheRightToRead(t *testing.T) {
	d := parseChart(t, "id: w\nallow: {read: {roles: [clerk]}}\n"+chartOfRights)
	in, now := requested(t), time.Time{}
	for _, c := range []struct {
		caller *Caller
		right  Right
		may    bool
	}{{&Caller{ID: "a", Roles: []string{"clerk"}}, Granted, true}, {&Caller{ID: "b"}, Denied, false}} {
		if got := d.SendRight(c.caller, now); got != c.right {
			t.Errorf("%s: got %d, want %d", c.caller.ID, got, c.right)
		}
		if got := d.MaySend(in, c.caller, now); got != c.may {
			t.Errorf("%s: got %v, want %v", c.caller.ID, got, c.may)
		}
	}
}

// TestManyDearRulesAreBounded: what a definition says of who may take over a task, and what that is called, costs no more than an event may.
func TestManyDearRulesAreBounded(t *testing.T) {
	const dear = `svcPublic.text.matches("ab")` // some 475,000 units
	rules := strings.Repeat("{target: b, allow: {roles: [x], when: '"+dear+"'}}, ", 24)
	titles := strings.Repeat("${"+dear+"}", 24)
	d := parseChart(t, "id: w\nstateMachines: {m: {states: {a: {task: {title: '"+titles+"'}, on: {go: ["+rules+"{target: b, allow: {roles: [x], when: 'true'}}]}}, b: {type: final}}}}\n")
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "anna"}, Public: data.Value(`{"text":"` + strings.Repeat("n", 900_000) + `"}`), Now: testTime})
	require.NoError(t, err)
	v, who, work := View{Instance: &r.Instance, Of: d}, &Caller{ID: "anna", Roles: []string{"x"}}, r.Instance.Tasks()[0]
	assert.False(t, v.IsCandidate(&work, who, testTime), "the last rule was asked, behind all that are dear")
	assert.Equal(t, "a", v.TaskText(&work).Title.For("en"), "the title")
	v.Budget = NewBudget(1_000_000_000)
	assert.True(t, v.IsCandidate(&work, who, testTime) && !v.Budget.Exhausted(), "control: with enough to spend the last rule admits")
	v.Budget = NewBudget(600_000)
	got := v.Available(who, testTime)
	assert.True(t, len(got) == 0 && v.Budget.Exhausted(), "what can be sent is %v, and not charged", got)
}
