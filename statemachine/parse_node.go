package statemachine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// maxNodes bounds a definition's chart.
const maxNodes = 4096

// stateMachines reads the machines in the order of the file.
func (b *builder) stateMachines(top *document.Node) {
	n := top.Field("stateMachines")
	if n == nil || n.Kind != document.Mapping || len(n.Fields) == 0 {
		b.Add(top, "\"stateMachines\" is missing or empty")
		return
	}
	d := b.d
	b.byName = map[*node]map[NodeID]*node{}
	root := &node{kind: parallel}
	d.nodes = append(d.nodes, root)
	for _, f := range n.Fields {
		m := b.node(f, root, nil)
		if m == nil {
			continue
		}
		if m.kind != compound && m.kind != parallel {
			b.Add(f.Key, "state machine %q has no states", data.Shorten(f.Key.Text))
		}
		b.region(f.Key, m)
		root.children = append(root.children, m)
	}
	if len(n.Fields) > 1 && b.isSCXML() {
		b.advise(n.Fields[1].Key, "put it into a parallel state, or leave out semantics", "a document of SCXML has one state machine")
	}
	root.last = len(d.nodes) - 1
	d.machines = root.children
	if len(d.nodes) > maxNodes {
		b.Add(n, "more than %d nodes", maxNodes)
		return
	}
	b.resolve()
	b.settleInternal()
}

// region notes a name that stands in states as a stateMachineId.
func (b *builder) region(at *document.Node, n *node) {
	id := MachineID(n.id)
	if b.d.regions[id] != nil {
		b.advise(at, "give one of them another name", "duplicate state machine or region %q", data.Shorten(string(id)))
	}
	b.d.regions[id] = n
}

// node reads one state with everything below it. machine is nil for a state
// machine itself.
func (b *builder) node(f document.Field, parent, machine *node) *node {
	n := &node{id: NodeID(f.Key.Text), index: len(b.d.nodes), parent: parent, machine: machine, line: f.Key.Line}
	if machine == nil {
		n.machine = n
		b.byName[n] = map[NodeID]*node{}
	}
	b.d.nodes = append(b.d.nodes, n)
	if !IsNodeName(f.Key.Text, b.isSCXML()) {
		b.Add(f.Key, "%q is not a name: letters, digits, _ ~ - and inner blanks, at most 64", data.Shorten(f.Key.Text))
	}
	names := b.byName[n.machine]
	if machine != nil {
		if names[n.id] != nil {
			b.advise(f.Key, "give one of them another name", "duplicate node %q in its state machine", data.Shorten(f.Key.Text))
		}
		names[n.id] = n
	}
	n.done = EventName("done.state." + f.Key.Text)
	n.tone = parent.tone
	v := f.Value
	if v.Kind == document.Null {
		n.last = n.index
		return n
	}
	keys := nodeKeys
	if b.isSCXML() {
		keys = scxmlNodeKeys
	}
	if !b.known(v, keys) {
		return nil
	}
	b.kind(n, v)
	b.content(n, v)
	b.presented(n, v)
	if states := v.Field("states"); states != nil {
		b.states(n, states)
	}
	n.last = len(b.d.nodes) - 1
	b.entryPoint(n, v)
	return n
}

