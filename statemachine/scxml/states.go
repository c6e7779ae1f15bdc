package scxml

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

func isState(name string) bool {
	return name == "state" || name == "parallel" || name == "final" || name == "history"
}

func (i *importer) nameStates(e *element) {
	var unnamed []*element
	var walk func(e *element)
	walk = func(e *element) {
		for _, c := range e.children {
			if !c.isSCXML() || !isState(c.name) {
				continue
			}
			id, ok := c.attribute("id")
			switch {
			case !ok || id == "":
				unnamed = append(unnamed, c)
			case i.known[id] != nil:
				i.Add(c.at(), "two states have the id %q", id)
			case !statemachine.IsNodeName(id, true):
				i.Add(c.at(), "the id %q cannot be the name of a state", id).Suggestion = "letters, digits, _ ~ - . and inner blanks, at most 64"
			default:
				i.known[id], i.names[c] = c, id
				if own, ok := c.own("name"); ok {
					i.names[c] = own
				}
			}
			i.parents[c] = e
			walk(c)
		}
	}
	walk(e)
	for n, c := range unnamed {
		name := c.name + "_" + strconv.Itoa(n+1)
		for i.known[name] != nil {
			name += "_"
		}
		i.known[name], i.names[c] = c, name
	}
}

const maxSuggestions = 20

func (i *importer) targets(e *element, value string) []string {
	words := strings.Fields(value)
	for n, w := range words {
		if of := i.known[w]; of != nil {
			words[n] = i.names[of]
			continue
		}
		f := i.Add(e.at(), "no state has the id %q", w)
		if i.unknown++; i.unknown <= maxSuggestions { // NB: looking for the closest of many takes long
			f.Suggestion = document.DidYouMean(w, i.stateIDs())
		}
	}
	return words
}

func (i *importer) stateIDs() []string { return slices.Sorted(maps.Keys(i.known)) }

func (i *importer) state(e *element) *document.Node {
	m := newMapping()
	switch e.name {
	case "history":
		i.history(e, m)
	case "final":
		i.attributes(e, "id")
		i.children(e, "onentry", "onexit", "donedata")
		m.set("type", text("final"))
		i.handlers(e, m, nil)
		if d := e.first("donedata"); d != nil {
			i.attributes(d)
			i.children(d, "content", "param")
			value, params := i.payload(d)
			m.set("output", value).set("params", params)
		}
	case "parallel":
		i.attributes(e, "id")
		i.children(e, "onentry", "onexit", "transition", "state", "parallel", "history", "datamodel", "invoke")
		m.set("type", text("parallel"))
		i.content(e, m)
	default:
		i.attributes(e, "id", "initial")
		i.children(e, "onentry", "onexit", "transition", "state", "parallel", "final", "history", "datamodel", "invoke", "initial")
		i.compound(e, m, nil)
	}
	i.rest(e, m)
	return m.Node
}

func (i *importer) compound(e *element, m mapping, setup []*document.Node) {
	initial, ok := e.attribute("initial")
	of := e.first("initial")
	switch {
	case ok && strings.TrimSpace(initial) != "":
		if of != nil {
			i.Add(of.at(), "a state has either the attribute initial or the element")
		}
		m.set("initial", textOrList(i.targets(e, initial)))
		i.checkInside(e, e, initial, "initial state")
	case of != nil:
		i.attributes(of)
		i.children(of, "transition")
		if t := of.first("transition"); t != nil {
			m.set("initial", i.opening(t))
			to, _ := t.attribute("target")
			i.checkInside(e, t, to, "initial state")
		} else {
			i.Add(of.at(), "<initial> needs a <transition>")
		}
	}
	i.content(e, m, setup...)
}

func (i *importer) opening(t *element) *document.Node {
	i.attributes(t, "target", "type")
	target, _ := t.attribute("target")
	to := textOrList(i.targets(t, target))
	if target == "" {
		i.Add(t.at(), "this <transition> needs a target")
	}
	if len(t.children) == 0 {
		return to
	}
	return newMapping().set("target", to).set("actions", i.actions(t.children)).Node
}

func (i *importer) history(e *element, m mapping) {
	i.attributes(e, "id", "type")
	i.children(e, "transition")
	m.set("type", text("history"))
	switch kind, _ := e.attribute("type"); kind {
	case "", "shallow":
	case "deep":
		m.set("history", text("deep"))
	default:
		i.Add(e.at(), "the type of a history state is shallow or deep, not %q", kind)
	}
	if t := e.first("transition"); t != nil {
		m.set("target", i.opening(t))
		to, _ := t.attribute("target")
		i.checkInside(i.parents[e], t, to, "default of a history state")
	}
}

// checkInside refuses a default entry into states that are not inside the one that is entered (W3C SCXML, sections 3.6 and 3.10.2).
func (i *importer) checkInside(around, at *element, targets, what string) {
	for _, id := range strings.Fields(targets) {
		if of := i.known[id]; of != nil && !around.contains(of) {
			i.Add(at.at(), "the %s %q lies outside of <%s id=%q>", what, id, around.name, i.names[around]).Suggestion = "name a state inside it"
		}
	}
}

func (i *importer) content(e *element, m mapping, setup ...*document.Node) {
	if i.late && e != i.root {
		setup = append(setup, i.initializations(e)...)
	}
	i.handlers(e, m, setup)
	i.transitions(e, m)
	var invokes []*document.Node
	for n, c := range e.all("invoke") {
		made := i.invoke(e, c)
		i.addChildTransitions(e, n, made)
		invokes = append(invokes, made.Node)
	}
	if len(invokes) > 0 {
		m.set("invoke", list(invokes...))
	}
	states := newMapping()
	for _, c := range e.children {
		if c.isSCXML() && isState(c.name) {
			states.set(i.names[c], i.state(c))
		}
	}
	m.set("states", states.orNil())
}

