package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/schema"
)

// warnOfReaders tells who may create instances and cannot read them. Of a rule, its lists and its condition
// must both hold: with read: {roles: [manager], when: …} nobody else reads, whatever the condition says.
func (c *Checker) warnOfReaders(w *document.Collector) {
	create, read := c.Definition.CreateRule, c.Definition.ReadRule
	if read == nil || len(read.Roles)+len(read.Privileges)+len(read.Users) == 0 {
		return
	}
	var who []string
	missing := func(what string, have, wanted []string) {
		for _, name := range have {
			if !slices.Contains(wanted, name) {
				who = append(who, what+" "+data.Quote(data.Shorten(name)))
			}
		}
	}
	if create == nil || len(create.Roles)+len(create.Privileges)+len(create.Users) == 0 {
		if create != nil && create.When != nil {
			return // whom a condition means is not known here: "manager" in user.roles is the same as the list
		}
		who = []string{"everybody else"}
	} else {
		missing("the role", create.Roles, read.Roles)
		missing("the privilege", create.Privileges, read.Privileges)
		missing("the user", create.Users, read.Users)
	}
	if len(who) == 0 {
		return
	}
	f := w.Add(c.ReadAt, "%s may create instances and cannot read them", strings.Join(who, ", "))
	f.Suggestion = "name them here too"
	if read.When != nil {
		f.Suggestion = "the lists and when must both hold: give when alone, with \"manager\" in user.roles || … inside"
	}
}

// warnOfUnset tells members of the data that expressions read and nothing sets: neither this file nor, as far as it
// says what may come in, no matter who creates an instance or sends an event. Where anything may come in, only a name that
// is close to another one is reported.
func (c *Checker) warnOfUnset(w *document.Collector) {
	if c.IsSCXML() {
		return
	}
	of := [...]*members{c.membersOf("svcPublic"), c.membersOf("svcPrivate")}
	type place struct {
		line, column int
		path         string
	}
	reported := map[place]bool{}
	compared := 0
	for _, p := range c.Programs {
		if w.IsFull() {
			return
		}
		private, _ := p.Program.PrivateMembers()
		for i, read := range [][]string{p.Program.PublicMembers(), private} {
			for _, name := range read {
				m := of[i]
				at := place{p.At.Line, p.At.Column, m.root + "." + name}
				near := ""
				if m.whole || slices.Contains(m.names, name) || reported[at] {
					continue
				}
				if compared++; compared <= maxNamesCompared {
					near = document.Closest(name, m.names)
				}
				if near == "" && m.comesIn(name) {
					continue
				}
				reported[at] = true
				f := w.Add(p.At, "%s is read, and nothing sets it", data.Shorten(at.path))
				if near != "" {
					f.Suggestion = fmt.Sprintf("did you mean %q?", m.root+"."+near)
				}
			}
		}
	}
}

// warnOfEventData tells members of event.data that a guard reads and that the event's schema does not have: an event with a
// guard that cannot be evaluated is an error for its sender. Where the schema takes other members, only a name that is close
// to one of its own is reported.
func (c *Checker) warnOfEventData(w *document.Collector) {
	at := map[*expr.Program]*document.Node{}
	for _, g := range c.Programs {
		at[g.Program] = g.At
	}
	type slip struct {
		guard *document.Node
		event chart.EventName
		name  string
	}
	reported := map[slip]bool{}
	for _, n := range c.Definition.Nodes {
		for _, t := range n.On {
			e := c.Definition.Events[t.Event.Name]
			if t.Guard == nil || t.Event.Prefix || e == nil || e.Schema == nil || at[t.Guard] == nil {
				continue
			}
			shape := e.Schema.Shape()
			for _, name := range t.Guard.EventMembers() {
				s := slip{at[t.Guard], t.Event.Name, name}
				if shape.Mentions(name) || reported[s] || len(reported) >= maxNamesCompared {
					continue
				}
				near := document.Closest(name, shape.Fields())
				if near == "" && !e.Schema.Refuses(name) {
					continue
				}
				reported[s] = true
				f := w.Add(s.guard, "event.data.%s is read, and the data of event %s has no such member", data.Shorten(name), data.Quote(data.Shorten(string(s.event))))
				if near != "" {
					f.Suggestion = fmt.Sprintf("did you mean %q?", "event.data."+near)
				}
			}
		}
	}
}

// maxNamesCompared is how many names that nothing sets are held against all others.
const maxNamesCompared = 1_000

type members struct {
	root  string
	names []string
	whole bool                     // an action sets all of it
	doors []func(name string) bool // ways by which members come in from outside
}

func (m *members) comesIn(name string) bool {
	return slices.ContainsFunc(m.doors, func(door func(string) bool) bool { return door(name) })
}

// takes adds what a schema describes, and a door when it takes others; nil takes everything.
func (m *members) takes(s *schema.Schema) {
	m.names = append(m.names, s.Shape().Fields()...)
	m.doors = append(m.doors, func(name string) bool { return s == nil || !s.Refuses(name) })
}

func (c *Checker) membersOf(root string) *members {
	d := c.Definition
	m := &members{root: root}
	defaults, created, own := d.DefaultPublic, d.CreatePublic, d.PublicSchema
	if root == "svcPrivate" {
		defaults, created, own = d.DefaultPrivate, d.CreatePrivate, d.PrivateSchema
	}
	for name := range defaults.Members() {
		m.names = append(m.names, name)
	}
	m.names = append(m.names, own.Shape().Fields()...)
	m.takes(created)
	c.eventData(m)
	m.assigned(c.Tree)
	if schedules := c.Tree.Field("schedules"); schedules != nil {
		for _, f := range schedules.Fields {
			if created := f.Value.Field("create").Field(root); created != nil {
				for _, member := range created.Fields {
					m.names = append(m.names, member.Key.Text)
				}
			}
		}
	}
	return m
}

