package appendixd

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// family is root > m > p (parallel) > l (a, b with history h) and r (c), and a final state f of m.
func family() (*Chart, map[string]*State) {
	byID := map[string]*State{}
	add := func(parent *State, id string, kind Kind) *State {
		s := &State{ID: id, Kind: kind, Parent: parent}
		byID[id] = s
		if parent != nil && isHistoryState(s) {
			parent.Histories = append(parent.Histories, s)
		} else if parent != nil {
			parent.Children = append(parent.Children, s)
		}
		return s
	}
	root := add(nil, "root", Parallel)
	m := add(root, "m", Compound)
	p := add(m, "p", Parallel)
	l := add(p, "l", Compound)
	add(l, "a", Atomic)
	add(l, "b", Atomic)
	add(l, "h", ShallowHistory)
	add(add(p, "r", Compound), "c", Atomic)
	add(m, "f", Final)
	c := &Chart{Root: root}
	c.Number()
	return c, byID
}

func ids(states []*State) []string {
	out := []string{}
	for _, s := range states {
		out = append(out, s.ID)
	}
	return out
}

func TestProperAncestors(t *testing.T) {
	_, s := family()
	for _, c := range []struct {
		of, upTo string
		want     []string
	}{
		{"a", "", []string{"l", "p", "m", "root"}},
		{"a", "m", []string{"l", "p"}},
		{"a", "l", []string{}},
		{"a", "a", []string{}},
		{"l", "a", []string{}},
	} {
		got := ids(getProperAncestors(s[c.of], s[c.upTo]))
		assert.True(t, slices.Equal(got, c.want), "ancestors of %s up to %q: %v, want %v", c.of, c.upTo, got, c.want)
	}
}

func TestDomains(t *testing.T) {
	chart, s := family()
	for _, c := range []struct {
		source  string
		targets []string
		reenter bool
		want    string
	}{
		{"a", []string{"b"}, false, "l"},
		{"a", []string{"c"}, false, "m"},
		{"a", []string{"a"}, false, "a"},
		{"a", []string{"a"}, true, "l"},
		{"l", []string{"b"}, false, "l"},
		{"l", []string{"b"}, true, "m"},
		{"p", []string{"a", "c"}, false, "p"},
		{"m", []string{"f"}, true, "m"},
		{"b", []string{"h"}, false, "l"},
		{"a", []string{"h"}, false, "a"}, // it stands for a
	} {
		tr := &Transition{Source: s[c.source], Reenter: c.reenter}
		for _, id := range c.targets {
			tr.Target = append(tr.Target, s[id])
		}
		i := chart.interpreter(Instance{}, 0)
		assert.Equal(t, c.want, i.getTransitionDomain(tr).ID, "domain of %s to %v, reenter %t", c.source, c.targets, c.reenter)
	}
}

// TestATourOfTheFamily: what each step logs and where it leads, by hand.
func TestATourOfTheFamily(t *testing.T) {
	chart, s := family()
	for _, state := range chart.States() {
		if !isHistoryState(state) {
			state.OnEntry, state.OnExit = []Action{Log{Text: "+" + state.ID}}, []Action{Log{Text: "-" + state.ID}}
		}
	}
	s["a"].Transitions = []*Transition{{Source: s["a"], Event: "next", Target: []*State{s["b"]}}}
	s["p"].Transitions = []*Transition{{Source: s["p"], Event: "back", Target: []*State{s["h"]}}, {Source: s["p"], Event: "end", Target: []*State{s["f"]}}}
	in, report := chart.Interpret(0)
	for _, step := range []struct {
		event   string
		outcome Outcome
		log, at []string
	}{
		{"", Moved, []string{"+m", "+p", "+l", "+a", "+r", "+c"}, []string{"m", "p", "l", "a", "r", "c"}},
		{"next", Moved, []string{"-a", "+b"}, []string{"m", "p", "l", "b", "r", "c"}},
		{"next", Recorded, nil, []string{"m", "p", "l", "b", "r", "c"}},
		{"back", Moved, []string{"-c", "-r", "-b", "-l", "+l", "+b", "+r", "+c"}, []string{"m", "p", "l", "b", "r", "c"}},
		{"end", Moved, []string{"-c", "-r", "-b", "-l", "-p", "+f"}, []string{"m", "f"}},
		{"end", Recorded, nil, []string{"m", "f"}},
	} {
		if step.event != "" {
			in, report = chart.Send(in, Event{Name: step.event}, 0)
		}
		if report.Outcome != step.outcome || !slices.Equal(report.Log, step.log) || !slices.Equal(ids(in.Configuration), step.at) {
			t.Errorf("%s: %v %v at %v, want %v %v at %v", step.event, report.Outcome, report.Log, ids(in.Configuration), step.outcome, step.log, step.at)
		}
	}
	assert.True(t, chart.IsDone(in), "not done at the end")
}