func (i *importer) handlers(e *element, m mapping, setup []*document.Node) {
	for _, of := range []struct{ element, key string }{{"onentry", "entry"}, {"onexit", "exit"}} {
		var blocks []*document.Node
		if of.key == "entry" {
			blocks = setup
		}
		for _, c := range e.all(of.element) {
			i.attributes(c)
			if _, own := c.own("after"); own { // what after does by itself
				continue
			}
			if actions := i.actions(c.children); len(actions.Items) > 0 {
				blocks = append(blocks, actions)
			}
		}
		switch len(blocks) {
		case 0:
		case 1:
			m.set(of.key, blocks[0])
		default:
			m.set(of.key, list(blocks...))
		}
	}
}

// transitions adds on and always. The order of a mapping is that of its keys, so transitions that name the same events are put together;
// where that would change which comes first, on is a list.
func (i *importer) transitions(e *element, m mapping) {
	type found struct {
		events string
		tree   *document.Node
	}
	var on []found
	var always []*document.Node
	ordered := true
	seen := map[string]int{}
	for _, t := range e.all("transition") {
		events, tree := i.transition(t)
		if i.ownTransition(t, tree, m) {
			continue
		}
		if events == "" {
			always = append(always, tree)
			continue
		}
		if len(on) == 0 {
			m.set("on", list()) // its place among onDone, after and invoke counts
		}
		if last, again := seen[events]; again && last != len(on)-1 {
			ordered = false
		}
		seen[events] = len(on)
		on = append(on, found{events, tree})
	}
	if len(always) > 0 {
		m.set("always", orOne(always))
	}
	if len(on) == 0 {
		return
	}
	if !ordered && i.semantics == "scxml" {
		out := list()
		for _, f := range on {
			of := newMapping().set("event", text(f.events))
			if f.tree.Kind == document.String {
				of.set("target", f.tree)
			}
			of.Fields = append(of.Fields, f.tree.Fields...)
			out.Items = append(out.Items, of.Node)
		}
		m.set("on", out)
		return
	}
	groups := newMapping()
	for _, f := range on {
		groups.add(f.events, f.tree)
	}
	m.set("on", groups.Node)
}

// ownTransition adds a transition that only a definition has, as Export writes it: of a delay, of the end of the state or of a child.
func (i *importer) ownTransition(t *element, tree *document.Node, m mapping) bool {
	into, key := m, "onDone"
	if delay, ok := t.own("after"); ok {
		if m.Field("after") == nil {
			m.set("after", newMapping().Node)
		}
		into, key = mapping{m.Field("after")}, delay
	} else if key, ok := t.own("told"); ok {
		i.childTransitions = append(i.childTransitions, childTransition{t, key, tree})
		if m.Field("invoke") == nil {
			m.set("invoke", list()) // its place
		}
		return true
	} else if _, ok := t.own("onDone"); !ok {
		return false
	}
	into.add(key, tree)
	return true
}

// childTransition is one of an invoke, which is made later.
type childTransition struct {
	of   *element
	key  string // "onDone 0": the key, and the number of the invoke
	tree *document.Node
}

func (i *importer) addChildTransitions(state *element, number int, m mapping) {
	for _, t := range i.childTransitions {
		key, at, _ := strings.Cut(t.key, " ")
		if at == strconv.Itoa(number) && slices.Contains(state.children, t.of) && (key == "onDone" || key == "onError") {
			m.add(key, t.tree)
		}
	}
}

func orOne(items []*document.Node) *document.Node {
	if len(items) == 1 {
		return items[0]
	}
	return list(items...)
}

func (i *importer) transition(t *element) (events string, tree *document.Node) {
	i.attributes(t, "event", "cond", "target", "type")
	value, _ := t.attribute("event")
	words := strings.Fields(value)
	for n, w := range words {
		name := strings.TrimSuffix(strings.TrimSuffix(w, "*"), ".")
		if _, ok := statemachine.ParseEventName(name); !ok && name != "" {
			i.Add(t.at(), "%q cannot be the name of an event", w).Suggestion = "letters, digits and . _ : ~ -, at most 128"
		}
		if name == "" {
			words[n] = "*"
		}
	}
	m := newMapping()
	if target, ok := t.attribute("target"); ok && strings.TrimSpace(target) != "" {
		m.set("target", textOrList(i.targets(t, target)))
	}
	if cond, ok := t.attribute("cond"); ok {
		m.set("guard", text(i.condition(t, cond)))
	}
	switch kind, _ := t.attribute("type"); {
	case kind == "internal" && i.semantics == "scxml":
		m.set("reenter", truth(false))
	case kind != "internal" && i.semantics != "scxml" && m.Field("target") != nil:
		m.set("reenter", truth(true))
	case kind != "" && kind != "internal" && kind != "external":
		i.Add(t.at(), "the type of a transition is internal or external, not %q", kind)
	}
	if actions := i.actions(t.children); len(actions.Items) > 0 {
		m.set("actions", actions)
	}
	i.rest(t, m)
	if len(m.Fields) == 1 && m.Field("target") != nil && m.Field("target").Kind == document.String {
		return strings.Join(words, " "), m.Field("target")
	}
	return strings.Join(words, " "), m.Node
}
