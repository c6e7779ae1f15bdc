package statemachine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

// TestRights holds statemachine/DEFINITION.md, "Rules" and "Allow": what a rule says
// before an instance is there, and what it says of an instance.
func TestRights(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	anna := &Caller{ID: "anna", Roles: []string{"clerk"}, Privileges: []string{"mod-form"}}
	for _, c := range []struct {
		name, rule string
		want       Right
		may        bool // for an instance that anna has requested
	}{
		{"no rule", "", Granted, true},
		{"her role", "{roles: [manager, clerk]}", Granted, true},
		{"another role", "{roles: [manager]}", Denied, false},
		{"her privilege", "{privileges: mod-form}", Granted, true},
		{"another privilege", "{privileges: [mod-other]}", Denied, false},
		{"her name", "{users: [anna]}", Granted, true},
		{"one list of several", "{users: [bert], roles: [clerk]}", Granted, true},
		{"when about the user", "{when: 'user.id == \"anna\"'}", Granted, true},
		{"when about the user, false", "{when: 'user.id == \"bert\"'}", Denied, false},
		{"when about the time", "{when: 'now < timestamp(\"2027-01-01T00:00:00Z\")'}", Granted, true},
		{"when fails without an instance", "{when: 'user.roles[7] == \"x\"'}", Denied, false},
		{"when about the instance", "{when: 'svcPublic.requester == user.id'}", ByInstance, true},
		{"when about the instance, false", "{when: 'svcPublic.requester == \"bert\"'}", ByInstance, false},
		{"when about the private data", "{when: 'svcPrivate.secret'}", ByInstance, true},
		{"when about states", "{when: 'instance.states.exists(s, s.nodeId == \"a\")'}", ByInstance, true},
		{"when fails on the instance", "{when: 'svcPublic.missing'}", ByInstance, false},
		{"when about the event, of which there is none", "{when: 'event.name == \"x\"'}", ByInstance, false},
		{"her role and when", "{roles: [clerk], when: 'svcPublic.requester == user.id'}", ByInstance, true},
		{"another role and when", "{roles: [manager], when: 'svcPublic.requester == user.id'}", Denied, false},
		{"deny by name", "{roles: [clerk], deny: {users: [anna]}}", Denied, false},
		{"deny of another", "{roles: [clerk], deny: {users: [bert]}}", Granted, true},
		{"deny of another, by instance", "{deny: {users: [bert], when: 'svcPrivate.secret'}}", Granted, true},
		{"deny by instance", "{deny: {when: 'svcPrivate.secret'}}", ByInstance, false},
		{"deny by instance, false", "{deny: {when: '!svcPrivate.secret'}}", ByInstance, true},
		{"deny by time", "{deny: {when: 'now > timestamp(\"2027-01-01T00:00:00Z\")'}}", Granted, true},
		{"deny that fails denies", "{deny: {when: 'user.roles[7] == \"x\"'}}", Denied, false},
		{"deny that fails on the instance denies", "{deny: {when: 'svcPublic.missing'}}", ByInstance, false},
		{"deny of all but one", "{deny: {roles: [clerk], deny: {users: [anna]}}}", Granted, true},
		{"deny of all but another", "{deny: {roles: [clerk], deny: {users: [bert]}}}", Denied, false},
		{"deny but by instance", "{deny: {deny: {when: 'svcPrivate.secret'}}}", ByInstance, true},
		{"deny but by instance, false", "{deny: {deny: {when: '!svcPrivate.secret'}}}", ByInstance, false},
		{"deny but what fails", "{deny: {deny: {when: 'user.roles[7] == \"x\"'}}}", Denied, false},
		{"deny but what is denied", "{deny: {deny: {users: [anna], deny: {roles: [clerk]}}}}", Denied, false},
		{"when about In", "{when: 'In(\"m.a\")'}", ByInstance, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			allow := ""
			if c.rule != "" {
				allow = "allow: {create: " + c.rule + ", read: " + c.rule + ", send: " + c.rule + "}\n"
			}
			d := parseChart(t, "id: w\n"+allow+chartOfRights)
			in := requested(t)
			for right, got := range map[string]Right{"create": d.CreateRight(anna, now), "read": d.ReadRight(anna, now), "send": d.SendRight(anna, now)} {
				assert.Equal(t, c.want, got, "%s without an instance", right)
			}
			assert.Equal(t, c.may, d.MayRead(in, anna, now), "read")
			assert.Equal(t, c.may, d.MaySend(in, anna, now), "send")
		})
	}
}

// TestPlainRulesTakeNoMemory holds that a right which names alone decide is found without
// anything made for expressions.
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

// requested returns an instance that anna has requested, under a version of its own.
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
	const dear = "lists.range(1000).all(x, x in lists.range(500) || x >= 500)" // some 500,000 units
	rules := strings.Repeat("{target: b, allow: {roles: [x], when: '!"+dear+"'}}, ", 24)
	titles := strings.Repeat("${"+dear+"}", 24)
	d := parseChart(t, "id: w\nstateMachines: {m: {states: {a: {task: {title: '"+titles+"'}, on: {go: ["+rules+"{target: b, allow: {roles: [x], when: 'true'}}]}}, b: {type: final}}}}\n")
	r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "anna"}, Now: testTime})
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
