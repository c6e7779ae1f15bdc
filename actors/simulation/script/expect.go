package script

import (
	"cmp"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// shape says how what stands at a key of expect is read and compared.
type shape uint8

const (
	free    shape = iota // anything: data of the instance
	states               // a node for each state machine
	byUser               // for each user a list of events
	ofItems              // a list whose items have fields
)

// expectation is one key of expect. Of a list, fields are those of its items; a text stands for the first.
type expectation struct {
	key    string
	shape  shape
	fields []string
}

var expectations = []expectation{
	{key: "states", shape: states},
	{key: "svcPublic"},
	{key: "svcPrivate"},
	{key: "svcRedirect"},
	{key: "key"},
	{key: "title"},
	{key: "done"},
	{key: "cancelled"},
	{key: "tasks", shape: ofItems, fields: []string{"title", "description", "for", "due", "priority", "assignee", "form", "stateMachineId", "nodeId"}},
	{key: "timers", shape: ofItems, fields: []string{"event", "due", "stateMachineId", "nodeId"}},
	{key: "jobs", shape: ofItems, fields: []string{"job", "data", "priority", "attempts", "failed", "stateMachineId", "nodeId"}},
	{key: "children", shape: ofItems, fields: []string{"workflow", "status"}},
	{key: "incidents", shape: ofItems, fields: []string{"error", "event", "webhook", "job"}},
	{key: "events", shape: ofItems, fields: []string{"event", "user", "data"}},
	{key: "sent", shape: ofItems, fields: []string{"webhook", "body", "mail", "subject", "text"}},
	{key: "allowed", shape: byUser},
	{key: "refused", shape: byUser},
}

func expectationKeys() (keys []string) {
	for _, e := range expectations {
		keys = append(keys, e.key)
	}
	return keys
}

// expect checks what can be known of an expectation before the test runs. A nil definition has faults of its own.
func (p *parser) expect(n *document.Node, d *statemachine.Definition) {
	p.Known(n, expectationKeys()...)
	if n.Kind == document.Mapping && len(n.Fields) == 0 {
		p.Add(n, "expect is empty")
	}
	for _, e := range expectations {
		of := n.Field(e.key)
		if of == nil {
			continue
		}
		p.matchers(of)
		switch {
		case e.shape == states:
			p.states(of, d)
		case e.shape == byUser:
			p.byUser(of, d)
		case e.shape == ofItems && isMatcher(of):
		case e.shape == ofItems && of.Kind != document.Sequence:
			p.Advise(of, "[] is an empty list", "expected a list, found %s", of.Kind)
		case e.shape == ofItems:
			for _, item := range of.Items {
				if item.Kind == document.Mapping && !isMatcher(item) {
					p.Known(item, e.fields...)
				}
				if of := cmp.Or(item.Field("job"), item); e.key == "jobs" && of.Kind == document.String {
					p.jobType(of, of.Text, d)
				}
			}
		}
	}
}

func (p *parser) states(n *document.Node, d *statemachine.Definition) {
	if n.Kind != document.Mapping {
		p.Advise(n, "states: {MACHINE: NODE}", "expected a mapping, found %s", n.Kind)
		return
	}
	if d == nil {
		return
	}
	var regions []string
	for _, r := range d.Regions() {
		regions = append(regions, string(r.ID))
	}
	for _, f := range n.Fields {
		if isMatcher(n) && !slices.Contains(regions, f.Key.Text) {
			continue
		}
		if !slices.Contains(regions, f.Key.Text) {
			p.Suggest(f.Key, f.Key.Text, regions, "%s has no state machine %s", d.ID, data.Quote(f.Key.Text))
			continue
		}
		var nodes []string
		for _, leaf := range d.LeafNodes() {
			if string(leaf.Machine) == f.Key.Text {
				nodes = append(nodes, string(leaf.Node))
			}
		}
		if f.Value.Kind == document.String && !slices.Contains(nodes, f.Value.Text) {
			p.Suggest(f.Value, f.Value.Text, nodes, "%s has no state %s where an instance can be", f.Key.Text, data.Quote(f.Value.Text))
		}
	}
}

func (p *parser) byUser(n *document.Node, d *statemachine.Definition) {
	if n.Kind != document.Mapping {
		p.Advise(n, "{USER: [EVENT]}", "expected a mapping, found %s", n.Kind)
		return
	}
	for _, f := range n.Fields {
		p.user(f.Key)
		if f.Value.Kind != document.Sequence {
			p.Advise(f.Value, "[EVENT]", "expected a list of events, found %s", f.Value.Kind)
		}
		for _, item := range f.Value.Items {
			if p.Text(item) != "" {
				p.event(item, d)
			}
		}
	}
}

// matchers checks what matchers are given, wherever they stand.
func (p *parser) matchers(n *document.Node) {
	if isMatcher(n) {
		for _, f := range n.Fields {
			switch f.Key.Text {
			case matches:
				p.pattern(f.Value)
			case absent:
				p.Bool(f.Value)
			case oneOf:
				if f.Value.Kind != document.Sequence {
					p.Add(f.Value, "oneOf expects a list, found %s", f.Value.Kind)
				}
			}
		}
	}
	if len(n.Fields) == 1 { // NB: data can have any keys, but hardly one of these alone
		key := n.Fields[0].Key
		for _, m := range matchers {
			if key.Text != m && (strings.EqualFold(key.Text, m) || key.Text+"s" == m || key.Text+"es" == m) {
				p.Suggest(key, key.Text, matchers, "there is no matcher %s", data.Quote(key.Text))
			}
		}
	}
	for _, f := range n.Fields {
		p.matchers(f.Value)
	}
	for _, item := range n.Items {
		p.matchers(item)
	}
}

// expected compares what a step expects with what there is. view is what the instance shows, by the keys of expect.
func (c *comparison) expected(n *document.Node, view map[string]data.Value) {
	for _, e := range expectations {
		of := n.Field(e.key)
		switch {
		case of == nil:
		case e.shape == byUser:
			c.byUser(e.key, of, view[e.key])
		case e.shape == ofItems:
			c.items(e.key, of, view[e.key])
		default:
			c.value(e.key, of, view[e.key])
		}
	}
}

// byUser wants each of the events it lists among those of the view.
func (c *comparison) byUser(key string, want *document.Node, got data.Value) {
	for _, f := range want.Fields {
		events, _ := got.Lookup(f.Key.Text)
		for _, item := range f.Value.Items {
			isThere := false
			for _, e := range events.Elements() {
				isThere = isThere || e.TextIs(item.Text)
			}
			if isThere != (key == "allowed") {
				found := map[bool]string{true: "allowed", false: "refused"}[isThere]
				c.differ(item, key+"."+f.Key.Text, item.Text+" to be "+key, "it is "+found+"; allowed: "+shown(events))
			}
		}
	}
}
