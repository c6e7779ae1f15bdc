package appendixd

import (
	"strings"

	"troupe/statemachine/document"
)

// Read reads a definition (statemachine/DEFINITION.md) of those that drawing writes. It finds no faults.
func Read(text string) (*Chart, error) {
	top, err := document.Parse("random.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	r := &reader{
		chart: &Chart{Root: &State{Kind: Parallel}, Unmatched: textOf(top.Field("unmatched"))},
		nodes: map[*State]*document.Node{}, named: map[string]*State{},
	}
	for _, f := range top.Field("context").Field("svcPublic").Fields {
		r.chart.Variables = append(r.chart.Variables, f.Key.Text)
	}
	for _, f := range fieldsOf(top.Field("events")) {
		r.chart.Events = append(r.chart.Events, Declaration{f.Key.Text, textOf(f.Value.Field("unmatched")), textOf(f.Value.Field("apply"))})
	}
	r.states(r.chart.Root, top.Field("stateMachines"))
	for _, s := range r.chart.States {
		r.content(s, r.nodes[s])
	}
	return r.chart, nil
}

type reader struct {
	chart *Chart
	nodes map[*State]*document.Node
	named map[string]*State // by machine and name
}

// states reads what is inside a state, and inside of that, without what leads from one to another.
func (r *reader) states(parent *State, of *document.Node) {
	for _, f := range fieldsOf(of) {
		s := &State{ID: f.Key.Text, Kind: kindOf(f.Value), Parent: parent, Order: 1 + len(r.chart.States)}
		if isHistoryState(s) {
			parent.Histories = append(parent.Histories, s)
		} else {
			parent.Children = append(parent.Children, s)
		}
		r.chart.States = append(r.chart.States, s)
		r.nodes[s], r.named[s.Machine().ID+"."+s.ID] = f.Value, s
		r.states(s, f.Value.Field("states"))
	}
}

func kindOf(n *document.Node) Kind {
	switch word := textOf(n.Field("type")); {
	case word == "parallel":
		return Parallel
	case word == "final":
		return Final
	case word == "history" && textOf(n.Field("history")) == "deep":
		return DeepHistory
	case word == "history":
		return ShallowHistory
	case n.Field("states") != nil:
		return Compound
	}
	return Atomic
}

func (r *reader) content(s *State, n *document.Node) {
	s.Initial, s.Default = r.targets(s, n.Field("initial")), r.targets(s, n.Field("target"))
	s.OnEntry, s.OnExit, s.Output = itemsOf(n.Field("entry")), itemsOf(n.Field("exit")), n.Field("output")
	for _, f := range n.Fields {
		switch f.Key.Text {
		case "on":
			for _, key := range f.Value.Fields {
				r.transitions(s, key.Value, Transition{Event: key.Key.Text})
			}
		case "onDone":
			r.transitions(s, f.Value, Transition{Done: true})
		case "always":
			r.transitions(s, f.Value, Transition{})
		case "after":
			for _, key := range f.Value.Fields {
				a := &After{State: s, Delay: key.Key.Text, Event: "after." + r.delayName(s, key.Key.Text) + "." + s.ID}
				s.After = append(s.After, a)
				r.transitions(s, key.Value, Transition{After: a})
			}
		}
	}
}

// delayName is how the event of a timer calls its delay (statemachine/DEFINITION.md, "Timers").
func (r *reader) delayName(s *State, delay string) string {
	switch {
	case !strings.HasPrefix(delay, "$"):
		return delay
	case len(s.After) > 0 && strings.HasPrefix(s.After[0].Delay, "$"):
		return "computed2"
	}
	return "computed"
}

func (r *reader) transitions(s *State, list *document.Node, like Transition) {
	for _, n := range list.Items {
		t := like
		t.Source, t.Cond, t.Target, t.Content = s, textOf(n.Field("guard")), r.targets(s, n.Field("target")), itemsOf(n.Field("actions"))
		t.Reenter = n.Field("reenter") != nil
		s.Transitions = append(s.Transitions, &t)
	}
}

func (r *reader) targets(s *State, of *document.Node) (targets []*State) {
	if of != nil && of.Kind == document.String {
		return []*State{r.named[s.Machine().ID+"."+of.Text]}
	}
	for _, n := range itemsOf(of) {
		targets = append(targets, r.named[s.Machine().ID+"."+n.Text])
	}
	return targets
}

func textOf(n *document.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

func fieldsOf(n *document.Node) []document.Field {
	if n == nil {
		return nil
	}
	return n.Fields
}

func itemsOf(n *document.Node) []*document.Node {
	if n == nil {
		return nil
	}
	return n.Items
}
