package xstate

import (
	"strconv"
	"strings"

	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// refused are actions of XState that nothing here does, with what to do instead.
var refused = map[string]string{
	"sendTo":         "actors are workflows here: let the child take an event of its own, or use a webhook",
	"sendParent":     "let the end of this machine tell its parent: a final state with output",
	"forwardTo":      "actors are workflows here: let the child take an event of its own, or use a webhook",
	"escalate":       "let a final state have the tag failed",
	"emit":           "nobody listens here: use a webhook",
	"spawnChild":     "use invoke in a state",
	"spawn":          "use invoke in a state",
	"stopChild":      "a child that is invoked stops when its state is left",
	"stop":           "a child that is invoked stops when its state is left",
	"enqueueActions": "its function is not in the JSON: use if, then and else in the map of actions",
	"pure":           "its function is not in the JSON: use if, then and else in the map of actions",
	"choose":         "use if, then and else in the map of actions",
	"after":          "this is the JSON of a machine and not of its configuration: use JSON.stringify(machine.config)",
}

// ownAction makes what one of XState's own actions is. Its members stand beside the type or in params.
func (r *reader) ownAction(n *document.Node, own string) []*document.Node {
	var a *document.Node
	switch own {
	case "raise":
		a = r.raise(n)
	case "assign":
		a = r.assign(n)
	case "cancel":
		id := firstField(n, "sendId", "id")
		if id == nil {
			r.missing(n, "the id of what is cancelled")
			return nil
		}
		a = tree.Only(n, "cancel", tree.Text(id, r.Text(id)))
	case "log":
		a = r.log(n)
	default:
		advice, ok := refused[own]
		if !ok {
			advice = "known here: xstate.raise, xstate.assign, xstate.cancel, xstate.log"
		}
		r.add(n, advice, "%q has no counterpart here", tree.Clipped(n.Field("type").Text, 100))
	}
	if a == nil {
		return nil
	}
	return []*document.Node{a}
}

func (r *reader) missing(n *document.Node, what string) {
	r.add(n, `name the action, and say what it does in a map "actions" at the top`, "%s has lost %s: it was a function, which JSON leaves out", n.Field("type").Text, what)
}

func (r *reader) raise(n *document.Node) *document.Node {
	event := firstField(n, "event")
	if event == nil {
		r.missing(n, "its event")
		return nil
	}
	at, data := event, tree.Mapping(event)
	if event.Kind == document.Mapping {
		at = event.Field("type")
		for _, f := range event.Fields {
			if f.Key.Text != "type" {
				data.Fields = append(data.Fields, f)
			}
		}
	}
	if !tree.IsWord(at) {
		r.add(event, `{"type": "name"}`, "an event is a name or an object with a type")
		return nil
	}
	if r.native == nil && !r.eventName(at, at.Text) {
		return nil
	}
	delay, id := firstField(n, "delay"), firstField(n, "id")
	if delay == nil && len(data.Fields) == 0 {
		return tree.Only(n, "raise", tree.Text(at, at.Text))
	}
	out := tree.Mapping(n)
	tree.Put(out, "event", tree.Text(at, at.Text))
	if len(data.Fields) > 0 {
		tree.Put(out, "data", data)
	}
	if delay == nil {
		return tree.Only(n, "raise", out)
	}
	tree.Put(out, "delay", r.delayOf(delay))
	if id != nil {
		tree.Put(out, "id", tree.Text(id, r.Text(id)))
	}
	return tree.Only(n, "send", out)
}

func (r *reader) assign(n *document.Node) *document.Node {
	values := firstField(n, "assignment", "context")
	if values == nil {
		values = n.Field("params")
	}
	if values == nil || values.Kind != document.Mapping {
		r.missing(n, "what it assigns")
		return nil
	}
	out := tree.Mapping(values)
	for _, f := range values.Fields {
		if f.Key.Text == "" || strings.Contains(f.Key.Text, ".") {
			r.add(f.Key, "", "a key with a dot cannot be assigned")
			continue
		}
		tree.PutAt(out, f.Key, "svcPublic."+f.Key.Text, f.Value)
	}
	return tree.Only(n, "assign", out)
}

func (r *reader) log(n *document.Node) *document.Node {
	value, label := firstField(n, "value", "message", "args"), firstField(n, "label")
	switch {
	case value == nil && label == nil:
		r.missing(n, "what it logs")
		return nil
	case label == nil:
		return tree.Only(n, "log", value)
	case value == nil:
		return tree.Only(n, "log", tree.Text(label, r.Text(label)))
	case tree.IsWord(value):
		return tree.Only(n, "log", tree.Text(n, r.Text(label)+": "+value.Text))
	}
	both := tree.Mapping(n)
	tree.Put(both, r.Text(label), value)
	return tree.Only(n, "log", both)
}

// delayOf makes a delay: milliseconds, a name of the map, or an expression.
func (r *reader) delayOf(n *document.Node) *document.Node {
	if n.Kind == document.Number {
		return tree.Word(n, document.Number, n.Text)
	}
	if !tree.IsWord(n) {
		r.add(n, "", "a delay is a number of milliseconds or a name")
		return nil
	}
	if _, ok := tree.Expression(n.Text); ok || isMilliseconds(n.Text) {
		return tree.Text(n, n.Text)
	}
	return r.namedDelay(n, n.Text)
}

func isMilliseconds(s string) bool {
	return s == "0" || s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

func (r *reader) namedDelay(at *document.Node, name string) *document.Node {
	entry := r.delays.get(name)
	if entry == nil {
		r.add(at, `say how long it is at the top: "delays": {"`+tree.Clipped(name, 60)+`": 1000}`, "the delay %q has no length: JSON has no functions", tree.Clipped(name, 100))
		return nil
	}
	if entry.Kind != document.Number && entry.Kind != document.String {
		r.add(entry, `milliseconds, "PT5S", or "${…}"`, "the delay %q is %s", tree.Clipped(name, 100), entry.Kind)
		return nil
	}
	out := *entry
	return &out
}

// after makes the delayed transitions of a state. Two delays of the same length stay two.
func (r *reader) after(s *state, n *document.Node) *document.Node {
	used := map[string]bool{}
	if n.Kind != document.Mapping {
		r.add(n, `{"1000": "target"}`, "after must be an object of delays, found %s", n.Kind)
		return nil
	}
	out := tree.Mapping(n)
	for _, f := range n.Fields {
		delay := tree.Text(f.Key, f.Key.Text)
		if kept := s.keptKeys().Field(tree.WrittenDelays).Field(f.Key.Text); tree.IsWord(kept) {
			delay = kept
		} else if !isMilliseconds(f.Key.Text) {
			if delay = r.namedDelay(f.Key, f.Key.Text); delay == nil {
				continue
			}
		}
		v := r.transitions(s, f.Value, delayed)
		if v == nil {
			v = tree.List(f.Value)
		}
		tree.PutAt(out, f.Key, distinct(used, delay.Text), v)
	}
	return out
}

// distinct returns a delay that is written in another way than those that are used.
func distinct(used map[string]bool, delay string) string {
	for range maxNested {
		if !used[delay] {
			break
		}
		inner, ok := tree.Expression(delay)
		if !ok {
			inner = delayLiteral(delay)
		}
		delay = "${" + inner + " }"
	}
	used[delay] = true
	return delay
}

func delayLiteral(delay string) string {
	if isMilliseconds(delay) {
		return delay
	}
	return strconv.Quote(delay)
}

var invokeKeys = []string{"src", "id", "input", "onDone", "onError", "systemId"}

func (r *reader) invokes(s *state, n *document.Node) *document.Node {
	var out []*document.Node
	for _, i := range tree.Items(n) {
		if a := r.invoke(s, i); a != nil {
			out = append(out, a)
		}
	}
	return tree.OneOrMore(n, out)
}

func (r *reader) invoke(s *state, n *document.Node) *document.Node {
	later := map[string]string{"data": "XState v5 has input", "onSnapshot": "a child tells its end alone"}
	if !r.known(n, invokeKeys, later) {
		return nil
	}
	src := n.Field("src")
	if src == nil || src.Kind != document.String {
		r.add(n, `name it, and give its workflow at the top: "actors": {"name": {"workflow": "id"}}`, "the actor was a function or a machine, which the JSON of a configuration leaves out")
		return nil
	}
	actor := r.actors.get(src.Text)
	if actor == nil {
		r.add(src, `give the workflow that does it at the top: "actors": {"`+tree.Clipped(src.Text, 60)+`": {"workflow": "id"}}`, "the actor %q is not known: JSON has no functions", tree.Clipped(src.Text, 100))
		return nil
	}
	if !r.known(actor, []string{"workflow", "version", "job", "priority", "data"}, nil) {
		return nil
	}
	out := tree.Mapping(n)
	for _, f := range actor.Fields {
		tree.PutAt(out, src, f.Key.Text, f.Value)
	}
	if input := n.Field("input"); input != nil {
		if actor.Field("data") != nil {
			r.add(input, "leave one of them out", "the actor %q has input and data", tree.Clipped(src.Text, 100))
		}
		if actor.Field("job") != nil {
			tree.Put(out, "data", input)
		} else {
			tree.Put(out, "data", tree.Only(input, "svcPublic", input))
		}
	}
	for _, key := range []string{"onDone", "onError"} {
		if v := n.Field(key); v != nil {
			tree.Put(out, key, r.transitions(s, v, plainEvent))
		}
	}
	return out
}

func (r *reader) assigns(n *document.Node) bool {
	for _, a := range tree.Items(n) {
		name := a.Text
		if t := a.Field("type"); tree.IsWord(t) {
			name = t.Text
		}
		if strings.HasSuffix(name, "xstate.assign") || a.Field("assign") != nil {
			return true
		}
		if r.namedAssigns(name) {
			return true
		}
	}
	return false
}

func (r *reader) namedAssigns(name string) bool {
	entry := r.actions.get(name)
	if entry == nil {
		return false
	}
	found, asked := r.assigning[name]
	if !asked {
		r.assigning[name] = false // for a circle
		found = mentions(entry, "assign") || r.assigns(entry)
		r.assigning[name] = found
	}
	return found
}

func mentions(n *document.Node, key string) bool {
	for _, item := range n.Items {
		if mentions(item, key) {
			return true
		}
	}
	for _, f := range n.Fields {
		if f.Key.Text == key || mentions(f.Value, key) {
			return true
		}
	}
	return false
}
