package statemachine

import (
	"troupe/statemachine/document"
)

// ownersOf reads owners.
func (b *builder) ownersOf(n *document.Node) {
	if !b.known(n, ownersKeys) {
		return
	}
	o := &Owners{
		Roles:      b.names(n.Field("roles"), "role", b.parser.options.HasRole, b.parser.options.Roles),
		Privileges: b.names(n.Field("privileges"), "privilege", b.parser.options.HasPrivilege, b.parser.options.Privileges),
		Users:      b.Texts(n.Field("users")),
	}
	if len(o.Roles)+len(o.Privileges)+len(o.Users) == 0 {
		b.Add(n, "nobody would own the workflow: give roles, privileges or users")
	}
	b.d.Owners = o
}
