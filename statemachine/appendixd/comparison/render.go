package comparison

import (
	"fmt"
	"strings"

	"troupe/statemachine/appendixd"
)

// Definition writes the chart as a definition in YAML (statemachine/DEFINITION.md).
func Definition(c *appendixd.Chart) string {
	r := &rendering{}
	r.line(0, "id: random")
	if c.Unmatched != appendixd.Unset {
		r.line(0, "unmatched: %s", unmatchedWords[c.Unmatched])
	}
	r.line(0, "context: {svcPublic: %s}", object(c, map[string]int{}))
	if len(c.Events) > 0 {
		r.line(0, "events:")
	}
	for _, e := range c.Events {
		var keys []string
		if e.Unmatched != appendixd.Unset {
			keys = append(keys, "unmatched: "+unmatchedWords[e.Unmatched])
		}
		if e.Apply != appendixd.ApplyUnset {
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
	unmatchedWords = map[appendixd.Unmatched]string{appendixd.Record: "record", appendixd.Reject: "reject", appendixd.Ignore: "ignore"}
	applyWords     = map[appendixd.Apply]string{appendixd.ApplyMerge: "merge", appendixd.ApplyNone: "none"}
	typeWords      = map[appendixd.Kind]string{appendixd.Parallel: "parallel", appendixd.Final: "final", appendixd.ShallowHistory: "history", appendixd.DeepHistory: "history"}
)

// object writes variables as svcPublic has them: in the order of the chart.
func object(c *appendixd.Chart, values map[string]int) string {
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

func (r *rendering) state(s *appendixd.State, indent int) {
	r.line(indent, "%s:", s.ID)
	indent++
	if word := typeWords[s.Kind]; word != "" {
		r.line(indent, "type: %s", word)
	}
	if isHistory(s) {
		if s.Kind == appendixd.DeepHistory {
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
	for _, c := range append(append([]*appendixd.State{}, s.Children...), s.Histories...) {
		r.state(c, indent+1)
	}
}

// transitions writes "on", "onDone", "always" and "after", each where its first transition stands.
func (r *rendering) transitions(s *appendixd.State, indent int) {
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

func sectionOf(t *appendixd.Transition) (section, key string) {
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

func targets(states []*appendixd.State) string {
	var names []string
	for _, s := range states {
		names = append(names, s.ID)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func transition(t *appendixd.Transition) string {
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

func condition(c appendixd.Condition) string {
	switch c := c.(type) {
	case appendixd.Less:
		return fmt.Sprintf("svcPublic.%s < %d", c.Variable, c.Value)
	case appendixd.In:
		name := c.State
		if c.Machine != "" {
			name = c.Machine + "." + name
		}
		return map[bool]string{true: "!"}[c.Not] + fmt.Sprintf("In(%q)", name)
	case appendixd.EventIs:
		return fmt.Sprintf("event.name == %q", c.Event)
	case appendixd.Unknown:
		return "svcPublic.missing > 0"
	case appendixd.Both:
		return "(" + condition(c.A) + ") && (" + condition(c.B) + ")"
	}
	return "unknown condition"
}

// expression writes a value: a number, or an expression in a text.
func expression(e appendixd.Expression) string {
	if n, is := e.(appendixd.Number); is {
		return fmt.Sprint(n.Value)
	}
	return quoted("${" + formula(e) + "}")
}

func formula(e appendixd.Expression) string {
	switch e := e.(type) {
	case appendixd.Sum:
		return fmt.Sprintf("svcPublic.%s + %d", e.Variable, e.Value)
	case appendixd.Brought:
		return "event.data.n"
	case appendixd.Missing:
		return "svcPublic.missing"
	}
	return "unknown expression"
}

func actions(list []appendixd.Action) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, action(a))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func action(a appendixd.Action) string {
	switch a := a.(type) {
	case appendixd.Assign:
		return fmt.Sprintf("{assign: {svcPublic.%s: %s}}", a.Variable, expression(a.Value))
	case appendixd.Raise:
		return "{raise: {event: " + a.Event + brought(a.Data) + "}}"
	case appendixd.Send:
		text := "{send: {event: " + a.Event + brought(a.Data) + ", delay: " + quoted(a.Delay.Text)
		if a.ID != "" {
			text += ", id: " + a.ID
		}
		return text + "}}"
	case appendixd.Cancel:
		return "{cancel: " + a.ID + "}"
	case appendixd.Log:
		switch {
		case a.Event:
			return "{log: " + quoted(a.Text+" ${event.name}") + "}"
		case a.Value != nil:
			return "{log: " + quoted(a.Text+" ${"+formula(a.Value)+"}") + "}"
		}
		return "{log: " + quoted(a.Text) + "}"
	case appendixd.If:
		return choice(a)
	}
	return "unknown action"
}

func brought(data appendixd.Expression) string {
	if data == nil {
		return ""
	}
	return ", data: {n: " + expression(data) + "}"
}

func choice(a appendixd.If) string {
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
