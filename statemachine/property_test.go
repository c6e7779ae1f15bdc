package statemachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainChart draws a random statechart: nested compound and parallel nodes, history,
// and transitions from anywhere to anywhere in their machine.
type plainChart struct {
	t     *rapid.T
	names []string // nodes that can be targets
	b     strings.Builder
	count int
}

// machine draws one state machine and writes it. content writes what a node has besides its states.
func (c *plainChart) machine(name, kind string, depth int, content func(s *shape, indent string)) {
	c.names = nil
	root := c.shape(name, kind, depth)
	fmt.Fprintf(&c.b, "  %s:\n", name)
	c.print(root, "    ", content)
}

type shape struct {
	name, kind string
	children   []*shape
}

func (c *plainChart) pick(from ...string) string { return rapid.SampledFrom(from).Draw(c.t, "pick") }

func (c *plainChart) shape(name, kind string, depth int) *shape {
	s := &shape{name: name, kind: kind}
	if kind != "compound" && kind != "parallel" {
		return s
	}
	for range rapid.IntRange(2, 3).Draw(c.t, "children") {
		c.count++
		kinds := []string{"atomic", "atomic", "final"}
		if depth < 3 {
			kinds = append(kinds, "compound", "parallel")
		}
		if kind == "parallel" {
			kinds = []string{"compound", "atomic"}
		} else if len(s.children) > 0 {
			kinds = append(kinds, "history")
		}
		k := rapid.SampledFrom(kinds).Draw(c.t, "kind")
		if k == "compound" && depth >= 3 {
			k = "atomic"
		}
		child := c.shape(fmt.Sprintf("n%d", c.count), k, depth+1)
		s.children = append(s.children, child)
		c.names = append(c.names, child.name)
	}
	return s
}

func (c *plainChart) print(s *shape, indent string, content func(s *shape, indent string)) {
	switch s.kind {
	case "final":
		fmt.Fprintf(&c.b, "%stype: final\n", indent)
		return
	case "history":
		fmt.Fprintf(&c.b, "%stype: history\n%shistory: %s\n", indent, indent, c.pick("deep", "shallow"))
		return
	case "parallel":
		fmt.Fprintf(&c.b, "%stype: parallel\n", indent)
	}
	content(s, indent)
	if len(s.children) == 0 {
		return
	}
	fmt.Fprintf(&c.b, "%sstates:\n", indent)
	for _, child := range s.children {
		fmt.Fprintf(&c.b, "%s  %s:\n", indent, child.name)
		c.print(child, indent+"    ", content)
	}
}

// logged writes actions that log each entry and exit, and a transition for each event.
func (c *plainChart) logged(s *shape, indent string) {
	fmt.Fprintf(&c.b, "%sentry: [{log: '+%s'}]\n%sexit: [{log: '-%s'}]\n", indent, s.name, indent, s.name)
	fmt.Fprintf(&c.b, "%son:\n", indent)
	for e := range 3 {
		fmt.Fprintf(&c.b, "%s  e%d: {target: %s, reenter: %v}\n", indent, e, c.pick(c.names...), rapid.Bool().Draw(c.t, "reenter"))
	}
}

// TestRandomChartsStayWhole: whatever the chart and the events, the active nodes are a configuration, every exit answers an
// entry, the argument of Step stays as it was, and the same input gives the same bytes again (persistence/PROMISES.md, "P17").
func TestRandomChartsStayWhole(t *testing.T) {
	p := newParser(t)
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := &plainChart{t: rt}
		c.b.WriteString("id: random\nstateMachines:\n")
		for m := range rapid.IntRange(1, 2).Draw(rt, "machines") {
			c.machine(fmt.Sprintf("m%d", m), "compound", 0, c.logged)
		}
		parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(c.b.String())})
		if err != nil {
			return // unreachable nodes and the like are for the fault tests
		}
		taken++
		d := parsed.Definition
		r := started(rt, d)
		active := map[string]bool{}
		follow(rt, active, r.Logs)
		for n := range 12 {
			e := Event{Name: EventName(fmt.Sprintf("e%d", rapid.IntRange(0, 2).Draw(rt, "event"))), Caller: &Caller{ID: "u"}, Now: time.Unix(int64(n), 0)}
			before := string(d.AppendRecord(nil, &r.Instance, Chain{}, nil))
			next, err := d.Step(&r.Instance, e)
			require.NoError(rt, err, "step %d, %s", n, c.b.String())
			again, _ := d.Step(&r.Instance, e)
			require.Equal(rt, before, string(d.AppendRecord(nil, &r.Instance, Chain{}, nil)), "step %d changed its argument\n%s", n, c.b.String())
			require.Equal(rt, string(d.AppendRecord(nil, &again.Instance, Chain{}, nil)), string(d.AppendRecord(nil, &next.Instance, Chain{}, nil)),
				"step %d is not deterministic\n%s", n, c.b.String())
			follow(rt, active, next.Logs)
			if !d.IsWhole(next.Instance.State.At.Active) {
				rt.Fatalf("step %d leaves no configuration: %s\n%s", n, d.States(&next.Instance), c.b.String())
			}
			for _, node := range d.Nodes {
				if node.Kind != Final && node.Parent != nil && !node.Kind.IsHistory() && active[string(node.ID)] != next.Instance.State.At.Active.Has(node.Index) {
					rt.Fatalf("step %d: entries and exits say %s is active: %v\n%s", n, node.ID, active[string(node.ID)], c.b.String())
				}
			}
			r = next
		}
	})
	t.Logf("%d charts without faults", taken)
	assert.NotZero(t, taken, "no random chart was free of faults: the test tested nothing")
}

func follow(t *rapid.T, active map[string]bool, logs []string) {
	for _, line := range logs {
		name := line[1:]
		if entered := line[0] == '+'; active[name] == entered {
			t.Fatalf("%s, but active was %v", line, active[name])
		} else {
			active[name] = entered
		}
	}
}