// kind reads what the node is, and refuses keys that do not belong to it.
func (b *builder) kind(n *node, v *document.Node) {
	has := func(key string) bool { return v.Field(key) != nil }
	n.kind = atomic
	if has("states") {
		n.kind = compound
	}
	if t := v.Field("type"); t != nil {
		n.kind = oneOf(b, t, nodeTypes)
	}
	if n.kind == shallowHistory && has("history") {
		n.kind = oneOf(b, v.Field("history"), historyTypes)
	}
	refuse := func(what string, keys ...string) {
		for _, key := range keys {
			if k := v.Field(key); k != nil {
				b.advise(k, "leave it out, or give the node another type", "%s cannot have %q", what, key)
			}
		}
	}
	if n.kind.isHistory() {
		refuse("a history node", "initial", "states", "on", "always", "after", "invoke", "entry", "exit", "onDone", "output", "task")
		return
	}
	refuse("a node that is not of type history", "history", "target")
	switch n.kind {
	case final:
		refuse("a final node", "initial", "states", "on", "always", "after", "invoke", "onDone", "task")
		if n.parent.kind == parallel && n.machine != n {
			b.advise(v, "put it into a region", "a final node cannot be a region of a parallel node")
		}
	case atomic:
		refuse("an atomic node", "initial", "states", "onDone", "output")
	case parallel:
		refuse("a parallel node", "initial", "output")
		if !has("states") {
			b.advise(v, "give it states, or leave type out", "a parallel node needs states: its regions")
		}
	case compound:
		refuse("a compound node", "output")
		if !has("states") {
			b.advise(v, "give it states, or leave type out", "a compound node needs states")
		}
	}
	if n.machine == n {
		refuse("a state machine", "onDone", "task")
	}
}

// content reads transitions and actions.
func (b *builder) content(n *node, v *document.Node) {
	n.entry = b.actions(v.Field("entry"))
	n.exit = b.actions(v.Field("exit"))
	if o := v.Field("output"); o != nil {
		n.output = b.template(o)
	}
	n.params = b.params(v.Field("params"))
	if always := v.Field("always"); always != nil {
		n.always = b.transitions(n, always, eventPattern{})
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
	if b.d.semantics == xstateSemantics { // "*" comes last
		slices.SortStableFunc(n.on, func(t, u *transition) int { return cmp.Compare(t.rank(), u.rank()) })
	}
	b.task(n, v.Field("task"))
	if tags := v.Field("tags"); tags != nil && tags.Kind == document.Sequence {
		n.failed = slices.ContainsFunc(tags.Items, func(tag *document.Node) bool { return tag.Text == "failed" })
	}
}

// ons reads the transitions of a node by event.
func (b *builder) ons(n *node, v *document.Node) {
	switch {
	case v.Kind == document.Sequence && b.isSCXML():
		b.onList(n, v)
	case v.Kind != document.Mapping:
		b.Add(v, "must be a mapping of event names")
	default:
		for _, f := range v.Fields {
			b.on(n, f)
		}
	}
}

// onDone reads what is taken when the node itself is done.
func (b *builder) onDone(n *node, v *document.Node) {
	for _, t := range b.transitions(n, v, eventPattern{name: n.done}) {
		t.onDone = n
		n.on = append(n.on, t)
	}
}

// rank is the place of a transition among those of its node in XState.
func (tr *transition) rank() int {
	if tr.everything {
		return 1
	}
	return 0
}

func (b *builder) on(n *node, f document.Field) {
	if b.isSCXML() {
		b.onDescriptors(n, f.Key, f.Value)
		return
	}
	p, ok := parsePattern(f.Key.Text)
	if !ok {
		b.Add(f.Key, "%q is not an event name: letters, digits and . _ : ~ -, or a name ending in .*, or *", data.Shorten(f.Key.Text))
		return
	}
	b.d.declared.add(p)
	if p.name != "" {
		b.taking = append(b.taking, f.Key)
	}
	list := b.transitions(n, f.Value, p)
	for _, t := range list {
		t.everything = p.any && b.d.semantics == xstateSemantics
	}
	n.on = append(n.on, list...)
}

// afters reads the timers of a node: delays, each with its transitions.
func (b *builder) afters(n *node, v *document.Node) {
	if v.Kind != document.Mapping {
		b.Add(v, "must be a mapping of delays to transitions")
		return
	}
	computed := 0
	for _, f := range v.Fields {
		a := &after{node: n, delay: b.delay(f.Key)}
		name := f.Key.Text
		if a.delay.value != nil {
			name = "computed"
			if computed++; computed > 1 {
				name += strconv.Itoa(computed)
			}
		}
		a.event = EventName("after." + name + "." + string(n.id))
		n.after = append(n.after, a)
		for _, t := range b.transitions(n, f.Value, eventPattern{}) {
			t.after = a
			n.on = append(n.on, t)
		}
	}
}

// states reads the children of a compound or parallel node.
func (b *builder) states(n *node, states *document.Node) {
	if states.Kind != document.Mapping || len(states.Fields) == 0 {
		b.Add(states, "must be a mapping of at least one node")
		return
	}
	for _, f := range states.Fields {
		c := b.node(f, n, n.machine)
		switch {
		case c == nil:
		case c.kind.isHistory():
			n.histories = append(n.histories, c)
			n.opens = n.opens || c.opening != nil
		default:
			n.children = append(n.children, c)
			if n.kind == parallel {
				b.region(f.Key, c)
			}
		}
	}
	if len(n.children) == 0 {
		b.Add(states, "has no node that can be active")
	}
}

// entryPoint reads initial, and a history node's default target.
func (b *builder) entryPoint(n *node, v *document.Node) {
	if t := b.opening(n, v.Field("target")); t != nil && n.kind.isHistory() {
		b.target(t, n, func(to *node) {
			if !n.parent.contains(to) {
				b.advise(t, "name a node that stands beside the history node", "the default of a history node must lie inside %q", string(n.parent.id))
			}
			n.fallback = append(n.fallback, to)
		})
	}
	if n.kind != compound {
		return
	}
	i := b.opening(n, v.Field("initial"))
	n.opens = n.opens || n.opening != nil
	if i == nil {
		if len(n.children) > 0 {
			n.initial = n.children[:1] // document order, as SCXML has it
		}
		return
	}
	b.target(i, n, func(to *node) {
		if !n.contains(to) {
			b.advise(i, "name one of its own states", "the initial node must lie inside %q", string(n.id))
		}
		n.initial = append(n.initial, to)
	})
}

// target notes a reference to one node or a list of nodes of n's machine.
func (b *builder) target(at *document.Node, n *node, found func(*node)) {
	for _, name := range b.Texts(at) {
		b.pending = append(b.pending, pendingTarget{at, n.machine, NodeID(name), found})
	}
}

// resolve finds the nodes that were referred to.
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
		where := fmt.Sprintf("unknown target %q in state machine %q", data.Shorten(string(p.name)), string(p.machine.id))
		b.suggest(p.at, string(p.name), all, "%s", where)
		if near := document.Closest(string(p.name), all); near != "" {
			p.found(names[NodeID(near)]) // so that the rest is not told to be unreachable
			b.harmless++
		}
	}
}

