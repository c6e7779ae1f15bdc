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

// TestCallersReachPrivateDataOnlyWhereDeclared: whatever the event and its data,
// svcPrivate stays as it is unless the event's declaration says otherwise, and
// what names both documents in an unclear way changes nothing.
func TestCallersReachPrivateDataOnlyWhereDeclared(t *testing.T) {
	d := parseChart(t, `
id: w
context: {svcPublic: {a: 0}, svcPrivate: {limit: 1}}
events:
  both: {private: true}
  replaced: {private: true, apply: replace}
  hidden: {into: svcPrivate}
  shown: {into: svcPublic}
  quiet: {apply: none, private: true}
  loose: {unmatched: apply, allow: {users: [u]}}
stateMachines: {m: {initial: a, states: {a: {on: {plain: {}, both: {}, replaced: {}, hidden: {}, shown: {}, quiet: {}}}}}}
`)
	value := rapid.SampledFrom([]string{`1`, `null`, `[]`, `{}`, `{"limit":2}`, `{"svcPrivate":{"limit":3}}`, `{"a":1}`})
	reached, refused := 0, 0
	property := func(rt *rapid.T) {
		start := started(rt, d)
		name := rapid.SampledFrom([]string{"plain", "both", "replaced", "hidden", "shown", "quiet", "loose"}).Draw(rt, "event")
		roots, others, objects, private, members := 0, 0, true, false, []string{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"svcPublic", "svcPrivate", "a", "svcprivate"}), 0, 3, rapid.ID[string]).Draw(rt, "keys") {
			v := value.Draw(rt, key)
			if strings.HasPrefix(key, "svcP") {
				roots++
				objects = objects && strings.HasPrefix(v, "{")
				private = private || key == "svcPrivate"
			} else {
				others++
			}
			members = append(members, fmt.Sprintf("%q:%s", key, v))
		}
		given := data.Value("{" + strings.Join(members, ",") + "}")
		if rapid.Bool().Draw(rt, "escaped") {
			given = data.Value(strings.ReplaceAll(string(given), "svc", `\u0073vc`))
		}
		whole := name == "hidden" || name == "shown"
		mayNamePrivate := name == "both" || name == "replaced" || name == "quiet"
		wantRefusal := roots > 0 && (others > 0 || !objects || whole || private && !mayNamePrivate)

		r, err := d.Step(&start.Instance, Event{Name: EventName(name), Data: given, Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
		require.True(rt, errors.Is(err, ErrInvalidData) == wantRefusal && (wantRefusal || err == nil), "%v %v %v %v", name, given, err, wantRefusal)
		if err != nil {
			refused++
			return
		}
		if got := string(r.Instance.Private); got != `{"limit":1}` {
			reached++
			require.False(rt, name != "hidden" && !(private && (name == "both" || name == "replaced")), "%s with %s: svcPrivate is %s", name, given, got)
		}
		require.False(rt, name == "quiet" && string(r.Instance.Public) != `{"a":1}`, "%s with %s: svcPublic is %s", name, given, r.Instance.Public)
	}
	for tries := 0; reached == 0 || refused == 0; tries++ { // NB: a hundred draws can miss one of them
		if rapid.Check(t, property); tries == 100 {
			t.Fatalf("%d reached svcPrivate and %d were refused: the test tested nothing", reached, refused)
		}
	}
}

const ownSteps = "a circle of steps that the instance causes itself starts here, and nothing guards it (give one of them a guard or a delay: after 100 in a minute each waits longer)"

