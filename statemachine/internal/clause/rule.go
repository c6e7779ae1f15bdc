package clause

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

func (b *Reader) invokersOf(n *document.Node) {
	if !b.Mapping(n, InvokerKeys) {
		return
	}
	b.Definition.Invokers = b.Texts(n.Field("workflows"))
	for _, id := range b.Definition.Invokers {
		if !chart.IsIdentifier(id) {
			b.Add(n.Field("workflows"), "%q cannot be the id of a workflow", data.Shorten(id))
		}
	}
	if len(b.Definition.Invokers) == 0 {
		b.Add(n, "no workflow is named: give workflows")
	}
}

// OwnersOf reads owners.
func (b *Reader) OwnersOf(n *document.Node) {
	if !b.Mapping(n, OwnersKeys) {
		return
	}
	o := &chart.Owners{
		Roles:      b.names(n.Field("roles"), "role", b.Options.HasRole, b.Options.Roles),
		Privileges: b.names(n.Field("privileges"), "privilege", b.Options.HasPrivilege, b.Options.Privileges),
		Users:      b.Texts(n.Field("users")),
	}
	if len(o.Roles)+len(o.Privileges)+len(o.Users) == 0 {
		b.Add(n, "nobody would own the workflow: give roles, privileges or users")
	}
	b.Definition.Owners = o
}

// Allow reads the workflow's own allow block.
func (b *Reader) Allow(n *document.Node) {
	if !b.Mapping(n, RightKeys) {
		return
	}
	b.Definition.CreateRule = b.Rule(n.Field("create"))
	b.ReadAt = n.Field("read")
	b.Definition.ReadRule = b.Rule(b.ReadAt)
	b.Definition.SendRule = b.Rule(n.Field("send"))
	b.invokersOf(n.Field("invoke"))
}

// Rule reads one allow rule; nil when there is none.
func (b *Reader) Rule(n *document.Node) *chart.Rule {
	if !b.Mapping(n, RuleKeys) {
		return nil
	}
	r := &chart.Rule{
		Roles:      b.names(n.Field("roles"), "role", b.Options.HasRole, b.Options.Roles),
		Privileges: b.names(n.Field("privileges"), "privilege", b.Options.HasPrivilege, b.Options.Privileges),
		Users:      b.Texts(n.Field("users")),
		Deny:       b.Rule(n.Field("deny")),
	}
	if w := n.Field("when"); w != nil {
		reads := b.Definition.ReadsUser
		r.When = b.Guard(w)
		b.Definition.ReadsUser = reads // rights are asked once
	}
	if r.When != nil {
		for _, variable := range []string{"svcPublic", "svcPrivate", "instance", "parent", "event"} {
			r.PerInstance = r.PerInstance || r.When.Reads(variable)
		}
	}
	if empty := len(r.Roles)+len(r.Privileges)+len(r.Users) == 0; empty && n.Field("when") == nil && n.Field("deny") == nil {
		b.Add(n, "the rule is empty: give roles, privileges, users, when or deny")
	}
	return r
}

func (b *Reader) names(n *document.Node, what string, has func(string) bool, all []string) []string {
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
				b.Suggest(n, name, all, "unknown %s %q", what, data.Shorten(name))
				b.Harmless++
			}
		}
	}
	return names
}