// transitions reads the value of an event: a target, an object, or a list of
// these in document order.
func (b *builder) transitions(n *node, v *document.Node, p eventPattern) []*transition {
	if v.Kind != document.Sequence {
		if t := b.transition(n, v, p); t != nil {
			return []*transition{t}
		}
		return nil
	}
	var out []*transition
	for _, item := range v.Items {
		if t := b.transition(n, item, p); t != nil {
			out = append(out, t)
		}
	}
	return out
}

func (b *builder) transition(n *node, v *document.Node, p eventPattern) *transition {
	t := &transition{source: n, event: p, line: v.Line, reenter: b.isSCXML()}
	addTarget := func(to *node) { t.targets = append(t.targets, to) }
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
	keys := transitionKeys
	if b.isSCXML() {
		keys = scxmlTransitionKeys
	}
	b.known(v, keys)
	if to := v.Field("target"); to != nil && to.Kind != document.Null {
		b.target(to, n, addTarget)
	}
	if g := v.Field("guard"); g != nil {
		t.guard, t.condition = b.guard(g), conditionText(g)
	}
	if a := v.Field("allow"); a != nil {
		if fromNobody := !p.any && !p.prefix && IsReserved(p.name) && !b.parser.options.Stored; fromNobody || p == (eventPattern{}) {
			b.Add(a, "nobody sends what leads here, so there is nobody whose rights could be asked")
		}
		t.allow = b.rule(a)
	}
	t.actions = b.actions(v.Field("actions"))
	if r := v.Field("reenter"); r != nil {
		t.reenter = b.Bool(r)
	}
	t.into = oneOf(b, v.Field("into"), intoWords)
	t.apply = oneOf(b, v.Field("apply"), applyWords)
	return t
}
