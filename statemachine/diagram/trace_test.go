package diagram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
)

func takenIn(p *Picture) string {
	m := marksOf(p)
	var out []string
	for i := range p.Chart.Nodes {
		n := &p.Chart.Nodes[i]
		for k := range n.Transitions {
			if !m.taken[i][k] {
				continue
			}
			n.Transitions[k].Label = nil // NB: it is told by its name
			words := []string{string(n.ID), english.transition(n, k)}
			for _, to := range n.Transitions[k].Targets {
				words = append(words, string(p.Chart.Nodes[to].ID))
			}
			out = append(out, strings.Join(words, " "))
		}
	}
	return strings.Join(out, "\n")
}

// TestTrace plays testdata/trace.txt: charts of the gallery or of the example home, with the events of an instance.
func TestTrace(t *testing.T) {
	datadriven.RunTest(t, "testdata/trace.txt", func(t *testing.T, cmd *datadriven.TestData) string {
		d := parseFile(t, strings.Replace(cmd.CmdArgs[0].Key, "example/", "../../cmd/troupe/example/workflows/", 1))
		events := strings.FieldsFunc(cmd.Input, func(r rune) bool { return r == '\n' })
		return cmp.Or(takenIn(&Picture{Chart: d.Chart(), Instance: play(t, d, events)}), "none")
	})
}

// TestWhatIsReachedIsMarked: it has the colour of where an instance has been, and the rest is pale.
func TestWhatIsReachedIsMarked(t *testing.T) {
	d := parseFile(t, "../../cmd/troupe/example/workflows/leave-request.yaml")
	c := statemachine.NewCoverage(d)
	john := &statemachine.Caller{ID: "john", Roles: []string{"employee"}}
	created, err := d.Covered(c).Create(statemachine.Creation{Caller: john, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	_, err = d.Covered(c).Step(&created.Instance, statemachine.Event{Name: "withdraw", Caller: john, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	nodes, transitions := c.Reached()
	p := &Picture{Chart: d.Chart(), Reached: &Reached{nodes, transitions}}
	assert.Equal(t, "draft withdraw withdrawn", takenIn(p))
	svg := string(p.SVG())
	for _, want := range []string{`class="node leaf good quiet" data-machine="main" data-node="approved"`, `class="node leaf visited" data-machine="main" data-node="withdrawn"`, ">reached<"} {
		assert.Contains(t, svg, want)
	}
	assert.NotContains(t, svg, "where it")
}

// TestTraceIsNoLongerThanTheHistory: a long history takes the room of a short one.
func TestTraceIsNoLongerThanTheHistory(t *testing.T) {
	in := &Instance{}
	at := func(node string) []statemachine.Position {
		return []statemachine.Position{{Machine: "m", Node: statemachine.NodeID(node)}}
	}
	for range 1000 {
		in.Add(Step{Event: "go", Start: at("a"), End: at("b")})
		in.Add(Step{Event: "back", Start: at("b"), End: at("a")})
	}
	assert.Len(t, in.steps, 2)
}

// TestTraceExplainsEveryMove has random machines move: whatever became active, a transition is marked that could have
// led there. It is the only one where each event has one transition.
func TestTraceExplainsEveryMove(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(2, 8).Draw(t, "states")
		var b strings.Builder
		b.WriteString("id: w\nunmatched: ignore\nstateMachines: {main: {states: {\n")
		for i := range count {
			fmt.Fprintf(&b, "s%d: {on: {e%d: s%d}, initial: in%d, states: {in%d: {on: {x%d: also%d}}, also%d: {on: {y%d: s%d}}}},\n",
				i, i, rapid.IntRange(0, count-1).Draw(t, "target"), i, i, i, i, i, i, rapid.IntRange(0, count-1).Draw(t, "target"))
		}
		b.WriteString("}}}\n")
		parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(b.String())})
		if err != nil {
			t.Skip(err) // nodes that nothing leads to
		}
		d := parsed.Definition
		caller, now := &statemachine.Caller{ID: "john"}, time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
		r, err := d.Create(statemachine.Creation{ID: "1", Caller: caller, Now: now})
		require.NoError(t, err)
		in := &Instance{}
		var want []string
		for range 12 {
			name := fmt.Sprint(rapid.SampledFrom([]string{"e", "x", "y"}).Draw(t, "event"), rapid.IntRange(0, count-1).Draw(t, "of"))
			state := r.Instance
			r, err = d.Step(&state, statemachine.Event{Name: statemachine.EventName(name), Caller: caller, Now: now})
			require.NoError(t, err)
			if r.Outcome != statemachine.Moved {
				r.Instance = state
				continue
			}
			in.Add(Step{Event: r.Entry.Event, Start: d.PositionsNamed(r.Entry.Start), End: d.PositionsNamed(r.Entry.End)})
			want = append(want, name)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		var got []string
		for line := range strings.SplitSeq(takenIn(&Picture{Chart: d.Chart(), Instance: in}), "\n") {
			if words := strings.Fields(line); len(words) > 1 {
				got = append(got, words[1])
			}
		}
		slices.Sort(got)
		assert.True(t, slices.Equal(got, want), "got %v, want %v of\n%s", got, want, b.String())
	})
}
