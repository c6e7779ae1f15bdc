package workflow_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
)

// caller is a workflow that has an order with the data that it was created with itself.
const caller = `
id: caller
stateMachines:
  main:
    initial: busy
    states:
      busy: {invoke: {workflow: order, data: {svcPublic: '${svcPublic}'}, onError: {target: refused, actions: [{assign: {svcPublic.reason: '${event.data.message}'}}]}}}
      refused: {on: {again: busy}}
`

const orderRules = "create: {svcPublic: {type: object, properties: {n: {type: integer}}, additionalProperties: false}}\n"

const orderFlow = "id: order\nstateMachines: {main: {initial: open, states: {open: {on: {approve: {target: end, allow: {users: [nobody]}}}}, end: {type: final}}}}\n"

// publishes publishes definitions one by one, through the interface.
func (h *harness) publishes(by *identity.Principal, texts ...string) {
	h.t.Helper()
	for _, s := range h.Sources(texts...) {
		s.File = "body.yaml"
		h.Must(workflowtest.Second(h.Catalog.PublishDefinition(s, by)))
	}
}

// strangers runs a test with workflows of ann and of mallory.
func strangers(t *testing.T, test func(h *harness, users map[identity.UserID]*identity.Principal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		users := map[identity.UserID]*identity.Principal{}
		for _, p := range []*identity.Principal{ann, mallory, root} {
			users[p.ID] = p
		}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{
			Clock: time.Now, Sender: &receiver{}, Principal: func(id identity.UserID) *identity.Principal { return users[id] },
		}, Disk: storetest.NewDisk()}), t}
		test(h, users)
		h.End()
	})
}

var (
	ann     = &identity.Principal{ID: "ann", Roles: []string{"clerk"}, Privileges: []string{"mod-workflows"}}
	mallory = &identity.Principal{ID: "mallory", Privileges: []string{"mod-workflows"}}
	root    = &identity.Principal{ID: "root", Privileges: []string{"mod-admin", "mod-workflows"}}
)

// TestNobodyForgesAChild holds statemachine/DEFINITION.md, "Who may invoke": whatever was asked when the calling workflow was published, the
// rules of the called one bind when the child comes.
func TestNobodyForgesAChild(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		by          *identity.Principal // who publishes the caller
		public      string              // what the child would begin with
		gone        bool                // the publisher has gone
		want        string              // what the reason has; "": the child runs
	}{
		{"forged data", orderRules, mallory, `{"status":"approved"}`, false, "additional properties 'status' not allowed"},
		{"data that the creators may set", orderRules, mallory, `{"n":1}`, false, ""},
		{"data for nobody to set", "create: {svcPublic: false}\n", mallory, `{"n":1}`, false, "the definition lets nobody set it"},
		{"no right to create", "allow: {create: {roles: [clerk]}}\n", mallory, `{}`, false, "the user may not create such an instance"},
		{"a right that the data gives", "allow: {create: {when: 'svcPublic.n < 10 && user.id == \"mallory\"'}}\n", mallory, `{"n":1}`, false, ""},
		{"a right that the data does not give", "allow: {create: {when: 'svcPublic.n < 10 && user.id == \"mallory\"'}}\n", mallory, `{"n":11}`, false, "the user may not create such an instance"},
		{"the publisher has gone", "allow: {create: {users: [mallory]}}\n", mallory, `{}`, true, "the user may not create such an instance"},
		{"the same, without a rule", orderRules, mallory, `{"n":1}`, true, ""},
		{"the owner's", "allow: {create: {users: [nobody]}}\n" + orderRules, ann, `{"status":"approved"}`, false, ""},
		{"an administrator's", "allow: {create: {users: [nobody]}}\n" + orderRules, root, `{"status":"approved"}`, false, ""},
		{"the caller is named", "allow: {create: {users: [nobody]}, invoke: {workflows: [caller]}}\n" + orderRules, mallory, `{"status":"approved"}`, false, ""},
	} {
		strangers(t, func(h *harness, users map[identity.UserID]*identity.Principal) {
			h.publishes(c.by, caller) // NB: there is no order yet, so nothing is asked
			h.publishes(ann, c.rules+orderFlow)
			if c.gone {
				delete(users, c.by.ID)
			}
			id := h.Make(boss, "caller", c.public)
			clocktest.Advance(time.Second)
			child, status := h.child("caller", id)
			reply := h.MustLook(boss, "caller", id)
			switch reason := string(reply.Public); {
			case c.want == "" && status != "running":
				t.Errorf("%s: the child is %q: %s", c.name, status, reason)
			case c.want == "":
				assert.Equal(t, c.public, string(h.MustLook(boss, "order", child).Public), "%s: the child", c.name)
			case status != "failed" || !strings.Contains(reason, c.want) || len(h.Instances("order")) != 0:
				t.Errorf("%s: the child is %q, and the reason %s, want one with %s", c.name, status, reason, c.want)
			}
		})
	}
}

