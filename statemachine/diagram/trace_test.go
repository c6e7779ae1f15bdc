package diagram

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestTrace plays charts of the gallery: the marks are the transitions that the machine took.
func TestTrace(t *testing.T) {
	for _, c := range []struct {
		name, file string
		events     []string
		want       []string
	}{
		{"nothing yet", "testdata/nested.yaml", []string{}, nil},
		{"a guard", "../../cmd/troupe/example/workflows/leave-request.yaml", []string{`john: submit {"days":5}`, `mary: approve`}, []string{"draft submit [else] review", "waiting approve approved"}},
		{"the other side of it", "../../cmd/troupe/example/workflows/leave-request.yaml", []string{`john: submit {"days":1}`}, []string{"draft submit [event.data.days <= const.daysWithoutAsking] approved"}},
		{"eventless ones behind an event", "../../cmd/troupe/example/workflows/purchase-order.yaml", gallery[1].events, []string{
			"draft submit checking", "checking [svcPublic.total <= const.approvalLimit] approved", "waiting supplier.accepted ordered",
		}},
		{"into and out of containers", "testdata/nested.yaml", []string{`john: assign`, `john: accept`, `john: elsewhere`, `john: return`, `john: withdraw`}, []string{
			"case withdraw withdrawn", "new assign working", "triage accept solving", "analysis elsewhere escalated", "escalated return analysis",
		}},
		{"a loop", "testdata/nested.yaml", []string{`john: assign`, `john: restart`}, []string{"new assign working", "working restart working"}},
		{"several targets", "testdata/parallel.yaml", []string{`john: shortcut`}, []string{"received shortcut talked verified"}},
		{"regions and a timer", "testdata/parallel.yaml", []string{`john: invite`, `john: talk`, `timer: after.P7D.asked`, `john: like`, `john: answer`, `john: ready`}, []string{
			"received invite checks", "checks done offered", "planned talk talked", "talked like liked", "asked answer verified", "asked after 7 days asked", "drafting ready drafted",
		}},
		{"history and a reaction", "testdata/history.yaml", gallery[4].events, []string{"standby on last", "running pause paused", "running tick", "stopped play playing", "paused resume where"}},
		{"from one region to another", "testdata/regions.yaml", gallery[6].events, []string{"desk both open ringing", "open swap ringing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := parseFile(t, c.file)
			assert.Equal(t, strings.Join(c.want, "\n"), takenIn(&Picture{Chart: d.Chart(), Instance: play(t, d, c.events)}))
		})
	}
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
