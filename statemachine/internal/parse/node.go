package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

// MaxNodes bounds a definition's chart.
const MaxNodes = 4096

func (b *builder) stateMachines(top *document.Node) {
	n := top.Field("stateMachines")
	if n == nil || n.Kind != document.Mapping || len(n.Fields) == 0 {
		b.Add(top, "\"stateMachines\" is missing or empty")
		return
	}
	d := b.Definition
	b.byName = map[*chart.Node]map[chart.NodeID]*chart.Node{}
	root := &chart.Node{Kind: chart.Parallel}
	d.Nodes = append(d.Nodes, root)
	for _, f := range n.Fields {
		m := b.node(f, root, nil)
		if m == nil {
			continue
		}
		if m.Kind != chart.Compound && m.Kind != chart.Parallel {
			b.Add(f.Key, "state machine %q has no states", data.Shorten(f.Key.Text))
		}
		b.region(f.Key, m)
		root.Children = append(root.Children, m)
	}
	if len(n.Fields) > 1 && b.IsSCXML() {
		b.Advise(n.Fields[1].Key, "put it into a parallel state, or leave out semantics", "a document of SCXML has one state machine")
	}
	root.Last = len(d.Nodes) - 1
	d.Machines = root.Children
	if len(d.Nodes) > MaxNodes {
		b.Add(n, "more than %d nodes", MaxNodes)
		return
	}
	b.resolve()
	b.settleInternal()
}

// region notes a name that stands in states as a stateMachineId.
func (b *builder) region(at *document.Node, n *chart.Node) {
	id := chart.MachineID(n.ID)
	if b.Definition.RegionByID[id] != nil {
		b.Advise(at, "give one of them another name", "duplicate state machine or region %q", data.Shorten(string(id)))
	}
	b.Definition.RegionByID[id] = n
}

// node reads one state with everything below it. machine is nil for a state machine itself.
func (b *builder) node(f document.Field, parent, machine *chart.Node) *chart.Node {
	n := &chart.Node{ID: chart.NodeID(f.Key.Text), Index: len(b.Definition.Nodes), Parent: parent, Machine: machine, Line: f.Key.Line}
	if machine == nil {
		n.Machine = n
		b.byName[n] = map[chart.NodeID]*chart.Node{}
	}
	b.Definition.Nodes = append(b.Definition.Nodes, n)
	if !chart.IsNodeName(f.Key.Text, b.IsSCXML()) {
		b.Add(f.Key, "%q is not a name: letters, digits, _ ~ - and inner blanks, at most 64", data.Shorten(f.Key.Text))
	}
	names := b.byName[n.Machine]
	if machine != nil {
		if names[n.ID] != nil {
			b.Advise(f.Key, "give one of them another name", "duplicate node %q in its state machine", data.Shorten(f.Key.Text))
		}
		names[n.ID] = n
	}
	n.Done = chart.EventName("done.state." + f.Key.Text)
	n.Tone = parent.Tone
	v := f.Value
	if v.Kind == document.Null {
		n.Last = n.Index
		return n
	}
	keys := clause.NodeKeys
	if b.IsSCXML() {
		keys = clause.SCXMLNodeKeys
	}
	if !b.Mapping(v, keys) {
		return nil
	}
	b.kind(n, v)
	b.content(n, v)
	b.presented(n, v)
	if states := v.Field("states"); states != nil {
		b.states(n, states)
	}
	n.Last = len(b.Definition.Nodes) - 1
	b.entryPoint(n, v)
	return n
}

// kind reads what the node is, and refuses keys that do not belong to it.
func (b *builder) kind(n *chart.Node, v *document.Node) {
	has := func(key string) bool { return v.Field(key) != nil }
	n.Kind = chart.Atomic
	if has("states") {
		n.Kind = chart.Compound
	}
	if t := v.Field("type"); t != nil {
		n.Kind = clause.OneOf(&b.Reader, t, clause.NodeTypes)
	}
	if n.Kind == chart.ShallowHistory && has("history") {
		n.Kind = clause.OneOf(&b.Reader, v.Field("history"), clause.HistoryTypes)
	}
	refuse := func(what string, keys ...string) {
		for _, key := range keys {
			if k := v.Field(key); k != nil {
				b.Advise(k, "leave it out, or give the node another type", "%s cannot have %q", what, key)
			}
		}
	}
	if n.Kind.IsHistory() {
		refuse("a history node", "initial", "states", "on", "always", "after", "invoke", "entry", "exit", "onDone", "output", "task")
		return
	}
	refuse("a node that is not of type history", "history", "target")
	switch n.Kind {
	case chart.Final:
		refuse("a final node", "initial", "states", "on", "always", "after", "invoke", "onDone", "task")
		if n.Parent.Kind == chart.Parallel && n.Machine != n {
			b.Advise(v, "put it into a region", "a final node cannot be a region of a parallel node")
		}
	case chart.Atomic:
		refuse("an atomic node", "initial", "states", "onDone", "output")
	case chart.Parallel:
		refuse("a parallel node", "initial", "output")
		if !has("states") {
			b.Advise(v, "give it states, or leave type out", "a parallel node needs states: its regions")
		}
	case chart.Compound:
		refuse("a compound node", "output")
		if !has("states") {
			b.Advise(v, "give it states, or leave type out", "a compound node needs states")
		}
	}
	if n.Machine == n {
		refuse("a state machine", "onDone", "task")
	}
}