// TestAnOlderVersionIsNoWayAround: the rules of the newest version bind, and those of the one that is named.
func TestAnOlderVersionIsNoWayAround(t *testing.T) {
	for _, rules := range [][2]string{{"", "allow: {create: {roles: [clerk]}}\n"}, {"allow: {create: {roles: [clerk]}}\n", ""}} {
		strangers(t, func(h *harness, _ map[identity.UserID]*identity.Principal) {
			h.publishes(mallory, strings.Replace(caller, "workflow: order", "workflow: order, version: 1", 1))
			h.publishes(ann, rules[0]+orderFlow, "version: 2\n"+rules[1]+orderFlow)
			id := h.Make(boss, "caller", `{}`)
			clocktest.Advance(time.Second)
			_, status := h.child("caller", id)
			assert.Equal(t, "failed", status, "%q: the child", rules)
		})
	}
}

// TestAFileIsNotBound: who writes the files of a home may write all others as well.
func TestAFileIsNotBound(t *testing.T) {
	strangers(t, func(h *harness, _ map[identity.UserID]*identity.Principal) {
		h.Publish(caller)
		h.publishes(ann, "allow: {create: {roles: [clerk]}}\n"+orderFlow)
		id := h.Make(boss, "caller", `{"status":"approved"}`)
		clocktest.Advance(time.Second)
		_, status := h.child("caller", id)
		assert.Equal(t, "running", status, "the child")
	})
}

// TestAStrangerSendsItsChildNoEvents: what a parent sends is asked no allow, so it must be one that may invoke with any data.
func TestAStrangerSendsItsChildNoEvents(t *testing.T) {
	const sending = `
id: sending
semantics: scxml
stateMachines:
  main:
    initial: busy
    states:
      busy: {invoke: {workflow: order, id: it}, on: {go: {actions: [{send: {event: approve, to: '#_it'}}]}}}
`
	for _, by := range []*identity.Principal{mallory, ann} {
		strangers(t, func(h *harness, _ map[identity.UserID]*identity.Principal) {
			h.publishes(by, sending)
			h.publishes(ann, orderFlow)
			id := h.Make(boss, "sending", "")
			clocktest.Advance(time.Second)
			child, status := h.child("sending", id)
			require.Equal(t, "running", status, "the child of %s", by.ID)
			h.MustSend(boss, "sending", id, "go", "")
			clocktest.Advance(time.Minute)
			want := map[bool]string{false: "", true: ",approve"}[by == ann]
			assert.Equal(t, want, events(t, h.MustLook(boss, "order", child)), "the child of %s has taken", by.ID)
		})
	}
}

// TestAStrangerSendsItsParentNoEvents: whoever has a child of another one's wants its output, and nothing for which no allow is asked.
func TestAStrangerSendsItsParentNoEvents(t *testing.T) {
	const (
		answering = `
id: answering
semantics: scxml
stateMachines: {main: {initial: open, states: {open: {entry: [{send: {event: approve, to: '#_parent'}}], on: {x: end}}, end: {type: final}}}}
`
		asking = `
id: asking
stateMachines:
  main: {initial: open, states: {open: {invoke: {workflow: answering}, on: {approve: {target: end, allow: {users: [nobody]}}}}, end: {type: final}}}
`
	)
	for _, c := range []struct {
		by    *identity.Principal // who publishes the child's workflow
		rules string
		want  string
	}{
		{mallory, "", ""},
		{mallory, "allow: {invoke: {workflows: [answering]}}", ",approve"},
		{ann, "", ",approve"},
		{root, "", ",approve"},
	} {
		strangers(t, func(h *harness, _ map[identity.UserID]*identity.Principal) {
			h.publishes(c.by, answering)
			h.publishes(ann, c.rules+asking)
			id := h.Make(boss, "asking", "")
			clocktest.Advance(time.Minute)
			if got := events(t, h.MustLook(boss, "asking", id)); got != c.want {
				t.Errorf("the parent of a child of %s, with %q, has taken %q, want %q", c.by.ID, c.rules, got, c.want)
			}
		})
	}
}
