package statemachine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// TestCharts plays testdata/chart:
//
//	define            the definition that nodes, events, leaves, title, columns, states, timers, chart and mismatches ask about
//	nodes, events     how people see them, in German
//	targets           how they see the target of a transition, in English
//	leaves            where instances can stand, and the nodes around
//	title, columns    of an instance with these public data, a line each
//	states            where an entry says that an instance stands, a line each
//	timers            what those of a new instance will do
//	chart             its nodes and transitions
//	mismatches EVENT  of a schema
//	available         what john can send: a definition, or what its first state takes
//	attempt           what becomes of an event that nothing takes, by each word: what events, the machine and the states a, b and d have
//	place             where a step fails that does this
//	rights [child]    what a rule says, of a child of 9 of orders
func TestCharts(t *testing.T) {
	datadriven.Walk(t, "testdata/chart", func(t *testing.T, path string) {
		var d *Definition
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			text := expand(cmd.Input)
			var out strings.Builder
			switch cmd.Cmd {
			case "define":
				d = parseChart(t, text)
				return fmt.Sprintf("indexes %v\n", d.Indexes)
			case "leaves":
				for _, s := range d.LeafNodes() {
					fmt.Fprintf(&out, "%s.%s\n", s.Machine, s.Node)
				}
				for _, s := range d.CompoundNodes() {
					fmt.Fprintf(&out, "%s.%s around, %s\n", s.Machine, s.Node, s.Label.For("de"))
				}
			case "timers":
				for _, timer := range begin(t, d, nil).Timers() {
					fmt.Fprintf(&out, "%s: %+v\n", timer.Event, timer.Effect)
				}
			case "chart":
				c := d.Chart()
				return fmt.Sprintf("%s %q version %d\n%s", c.ID, c.Name, c.Version, textOf(c))
			case "mismatches":
				sent, err := schema.Compile(data.Value(text), nil)
				require.NoError(t, err)
				assert.Nil(t, d.Mismatches(EventName(cmd.CmdArgs[0].Key), nil), "without a schema")
				for _, m := range d.Mismatches(EventName(cmd.CmdArgs[0].Key), sent) {
					mark := map[bool]string{true: "-"}[m.Missing]
					if m.Optional {
						mark = "?"
					}
					out.WriteString(mark + strings.Join(m.Path, ".") + "\n")
				}
			case "available":
				return availableIn(t, text)
			case "attempt":
				return attempts(t, text)
			case "place":
				return placeOf(t, text)
			case "rights":
				return rightsBy(t, text, cmd.HasArg("child"))
			default:
				for line := range strings.SplitSeq(text, "\n") {
					fmt.Fprintf(&out, "%.60s: %s\n", line, answer(t, d, cmd.Cmd, line))
				}
			}
			return cmp.Or(out.String(), "none\n")
		})
	})
}

// answer says what people see for one line of a command.
func answer(t *testing.T, d *Definition, cmd, line string) string {
	switch machine, node, _ := strings.Cut(line, "."); cmd {
	case "nodes":
		got := d.LabelOf(Position{Machine: MachineID(machine), Node: NodeID(node)})
		return got.Label.For() + ", " + got.Label.For("de") + ", " + got.Tone.String()
	case "events":
		got := d.EventLabel(EventName(line))
		return got.Label.For("de") + ", " + got.Done.For("de") + ", " + got.Style.String()
	case "targets":
		at, target, _ := strings.Cut(node, ">")
		return d.LabelOfTarget(Position{Machine: MachineID(machine), Node: NodeID(at)}, NodeID(target)).Label.For("en")
	case "states":
		return string(d.StatesOf(data.Value(line)))
	case "title":
		r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "ann"}, Public: data.Value(line), Now: testTime})
		require.NoError(t, err)
		return d.Title(&r.Instance).For("de")
	case "columns":
		var got []string
		for i := range d.Columns {
			got = append(got, d.Columns[i].Label.For("de")+"="+string(d.Columns[i].Value(data.Value(line))))
		}
		return strings.Join(got, " ")
	}
	t.Fatalf("unknown command %q", cmd)
	return ""
}

func availableIn(t *testing.T, text string) string {
	if !strings.HasPrefix(text, "id:") {
		text = machineOf(text)
	}
	d, john := parseChart(t, text), &Caller{ID: "john", Roles: []string{"clerk"}}
	now := time.Date(2026, 1, 2, 4, 4, 5, 678_999_999, time.FixedZone("", 3600))
	r, err := d.Create(Creation{ID: "i", Caller: john, Public: data.Value(`{"n":1}`), Now: now.Add(-time.Hour)})
	require.NoError(t, err)
	before := d.AppendRecord(nil, &r.Instance, Chain{}, nil)
	got := rendered(View{Instance: &r.Instance, Of: d}.Available(john, now))
	assert.Equal(t, string(before), string(d.AppendRecord(nil, &r.Instance, Chain{}, nil)), "Available changed the instance")
	return cmp.Or(got, "nothing")
}

