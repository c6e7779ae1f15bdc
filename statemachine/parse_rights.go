package statemachine

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// allow reads the workflow's own allow block.
func (b *builder) allow(n *document.Node) {
	if !b.known(n, rightKeys) {
		return
	}
	b.d.CreateRule = b.rule(n.Field("create"))
	b.readAt = n.Field("read")
	b.d.ReadRule = b.rule(b.readAt)
	b.d.SendRule = b.rule(n.Field("send"))
	b.invokersOf(n.Field("invoke"))
}

// rule reads one allow rule; nil when there is none.
func (b *builder) rule(n *document.Node) *chart.Rule {
	if !b.known(n, ruleKeys) {
		return nil
	}
	r := &chart.Rule{
		Roles:      b.names(n.Field("roles"), "role", b.parser.options.HasRole, b.parser.options.Roles),
		Privileges: b.names(n.Field("privileges"), "privilege", b.parser.options.HasPrivilege, b.parser.options.Privileges),
		Users:      b.Texts(n.Field("users")),
		Deny:       b.rule(n.Field("deny")),
	}
	if w := n.Field("when"); w != nil {
		r.When = b.guard(w)
	}
	if r.When != nil {
		for _, variable := range []string{"svcPublic", "svcPrivate", "instance", "event"} {
			r.PerInstance = r.PerInstance || r.When.Reads(variable)
		}
	}
	if empty := len(r.Roles)+len(r.Privileges)+len(r.Users) == 0; empty && n.Field("when") == nil && n.Field("deny") == nil {
		b.Add(n, "the rule says nothing: give roles, privileges, users, when or deny")
	}
	return r
}

func (b *builder) names(n *document.Node, what string, has func(string) bool, all []string) []string {
	if n == nil {
		return nil
	}
	names := b.Texts(n)
	if len(names) == 0 {
		b.Add(n, "the list of %ss is empty", what)
	}
	if has != nil {
		for _, name := range names {
			if !has(name) {
				b.suggest(n, name, all, "unknown %s %q", what, data.Shorten(name))
				b.harmless++
			}
		}
	}
	return names
}