func (b *builder) content(n *chart.Node, v *document.Node) {
	n.Entry = b.actions(v.Field("entry"))
	n.Exit = b.actions(v.Field("exit"))
	if o := v.Field("output"); o != nil {
		n.Output = b.Template(o)
	}
	n.Params = b.Params(v.Field("params"))
	if always := v.Field("always"); always != nil {
		n.Always = b.transitions(n, always, chart.EventPattern{})
	}
	for _, f := range v.Fields { // in document order: that of on and onDone counts
		switch f.Key.Text {
		case "on":
			b.ons(n, f.Value)
		case "onDone":
			b.onDone(n, f.Value)
		case "after":
			b.afters(n, f.Value)
		case "invoke":
			b.invokes(n, f.Value)
		}
	}
	if b.Definition.Semantics == chart.XstateSemantics { // "*" comes last
		slices.SortStableFunc(n.On, func(t, u *chart.Transition) int { return cmp.Compare(rank(t), rank(u)) })
	}
	b.task(n, v.Field("task"))
	if tags := v.Field("tags"); tags != nil && tags.Kind == document.Sequence {
		n.Failed = slices.ContainsFunc(tags.Items, func(tag *document.Node) bool { return tag.Text == "failed" })
	}
}

func (b *builder) ons(n *chart.Node, v *document.Node) {
	switch {
	case v.Kind == document.Sequence && b.IsSCXML():
		b.onList(n, v)
	case v.Kind != document.Mapping:
		b.Add(v, "must be a mapping of event names")
	default:
		for _, f := range v.Fields {
			b.on(n, f)
		}
	}
}

func (b *builder) onDone(n *chart.Node, v *document.Node) {
	for _, t := range b.transitions(n, v, chart.EventPattern{Name: n.Done}) {
		t.OnDone = n
		n.On = append(n.On, t)
	}
}

// rank is the place of a transition among those of its node in XState.
func rank(tr *chart.Transition) int {
	if tr.Everything {
		return 1
	}
	return 0
}

func (b *builder) on(n *chart.Node, f document.Field) {
	if b.IsSCXML() {
		b.onDescriptors(n, f.Key, f.Value)
		return
	}
	p, ok := chart.ParsePattern(f.Key.Text)
	if !ok {
		b.Add(f.Key, "%q is not an event name: letters, digits and . _ : ~ -, or a name ending in .*, or *", data.Shorten(f.Key.Text))
		return
	}
	b.Definition.Declared.Add(p)
	if p.Name != "" {
		b.Taking = append(b.Taking, f.Key)
	}
	list := b.transitions(n, f.Value, p)
	for _, t := range list {
		t.Everything = p.Any && b.Definition.Semantics == chart.XstateSemantics
	}
	n.On = append(n.On, list...)
}

// afters reads the timers of a node: delays, each with its transitions.
func (b *builder) afters(n *chart.Node, v *document.Node) {
	if v.Kind != document.Mapping {
		b.Add(v, "must be a mapping of delays to transitions")
		return
	}
	computed := 0
	for _, f := range v.Fields {
		a := &chart.After{Node: n, Delay: b.Delay(f.Key)}
		name := f.Key.Text
		if a.Delay.Value != nil {
			name = "computed"
			if computed++; computed > 1 {
				name += strconv.Itoa(computed)
			}
		}
		a.Event = chart.EventName("after." + name + "." + string(n.ID))
		n.After = append(n.After, a)
		for _, t := range b.transitions(n, f.Value, chart.EventPattern{}) {
			t.After = a
			n.On = append(n.On, t)
		}
	}
}

