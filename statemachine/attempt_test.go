package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
)

// TestWhoHasNoRightToAnEventLeavesNoTrace holds statemachine/DEFINITION.md, "Unmatched events": an event that nothing takes now is
// refused to those whom no transition that takes it, wherever it stands, would let.
func TestWhoHasNoRightToAnEventLeavesNoTrace(t *testing.T) {
	const boss, other = "allow: {users: [boss]}", "allow: {users: [other]}"
	for _, c := range []struct {
		name string
		// events of the definition, the machine's own transitions, and those of state a, of b inside c, and of d; it stands in d.
		events, machine, a, b, d string
		want                     error
	}{
		{"no transition", "go: {}", "", "", "", "", nil},
		{"no right in another state", "", "", "go: {target: d, " + boss + "}", "", "", ErrForbidden},
		{"a right in another state", "", "", "go: {target: d, " + boss + "}", "go: {target: d, allow: {users: [me]}}", "", nil},
		{"without allow in another state", "", "", "go: {target: d, " + boss + "}", "go: d", "", nil},
		{"no right in several", "", "", "go: {target: d, " + boss + "}", "go: {target: d, " + other + "}", "", ErrForbidden},
		{"a guard that does not hold, and no right", "", "", "", "", "go: {guard: 'false', target: a, " + boss + "}", ErrForbidden},
		{"a guard that does not hold, and a right elsewhere", "", "", "go: d", "", "go: {guard: 'false', target: a, " + boss + "}", nil},
		{"of the machine, and no right", "", "go: {guard: 'false', " + boss + "}", "", "", "", ErrForbidden},
		{"of the machine, without allow", "", "go: {guard: 'false'}", "go: {target: d, " + boss + "}", "", "", nil},
		{"a pattern, and no right", "go: {}", "", "'*': {target: d, " + boss + "}", "", "", ErrForbidden},
		{"a pattern without allow", "go: {}", "", "go: {target: d, " + boss + "}", "'*': d", "", nil},
		{"another event without allow", "", "", "go: {target: d, " + boss + "}", "going: d", "", ErrForbidden},
		{"a condition about the data of now that holds", "", "", "go: {target: d, allow: {when: 'svcPublic.owner == user.id'}}", "", "", nil},
		{"a condition about the data of now that does not", "", "", "go: {target: d, allow: {when: 'svcPublic.owner != user.id'}}", "", "", ErrForbidden},
		{"a condition that fails", "", "", "go: {target: d, allow: {when: 'svcPublic.missing == user.id'}}", "", "", ErrForbidden},
		{"a condition about the event that holds", "", "", "go: {target: d, allow: {when: 'event.data.x == 1'}}", "", "", nil},
		{"a condition about the event that does not", "", "", "go: {target: d, allow: {when: 'event.data.x == 2'}}", "", "", ErrForbidden},
		{"denied", "", "", "go: {target: d, allow: {deny: {users: [me]}}}", "", "", ErrForbidden},
		{"a right by the event's own allow only", "go: {allow: {users: [me]}}", "", "go: {target: d, " + boss + "}", "", "", ErrForbidden},
		{"a guard that fails, and no right", "", "error.execution: {target: a}", "", "", "go: {guard: 'svcPublic.missing', target: a, " + boss + "}", ErrForbidden},
		{"done events are no rights", "go: {}", "", "", "", "", nil},
	} {
		for _, word := range []string{"record", "apply", "reject", "ignore"} {
			events := c.events
			if word == "apply" {
				if strings.Contains(events, "allow") || !strings.Contains(events, "go:") {
					events = "go: {unmatched: apply, allow: {users: [me]}}"
				} else {
					events = strings.Replace(events, "go: {}", "go: {unmatched: apply, allow: {users: [me]}}", 1)
				}
			}
			text := fmt.Sprintf(`
id: w
%s
events: {%s}
context: {svcPublic: {owner: me}}
stateMachines:
  m:
    initial: d
    on: {%s}
    states:
      a: {on: {on: d, %s}}
      c: {initial: b, onDone: d, states: {b: {on: {on: f, %s}}, f: {type: final}}}
      d: {on: {to.a: a, to.c: c, %s}}
`, map[bool]string{false: "unmatched: " + word}[word == "apply"], events, c.machine, c.a, c.b, c.d)
			text = strings.NewReplacer(", }", "}").Replace(text)
			d := parseChart(t, text)
			me := &Caller{ID: "me"}
			begun := started(t, d)
			in := &begun.Instance
			before := string(d.AppendRecord(nil, in, Chain{}, nil))
			r, err := d.Step(in, Event{Name: "go", Data: data.Value(`{"x":1}`), Caller: me, Now: time.Unix(2_000_000_000, 0)})
			want, outcome := c.want, map[string]Outcome{"record": Recorded, "apply": Applied, "ignore": Ignored}[word]
			if want == nil && word == "reject" {
				want = ErrRejected
			}
			assert.True(t, errors.Is(err, want) && (want != nil || r.Outcome == outcome), "%s, %s: got %d, %v, want %d, %v", c.name, word, r.Outcome, err, outcome, want)
			assert.Equal(t, err == nil && word == "record", r.Entry.Attempt, "%s, %s: attempt", c.name, word)
			assert.Equal(t, before, string(d.AppendRecord(nil, in, Chain{}, nil)), "%s, %s: the instance has changed", c.name, word)
		}
	}
}

// TestOnlyWhatNothingTookIsAnAttempt: neither a transition that stays where it is, nor a timer's nor a create's entry is one.
func TestOnlyWhatNothingTookIsAnAttempt(t *testing.T) {
	d := parseChart(t, "id: w\nevents: {idle: {}}\nstateMachines: {m: {initial: a, states: {a: {on: {stay: {actions: [{assign: {svcPublic.n: 1}}]}, again: a}}}}}\n")
	begun := started(t, d)
	for name, want := range map[EventName]bool{"stay": false, "again": false, "idle": true} {
		r, err := d.Step(&begun.Instance, Event{Name: name, Caller: &Caller{ID: "me"}})
		assert.True(t, err == nil && r.Entry.Attempt == want, "%s: got %v, %v, want %v", name, r.Entry.Attempt, err, want)
	}
}
