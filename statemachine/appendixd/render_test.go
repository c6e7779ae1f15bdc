package appendixd

import (
	"fmt"
	"strings"
)

// Definition writes the chart as a definition in YAML (statemachine/DEFINITION.md).
func Definition(c *Chart) string {
	r := &rendering{}
	r.line(0, "id: random")
	if c.Unmatched != "" {
		r.line(0, "unmatched: %s", c.Unmatched)
	}
	r.line(0, "context: {svcPublic: %s}", object(c, map[string]int{}))
	if len(c.Events) > 0 {
		r.line(0, "events:")
	}
	for _, e := range c.Events {
		var keys []string
		if e.Unmatched != "" {
			keys = append(keys, "unmatched: "+e.Unmatched)
		}
		if e.Apply != "" {
			keys = append(keys, "apply: "+e.Apply)
		}
		r.line(1, "%s: {%s}", e.Event, strings.Join(keys, ", "))
	}
	r.line(0, "stateMachines:")
	for _, m := range c.Root.Children {
		r.state(m, 1)
	}
	return r.b.String()
}

var typeWords = map[Kind]string{Parallel: "parallel", Final: "final", ShallowHistory: "history", DeepHistory: "history"}

// object writes variables as svcPublic has them: in the order of the chart.
func object(c *Chart, values map[string]int) string {
	var members []string
	for _, name := range c.Variables {
		members = append(members, fmt.Sprintf("%q:%d", name, values[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
}

type rendering struct{ b strings.Builder }

func (r *rendering) line(indent int, format string, args ...any) {
	fmt.Fprintf(&r.b, strings.Repeat("  ", indent)+format+"\n", args...)
}

func (r *rendering) state(s *State, indent int) {
	r.line(indent, "%s:", s.ID)
	indent++
	if word := typeWords[s.Kind]; word != "" {
		r.line(indent, "type: %s", word)
	}
	if isHistoryState(s) {
		if s.Kind == DeepHistory {
			r.line(indent, "history: deep")
		}
		if s.Default != nil {
			r.line(indent, "target: %s", targets(s.Default))
		}
		return
	}
	if s.Initial != nil {
		r.line(indent, "initial: %s", targets(s.Initial))
	}
	r.line(indent, "entry: %s", actions(s.OnEntry))
	r.line(indent, "exit: %s", actions(s.OnExit))
	if s.Output != nil {
		r.line(indent, "output: {n: %s}", s.Output.text)
	}
	r.transitions(s, indent)
	if len(s.Children) == 0 {
		return
	}
	r.line(indent, "states:")
	for _, c := range s.everyChild() {
		r.state(c, indent+1)
	}
}

func (r *rendering) transitions(s *State, indent int) {
	section, key := "", ""
	for _, t := range s.Transitions {
		now, name := sectionOf(t)
		if now != section {
			r.line(indent, "%s:", now)
			section, key = now, ""
		}
		if name == "" {
			r.line(indent+1, "- %s", transition(t))
			continue
		}
		if name != key {
			r.line(indent+1, "%s:", quoted(name))
			key = name
		}
		r.line(indent+2, "- %s", transition(t))
	}
}

func sectionOf(t *Transition) (section, key string) {
	switch {
	case t.Done:
		return "onDone", ""
	case t.After != nil:
		return "after", t.After.Delay.text
	case t.Event == "":
		return "always", ""
	}
	return "on", t.Event
}

func quoted(text string) string { return "'" + text + "'" }

func targets(states []*State) string { return "[" + strings.Join(ids(states), ", ") + "]" }

func ids(states []*State) (all []string) {
	for _, s := range states {
		all = append(all, s.ID)
	}
	return all
}

func transition(t *Transition) string {
	var keys []string
	if len(t.Target) > 0 {
		keys = append(keys, "target: "+targets(t.Target))
	}
	if t.Cond != nil {
		keys = append(keys, "guard: "+quoted(t.Cond.text))
	}
	if t.Reenter {
		keys = append(keys, "reenter: true")
	}
	return "{" + strings.Join(append(keys, "actions: "+actions(t.Content)), ", ") + "}"
}