func (b *builder) states(n *chart.Node, states *document.Node) {
	if states.Kind != document.Mapping || len(states.Fields) == 0 {
		b.Add(states, "must be a mapping of at least one node")
		return
	}
	for _, f := range states.Fields {
		c := b.node(f, n, n.Machine)
		switch {
		case c == nil:
		case c.Kind.IsHistory():
			n.Histories = append(n.Histories, c)
			n.Opens = n.Opens || c.Opening != nil
		default:
			n.Children = append(n.Children, c)
			if n.Kind == chart.Parallel {
				b.region(f.Key, c)
			}
		}
	}
	if len(n.Children) == 0 {
		b.Add(states, "has no node that can be active")
	}
}

// entryPoint reads initial, and a history node's default target.
func (b *builder) entryPoint(n *chart.Node, v *document.Node) {
	if t := b.opening(n, v.Field("target")); t != nil && n.Kind.IsHistory() {
		b.target(t, n, func(to *chart.Node) {
			if !n.Parent.Contains(to) {
				b.Advise(t, "name a node that stands beside the history node", "the default of a history node must lie inside %q", string(n.Parent.ID))
			}
			n.Fallback = append(n.Fallback, to)
		})
	}
	if n.Kind != chart.Compound {
		return
	}
	i := b.opening(n, v.Field("initial"))
	n.Opens = n.Opens || n.Opening != nil
	if i == nil {
		if len(n.Children) > 0 {
			n.Initial = n.Children[:1] // document order, as SCXML has it
		}
		return
	}
	b.target(i, n, func(to *chart.Node) {
		if !n.Contains(to) {
			b.Advise(i, "name one of its own states", "the initial node must lie inside %q", string(n.ID))
		}
		n.Initial = append(n.Initial, to)
	})
}

// target notes a reference to one node or a list of nodes of n's machine.
func (b *builder) target(at *document.Node, n *chart.Node, found func(*chart.Node)) {
	for _, name := range b.Texts(at) {
		b.pending = append(b.pending, pendingTarget{at, n.Machine, chart.NodeID(name), found})
	}
}

func (b *builder) resolve() {
	for _, p := range b.pending {
		names := b.byName[p.machine]
		if n := names[p.name]; n != nil {
			p.found(n)
			continue
		}
		all := make([]string, 0, len(names))
		for name := range names {
			all = append(all, string(name))
		}
		where := fmt.Sprintf("unknown target %q in state machine %q", data.Shorten(string(p.name)), string(p.machine.ID))
		b.Suggest(p.at, string(p.name), all, "%s", where)
		if near := document.Closest(string(p.name), all); near != "" {
			p.found(names[chart.NodeID(near)]) // so that the rest is not told to be unreachable
			b.Harmless++
		}
	}
}

// transitions reads the value of an event: a target, an object, or a list of these in document order.
func (b *builder) transitions(n *chart.Node, v *document.Node, p chart.EventPattern) []*chart.Transition {
	if v.Kind != document.Sequence {
		if t := b.transition(n, v, p); t != nil {
			return []*chart.Transition{t}
		}
		return nil
	}
	var out []*chart.Transition
	for _, item := range v.Items {
		if t := b.transition(n, item, p); t != nil {
			out = append(out, t)
		}
	}
	return out
}

func (b *builder) transition(n *chart.Node, v *document.Node, p chart.EventPattern) *chart.Transition {
	t := &chart.Transition{Source: n, Event: p, Line: v.Line, Reenter: b.IsSCXML()}
	addTarget := func(to *chart.Node) { t.Targets = append(t.Targets, to) }
	switch v.Kind {
	case document.Null: // takes the event and does nothing
		return t
	case document.String:
		b.target(v, n, addTarget)
		return t
	case document.Mapping:
	default:
		b.Add(v, "a transition is a target, a mapping, or a list of these")
		return nil
	}
	keys := clause.TransitionKeys
	if b.IsSCXML() {
		keys = clause.SCXMLTransitionKeys
	}
	b.Mapping(v, keys)
	if to := v.Field("target"); to != nil && to.Kind != document.Null {
		b.target(to, n, addTarget)
	}
	if g := v.Field("guard"); g != nil {
		t.Guard, t.Condition = b.Guard(g), clause.ConditionText(g)
	}
	if a := v.Field("allow"); a != nil {
		if fromNobody := !p.Any && !p.Prefix && chart.IsReserved(p.Name) && !b.Stored; fromNobody || p == (chart.EventPattern{}) {
			b.Add(a, "nobody sends what leads here, so there is nobody whose rights could be asked")
		}
		t.Allow = b.Rule(a)
	}
	t.Actions = b.actions(v.Field("actions"))
	if r := v.Field("reenter"); r != nil {
		t.Reenter = b.Bool(r)
	}
	t.Into = clause.OneOf(&b.Reader, v.Field("into"), clause.IntoWords)
	t.Apply = clause.OneOf(&b.Reader, v.Field("apply"), clause.ApplyWords)
	return t
}
