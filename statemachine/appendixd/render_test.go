package appendixd

import (
	"fmt"
	"strings"
)

// Definition writes the chart as a definition in YAML (statemachine/DEFINITION.md).
func Definition(c *Chart) string {
	r := &rendering{}
	r.line(0, "id: random")
	if c.Unmatched != Unset {
		r.line(0, "unmatched: %s", unmatchedWords[c.Unmatched])
	}
	r.line(0, "context: {svcPublic: %s}", object(c, map[string]int{}))
	if len(c.Events) > 0 {
		r.line(0, "events:")
	}
	for _, e := range c.Events {
		var keys []string
		if e.Unmatched != Unset {
			keys = append(keys, "unmatched: "+unmatchedWords[e.Unmatched])
		}
		if e.Apply != ApplyUnset {
			keys = append(keys, "apply: "+applyWords[e.Apply])
		}
		r.line(1, "%s: {%s}", e.Event, strings.Join(keys, ", "))
	}
	r.line(0, "stateMachines:")
	for _, m := range c.Root.Children {
		r.state(m, 1)
	}
	return r.b.String()
}

var (
	unmatchedWords = map[Unmatched]string{Record: "record", Reject: "reject", Ignore: "ignore"}
	applyWords     = map[Apply]string{ApplyMerge: "merge", ApplyNone: "none"}
	typeWords      = map[Kind]string{Parallel: "parallel", Final: "final", ShallowHistory: "history", DeepHistory: "history"}
)

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
		r.line(indent, "output: {n: %s}", expression(s.Output))
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

// transitions writes "on", "onDone", "always" and "after", each where its first transition stands.
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
		return "after", t.After.Delay.Text
	case t.Event == "":
		return "always", ""
	}
	return "on", t.Event
}

func quoted(text string) string { return "'" + text + "'" }

func targets(states []*State) string {
	var names []string
	for _, s := range states {
		names = append(names, s.ID)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func transition(t *Transition) string {
	var keys []string
	if len(t.Target) > 0 {
		keys = append(keys, "target: "+targets(t.Target))
	}
	if t.Cond != nil {
		keys = append(keys, "guard: "+quoted(condition(t.Cond)))
	}
	if t.Reenter {
		keys = append(keys, "reenter: true")
	}
	return "{" + strings.Join(append(keys, "actions: "+actions(t.Content)), ", ") + "}"
}

func condition(c Condition) string {
	switch c := c.(type) {
	case Less:
		return fmt.Sprintf("svcPublic.%s < %d", c.Variable, c.Value)
	case In:
		name := c.State
		if c.Machine != "" {
			name = c.Machine + "." + name
		}
		return map[bool]string{true: "!"}[c.Not] + fmt.Sprintf("In(%q)", name)
	case EventIs:
		return fmt.Sprintf("event.name == %q", c.Event)
	case Unknown:
		return "svcPublic.missing > 0"
	case Both:
		return "(" + condition(c.A) + ") && (" + condition(c.B) + ")"
	}
	return "unknown condition"
}

// expression writes a value: a number, or an expression in a text.
func expression(e Expression) string {
	if n, is := e.(Number); is {
		return fmt.Sprint(n.Value)
	}
	return quoted("${" + formula(e) + "}")
}

func formula(e Expression) string {
	switch e := e.(type) {
	case Sum:
		return fmt.Sprintf("svcPublic.%s + %d", e.Variable, e.Value)
	case Brought:
		return "event.data.n"
	case Missing:
		return "svcPublic.missing"
	}
	return "unknown expression"
}

func actions(list []Action) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, action(a))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func action(a Action) string {
	switch a := a.(type) {
	case Assign:
		return fmt.Sprintf("{assign: {svcPublic.%s: %s}}", a.Variable, expression(a.Value))
	case Raise:
		return "{raise: {event: " + a.Event + brought(a.Data) + "}}"
	case Send:
		text := "{send: {event: " + a.Event + brought(a.Data) + ", delay: " + quoted(a.Delay.Text)
		if a.ID != "" {
			text += ", id: " + a.ID
		}
		return text + "}}"
	case Cancel:
		return "{cancel: " + a.ID + "}"
	case Log:
		switch {
		case a.Event:
			return "{log: " + quoted(a.Text+" ${event.name}") + "}"
		case a.Value != nil:
			return "{log: " + quoted(a.Text+" ${"+formula(a.Value)+"}") + "}"
		}
		return "{log: " + quoted(a.Text) + "}"
	case If:
		return choice(a)
	}
	return "unknown action"
}

func brought(data Expression) string {
	if data == nil {
		return ""
	}
	return ", data: {n: " + expression(data) + "}"
}

func choice(a If) string {
	var more []string
	text := ""
	for k, b := range a.Branches {
		one := "then: " + actions(b.Then)
		switch {
		case b.Cond == nil:
			text += ", else: " + actions(b.Then)
		case k == 0:
			text = "if: " + quoted(condition(b.Cond)) + ", " + one
		default:
			more = append(more, "{if: "+quoted(condition(b.Cond))+", "+one+"}")
		}
	}
	if more != nil {
		text += ", elseif: [" + strings.Join(more, ", ") + "]"
	}
	return "{" + text + "}"
}
