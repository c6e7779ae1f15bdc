package scxml

import (
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

// stateKeys are the keys of a state that have a place in SCXML, or are written in another way.
var stateKeys = []string{
	"type", "initial", "states", "on", "always", "after", "invoke", "entry", "exit", "onDone", "history", "target", "output", "params",
}

func (e *exporter) state(f document.Field) {
	n := f.Value
	kind := textOf(n.Field("type"))
	element := map[string]string{"parallel": "parallel", "final": "final", "history": "history"}[kind]
	if element == "" {
		element = "state"
	}
	id := e.ids[f.Key]
	e.start(element, attribute{"id", id})
	switch {
	case e.machine == f.Key.Text && e.byName[f.Key.Text] != id:
		e.attribute("troupe:machine", f.Key.Text)
	case id != f.Key.Text:
		e.attribute("troupe:name", f.Key.Text)
	}
	e.rest(n, func(key string) bool { return slices.Contains(stateKeys, key) })
	if element == "history" {
		if textOf(n.Field("history")) == "deep" {
			e.attribute("type", "deep")
		}
		if to := n.Field("target"); to != nil {
			e.opening(to)
		}
		e.end()
		return
	}
	initial := n.Field("initial")
	if element == "state" && initial != nil && initial.Kind != document.Mapping {
		e.attribute("initial", e.targets(initial))
	}
	if initial != nil && initial.Kind == document.Mapping {
		e.start("initial")
		e.opening(initial)
		e.end()
	}
	e.content(n, id)
	if n.Field("output") != nil || n.Field("params") != nil {
		e.start("donedata")
		e.payload(n.Field("output"), n.Field("params"))
		e.end()
	}
	e.end()
}

func (e *exporter) initial(n *document.Node) string {
	if i := n.Field("initial"); i != nil {
		return e.targets(i)
	}
	return ""
}

func (e *exporter) targets(n *document.Node) string {
	if n == nil || n.Kind == document.Null {
		return ""
	}
	var ids []string
	for _, name := range e.Texts(n) {
		id, ok := e.byName[name]
		if !ok {
			e.Add(n, "unknown target %q", name)
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

func (e *exporter) opening(n *document.Node) {
	to, actions := n, (*document.Node)(nil)
	if n.Kind == document.Mapping {
		to, actions = n.Field("target"), n.Field("actions")
	}
	e.start("transition", attribute{"target", e.targets(to)})
	e.actions(actions)
	e.end()
}

func (e *exporter) content(n *document.Node, name string) {
	afters := n.Field("after")
	e.handlers("onentry", n.Field("entry"), afters, name)
	e.handlers("onexit", n.Field("exit"), afters, name)
	for _, f := range n.Fields { // in document order: it decides which transition is first
		switch f.Key.Text {
		case "on":
			e.on(f.Value)
		case "after":
			computed := 0
			for _, f := range f.Value.Fields {
				e.transitions(f.Value, attribute{"event", afterEvent(f.Key.Text, name, &computed)}, attribute{"troupe:after", f.Key.Text})
			}
		case "invoke":
			e.invokes(f.Value, name)
		case "onDone":
			e.transitions(f.Value, attribute{"event", "done.state." + name}, attribute{"troupe:onDone", "true"})
		}
	}
	e.transitions(n.Field("always"))
	if states := n.Field("states"); states != nil {
		for _, f := range states.Fields {
			e.state(f)
		}
	}
}

func (e *exporter) on(n *document.Node) {
	for _, f := range n.Fields {
		e.transitions(f.Value, attribute{"event", f.Key.Text})
	}
	for _, item := range n.Items {
		e.transitions(item, attribute{"event", textOf(item.Field("event"))})
	}
}

func afterEvent(delay, state string, computed *int) string {
	if strings.HasPrefix(delay, "${") {
		delay = "computed"
		if *computed++; *computed > 1 {
			delay += strconv.Itoa(*computed)
		}
	}
	return "after." + delay + "." + state
}

// handlers writes entry or exit. Its lists inside are blocks of their own. Delays of the state begin and end here in SCXML.
func (e *exporter) handlers(element string, actions, afters *document.Node, name string) {
	blocks := []*document.Node{actions}
	if actions != nil && actions.Kind == document.Sequence && slices.ContainsFunc(actions.Items, func(n *document.Node) bool { return n.Kind == document.Sequence }) {
		blocks = actions.Items
	}
	for _, block := range blocks {
		if block == nil || block.Kind == document.Null || block.Kind == document.Sequence && len(block.Items) == 0 {
			continue
		}
		e.start(element)
		e.actions(block)
		e.end()
	}
	if afters == nil || len(afters.Fields) == 0 {
		return
	}
	e.start(element, attribute{"troupe:after", "true"})
	computed := 0
	for _, f := range afters.Fields {
		event := afterEvent(f.Key.Text, name, &computed)
		if element == "onexit" {
			e.start("cancel", attribute{"sendid", event})
		} else {
			e.start("send", attribute{"event", event}, attribute{"id", event})
			e.delay(f.Key)
		}
		e.end()
	}
	e.end()
}

func (e *exporter) delay(n *document.Node) {
	if strings.HasPrefix(n.Text, "${") {
		e.attribute("delayexpr", unwrap(n.Text))
		return
	}
	d, err := statemachine.ParseDelay(n.Text)
	if err != nil {
		e.Add(n, "%q: %v", n.Text, err)
		return
	}
	ms := d.Milliseconds()
	if ms%1000 == 0 {
		e.attribute("delay", strconv.FormatInt(ms/1000, 10)+"s")
		return
	}
	e.attribute("delay", strconv.FormatInt(ms, 10)+"ms")
}

func (e *exporter) transitions(n *document.Node, attributes ...attribute) {
	if n == nil {
		return
	}
	for _, item := range itemsOf(n) {
		e.transition(item, attributes)
	}
}

func (e *exporter) transition(n *document.Node, attributes []attribute) {
	to := n
	if n.Kind == document.Mapping {
		to = n.Field("target")
	}
	e.start("transition", attributes...)
	e.attribute("cond", e.condition(n.Field("guard")))
	target := e.targets(to)
	e.attribute("target", target)
	reenter := n.Field("reenter")
	again := reenter != nil && strings.EqualFold(reenter.Text, "true") || reenter == nil && e.semantics == "scxml"
	if !again && target != "" {
		e.attribute("type", "internal")
	}
	e.rest(n, func(key string) bool {
		return slices.Contains([]string{"event", "target", "guard", "actions", "reenter"}, key)
	})
	e.actions(n.Field("actions"))
	e.end()
}

func (e *exporter) invokes(n *document.Node, name string) {
	if n == nil {
		return
	}
	for number, item := range itemsOf(n) {
		e.invoke(item)
		for _, of := range []struct{ key, event string }{{"onDone", "done.invoke."}, {"onError", "error.invoke."}} {
			if v := item.Field(of.key); v != nil {
				e.transitions(v, attribute{"event", of.event + name}, attribute{"troupe:told", of.key + " " + strconv.Itoa(number)})
			}
		}
	}
}

func (e *exporter) invokeWorkflow(workflow string) {
	e.start("invoke", attribute{"type", "http://www.w3.org/TR/scxml/"})
	if strings.HasPrefix(workflow, "${") {
		e.attribute("srcexpr", unwrap(workflow))
	} else {
		e.attribute("src", workflow+".scxml")
	}
}

func (e *exporter) invoke(n *document.Node) {
	if job := n.Field("job"); job != nil {
		e.note(job, "a job is not part of SCXML: only troupe has it done")
		e.start("invoke", attribute{"type", "urn:troupe:job"})
	} else {
		e.invokeWorkflow(textOf(n.Field("workflow")))
	}
	e.attribute("id", textOf(n.Field("id")))
	e.attribute("idlocation", textOf(n.Field("idTo")))
	if forward := n.Field("autoforward"); forward != nil {
		e.attribute("autoforward", forward.Text)
	}
	whole := newMapping()
	for _, f := range n.Fields {
		if !slices.Contains([]string{"onDone", "onError", "finalize", "id", "idTo", "autoforward"}, f.Key.Text) {
			whole.set(f.Key.Text, f.Value)
		}
	}
	e.attribute("troupe:invoke", e.jsonOf(whole.Node))
	public := n.Field("data").Field("svcPublic")
	if public != nil && n.Field("job") == nil && public.Kind == document.Mapping {
		e.params(public)
	}
	e.params(n.Field("params"))
	if finalize := n.Field("finalize"); finalize != nil {
		e.start("finalize")
		e.actions(finalize)
		e.end()
	}
	e.end()
}