func attempts(t *testing.T, text string) string {
	parts := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		key, of, _ := strings.Cut(line, ": ")
		parts[key] = of
	}
	var out strings.Builder
	for _, word := range []string{"record", "apply", "reject", "ignore"} {
		events, unmatched := parts["events"], "unmatched: "+word
		if word == "apply" {
			const applied = "go: {unmatched: apply, allow: {users: [me]}}"
			if unmatched = ""; events == "go: {}" || events == "" || strings.Contains(events, "allow") {
				events = applied
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
`, unmatched, events, parts["machine"], parts["a"], parts["b"], parts["d"])
		d := parseChart(t, strings.ReplaceAll(text, ", }", "}"))
		begun := started(t, d)
		before := string(d.AppendRecord(nil, &begun.Instance, Chain{}, nil))
		r, err := d.Step(&begun.Instance, Event{Name: "go", Data: data.Value(`{"x":1}`), Caller: &Caller{ID: "me"}, Now: time.Unix(2_000_000_000, 0)})
		assert.Equal(t, before, string(d.AppendRecord(nil, &begun.Instance, Chain{}, nil)), "the instance has changed")
		switch {
		case errors.Is(err, ErrForbidden), errors.Is(err, ErrRejected):
			fmt.Fprintf(&out, "%s: %v\n", word, err)
		default:
			require.NoError(t, err)
			fmt.Fprintf(&out, "%s: %s, attempt %t\n", word, map[Outcome]string{Recorded: "recorded", Applied: "applied", Ignored: "ignored"}[r.Outcome], r.Entry.Attempt)
		}
	}
	return out.String()
}

// failing is a definition whose event go does something in line 16.
var failing = `id: w
context: {svcPublic: {many: [` + strings.Repeat("1,", 1100) + `1], item: chair, list: [{n: 7}, {n: x}]}, svcPrivate: {limit: 3}}
events: {go: {}}
guards:
  bad: 'svcPublic.itm > 1'
actions:
  named:
    - assign: {svcPublic.a: '${svcPrivate.limit + svcPublic.item}'}
webhooks: {to: {url: 'https://example.org'}}
stateMachines:
  m:
    states:
      a:
        on:
          go:
            - ACTION
          end: b
      b: {type: final}
`

func placeOf(t *testing.T, action string) string {
	d := parseChart(t, strings.Replace(failing, "ACTION", action, 1))
	_, err := d.Step(begin(t, d, nil), Event{Name: "go", Caller: &Caller{ID: "john"}, Now: testTime})
	f := d.FaultOf(err)
	require.NotNil(t, f, "%v", err)
	out := fmt.Sprintf("%v\n", f)
	if f.Expression != "" {
		out += "expression " + f.Expression + "\n"
	}
	for _, read := range f.Read {
		out += fmt.Sprintf("read %s %s\n", read.Path, read.Value)
	}
	return out
}

func rightsBy(t *testing.T, rule string, child bool) string {
	now, anna := testTime, &Caller{ID: "anna", Roles: []string{"clerk"}, Privileges: []string{"mod-form"}}
	allow := ""
	if rule != "" {
		allow = "allow: {create: " + rule + ", read: " + rule + ", send: " + rule + "}\n"
	}
	d, in := parseChart(t, "id: w\n"+allow+chartOfRights), requested(t)
	if child {
		in.Instance.State.Parent = &Parent{Workflow: "orders", Instance: "9"}
	}
	right := d.CreateRight(anna, now)
	assert.True(t, d.ReadRight(anna, now) == right && d.SendRight(anna, now) == right, "create, read and send differ without an instance")
	assert.Equal(t, d.MayRead(in, anna, now), d.MaySend(in, anna, now), "read and send differ on the instance")
	return fmt.Sprintf("%s, may read %t", map[Right]string{Granted: "granted", Denied: "denied", ByInstance: "by instance"}[right], d.MayRead(in, anna, now))
}

// Expand is for the tests outside the package.
var Expand = expand

var repeated, inside = regexp.MustCompile(`(?s)⟨(.*?)⟩\{(\d+)\}`), regexp.MustCompile(`(?s)‹(.*?)›\{(\d+)\}`)

// expand writes out each ⟨text⟩{n}, n times the text, with # as the number of the time, and then each ‹text›{n}.
func expand(text string) string {
	for _, of := range []*regexp.Regexp{repeated, inside} {
		text = of.ReplaceAllStringFunc(text, func(part string) string {
			m, all := of.FindStringSubmatch(part), strings.Builder{}
			n, _ := strconv.Atoi(m[2])
			if !strings.Contains(m[1], "#") {
				return strings.Repeat(m[1], n)
			}
			for i := range n {
				all.WriteString(strings.ReplaceAll(m[1], "#", strconv.Itoa(i)))
			}
			return all.String()
		})
	}
	return text
}