func (c *Checker) eventData(m *members) {
	for _, n := range c.Definition.Nodes {
		for _, t := range n.On {
			if t.OnDone != nil || t.After != nil || t.Child != nil {
				continue
			}
			c := c.Definition.Events[t.Event.Name]
			into, apply := t.Into, t.Apply
			var schema *schema.Schema
			private := false
			if c != nil {
				schema, private = c.Schema, c.Private
				if into == chart.NoDocument {
					into = c.Into
				}
				if apply == chart.ApplyUnset {
					apply = c.Apply
				}
			}
			switch {
			case apply == chart.ApplyNone:
			case into == chart.NoDocument && m.root == "svcPrivate":
				if private {
					m.doors = append(m.doors, func(string) bool { return true })
				}
			case into == chart.NoDocument || into.Name() == m.root:
				m.takes(schema)
			}
		}
	}
}

// assigned adds the members that actions set, wherever they stand: the keys of assign, and paths that other keys name.
func (m *members) assigned(n *document.Node) {
	if n == nil {
		return
	}
	note := func(text string) {
		if name, ok := strings.CutPrefix(text, m.root+"."); ok {
			name, _, _ = strings.Cut(name, ".")
			m.names = append(m.names, name)
		}
	}
	for _, f := range n.Fields {
		note(f.Key.Text)
		if f.Key.Text == "assign" && f.Value.Field(m.root) != nil {
			m.whole = true
		}
		if f.Key.Text == "idTo" {
			note(f.Value.Text)
		}
		m.assigned(f.Value)
	}
	for _, item := range n.Items {
		m.assigned(item)
	}
}

// warnOfPlainDelays tells timers whose data is said to be a text that is not a time.
func (c *Checker) warnOfPlainDelays(w *document.Collector) {
	for _, p := range c.Timed {
		root, names, ok := p.Program.PlainPath()
		if !ok || len(names) == 0 {
			continue
		}
		for _, s := range c.schemasOf(root) {
			format, text := s.TextFormat(names)
			path := data.Shorten(root + "." + strings.Join(names, "."))
			switch {
			case !text || format == "date-time" || format == "duration":
				continue
			case format == "date":
				w.Add(p.At, "the delay is %s, a date without a time", path).Suggestion = fmt.Sprintf(`'${%s + "T00:00:00Z"}'`, path)
			default:
				w.Add(p.At, "the delay is %s, which a schema calls a plain text", path).Suggestion = "format: date-time or duration in the schema, or a number of milliseconds"
			}
			break
		}
	}
	for _, p := range c.Timed {
		root, names, ok := p.Program.PlainPath()
		if !ok || len(names) != 1 {
			continue
		}
		defaults := c.Definition.DefaultPublic
		if root == "svcPrivate" {
			defaults = c.Definition.DefaultPrivate
		}
		if v, ok := defaults.Lookup(names[0]); ok && v.Kind() == data.String && v.Text() != "" && !isDelay(v.Text()) {
			w.Add(p.At, "the delay is %s, whose default %s is neither a time nor a duration", data.Shorten(root+"."+names[0]), data.Quote(data.Shorten(v.Text()))).
				Suggestion = "2026-12-24T18:00:00Z, P2D or a number of milliseconds"
		}
	}
}

func isDelay(text string) bool {
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return true
	}
	_, err := chart.ParseDelay(text)
	return err == nil
}

func (c *Checker) schemasOf(root string) []*schema.Schema {
	d := c.Definition
	var schemas []*schema.Schema
	switch root {
	case "svcPublic":
		schemas = append(schemas, d.PublicSchema, d.CreatePublic)
	case "svcPrivate":
		schemas = append(schemas, d.PrivateSchema, d.CreatePrivate)
	default:
		return nil
	}
	for _, c := range d.Events {
		if c.Into == chart.NoDocument && root == "svcPublic" || c.Into.Name() == root {
			schemas = append(schemas, c.Schema)
		}
	}
	return slices.DeleteFunc(schemas, func(s *schema.Schema) bool { return s == nil })
}

// warnOfJobs tells types of jobs that no state has done.
func (c *Checker) warnOfJobs(w *document.Collector) {
	used := map[string]bool{}
	for _, n := range c.Definition.Nodes {
		for _, inv := range n.Invoke {
			if inv.Job != nil {
				used[inv.Job.Type] = true
			}
		}
	}
	for _, t := range c.Definition.JobTypes() {
		if !used[t.Name] {
			w.Add(at(t.Line), "no state has a job of the type %s", data.Quote(t.Name))
		}
	}
}

// warnOfSameState tells transitions that take the end of a child or a job to its own state, which they do not leave: it does not begin again.
func (c *Checker) warnOfSameState(w *document.Collector) {
	for _, n := range c.Definition.Nodes {
		if n.Kind != chart.Atomic || len(n.Invoke) == 0 || c.IsSCXML() {
			continue
		}
		for t := range n.TransitionsOf() {
			if t.Child == nil || t.Reenter || !slices.Contains(t.Targets, n) {
				continue
			}
			what := "child"
			if t.Child.Invoke.Job != nil {
				what = "job"
			}
			w.Add(at(t.Line), "the transition stays in %s, and its %s does not begin again", data.Quote(string(n.ID)), what).Suggestion = "reenter: true"
		}
	}
}

// warnOfKeywords tells those of all schemas that the file writes.
func (c *Checker) warnOfKeywords(w *document.Collector) {
	for _, n := range c.SchemaNodes {
		schema.WarnOfKeywords(w, n)
	}
}