// TestWarnings: a condition that whoever creates an instance can decide is told,
// with its place, and the definition is good all the same.
func TestWarnings(t *testing.T) {
	p := newParser(t)
	const chart = "stateMachines: {m: {initial: a, states: {a: {on: {go: {guard: 'svcPrivate.limit > 1', target: b}}}, b: {on: {back: a}}}}}\n"
	const told = `w.yaml:3:63: the condition reads svcPrivate.limit, but users who create an instance can replace its default (make it const.limit, or say what may be set: create: {svcPrivate: false})`
	at := func(place, key string) string {
		return strings.NewReplacer("3:63", place, "limit", key).Replace(told)
	}
	for _, c := range []struct{ name, text, want string }{
		{"a guard", "id: w\ncontext: {svcPrivate: {limit: 5}}\n" + chart, told},
		{"a default that nobody can replace", "id: w\ncontext: {svcPrivate: {limit: 5}}\ncreate: {svcPrivate: false}\n" + chart, ""},
		{"one that the schema leaves out", "id: w\ncontext: {svcPrivate: {limit: 5}}\ncreate: {svcPrivate: {properties: {a: {}}, additionalProperties: false}}\n" + chart, ""},
		{"one that the schema has", "id: w\ncontext: {svcPrivate: {limit: 5}}\ncreate: {svcPrivate: {properties: {limit: {}}, additionalProperties: false}}\n" + chart, at("4:63", "limit")},
		{"svcPublic alone is closed", "id: w\ncontext: {svcPrivate: {limit: 5}}\ncreate: {svcPublic: false}\n" + chart, at("4:63", "limit")},
		{"no default", "id: w\ncontext: {svcPrivate: {other: 5}}\n" + chart, ""},
		{"no condition", "id: w\ncontext: {svcPrivate: {limit: 5}}\nstateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{assign: {svcPublic.x: '${svcPrivate.limit}'}}]}}}}}}\n", ""},
		{"an allow", "id: w\ncontext: {svcPrivate: {limit: 5}}\nallow: {read: {when: 'user.id in svcPrivate.limit'}}\nstateMachines: {m: {initial: a, states: {a: {on: {go: a}}}}}\n", at("3:22", "limit")},
		{"an if", "id: w\ncontext: {svcPrivate: {limit: 5}}\nstateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{if: 'svcPrivate.?limit.hasValue()', then: []}]}}}}}}\n", at("3:71", "limit")},
		{"a named guard, used twice", "id: w\ncontext: {svcPrivate: {limit: 5}}\nguards: {big: 'svcPrivate.limit > 1'}\nstateMachines: {m: {initial: a, states: {a: {on: {go: {guard: big, target: a}, to: {guard: big, target: a}}}}}}\n", at("3:15", "limit")},
		{
			"texts that are no expressions", "id: w\nactions: {tell: [{redirect: 'by ${user.id}'}]}\nstateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [tell, tell, " +
				"{assign: {svcPublic.x: ['${user.id', '${user.id}', '$ {']}}]}}}}}}\n",
			`w.yaml:2:29: "by ${user.id}" has "${" but is not an expression: only a text that is wholly ${…} is one (${'…' + …} joins texts)` + "\n" +
				`w.yaml:3:102: "${user.id" has "${" but is not an expression: only a text that is wholly ${…} is one (${'…' + …} joins texts)`,
		},
		{"a send to itself", "id: w\nstateMachines:\n  m:\n    initial: a\n    states:\n      a:\n        on:\n          go: {actions: [{send: {event: go}}]}\n", "w.yaml:8: %s"},
		{"sends in a circle", "id: w\nstateMachines:\n  m:\n    initial: a\n    states:\n      a:\n        on:\n          go: {actions: [{send: {event: come, delay: PT0.1S}}]}\n          come: b\n      b: {entry: [{send: {event: go}}], on: {go: a}}\n", ""},
		{"timers without a pause", "id: w\nstateMachines:\n  m:\n    initial: a\n    states:\n      a: {after: {PT0S: b}}\n      b: {after: {250: a}}\n", "w.yaml:7: %s"},
		{"a send on entry", "id: w\nstateMachines:\n  m:\n    initial: a\n    states:\n      a: {entry: [{send: {event: go}}], on: {go: b}}\n      b: {always: a}\n", "w.yaml:7: %s"},
		{"a guard in the circle", "id: w\nstateMachines: {m: {initial: a, states: {a: {after: {PT0S: {target: b, guard: 'svcPublic.?n.orValue(0) < 3'}}}, b: {after: {PT0S: a}}}}}\n", ""},
		{"a pause in the circle", "id: w\nstateMachines: {m: {initial: a, states: {a: {after: {PT1S: b}}, b: {after: {PT0S: a}}}}}\n", ""},
		{"a condition in the circle", "id: w\nstateMachines: {m: {initial: a, states: {a: {on: {go: {actions: [{if: 'size(svcPublic) < 3', then: [{send: {event: go}}]}]}}}}}}\n", ""},
		{"all at once", "id: w\ncontext: {svcPrivate: {a: 5, b: 6}}\nguards: {big: 'size(svcPrivate) > 1'}\nstateMachines: {m: {initial: a, states: {a: {on: {go: {guard: big, target: a}}}}}}\n", at("3:15", "a") + "\n" + at("3:15", "b")},
	} {
		parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(c.text)})
		if !assert.NoError(t, err, c.name) {
			continue
		}
		got := ""
		if len(parsed.Warnings) > 0 {
			got = parsed.Warnings.Error()
		}
		assert.Equal(t, strings.Replace(c.want, "%s", ownSteps, 1), got, "%v %v", c.name, c.want)
	}
}

// TestManyConditionsAndDefaults has more pairs of them than could be held against
// each other.
func TestManyConditionsAndDefaults(t *testing.T) {
	const conditions, defaults = 300, 1200
	var keys, guards strings.Builder
	for i := range defaults {
		fmt.Fprintf(&keys, "k%d: 1, ", i)
	}
	for range conditions {
		guards.WriteString("{guard: 'size(svcPrivate) > 1', target: a}, ")
	}
	parsed, err := newParser(t).Parse(Source{File: "w.yaml", Text: []byte("id: w\ncontext: {svcPrivate: {" + keys.String() +
		"}}\nstateMachines: {m: {initial: a, states: {a: {on: {go: [" + guards.String() + "]}}}}}\n")})
	require.NoError(t, err)
	const want = "w.yaml: and 359900 more"
	assert.Equal(t, want, parsed.Warnings[len(parsed.Warnings)-1].Error(), "the last warning")
}
