package statemachine

import (
	"cmp"
	"slices"

	"troupe/statemachine/document"
)

// Owners are who may publish the next version of a workflow (statemachine/DEFINITION.md, "Owners"): any of the lists.
// Its JSON is part of the on-disk format.
type Owners struct {
	Roles      []string `json:"roles,omitempty"`
	Privileges []string `json:"privileges,omitempty"`
	Users      []string `json:"users,omitempty"`
}

// Has reports whether the caller is an owner; nil has none.
func (o *Owners) Has(c *Caller) bool {
	return o != nil && (slices.Contains(o.Users, c.ID) || anyOf(o.Roles, c.Roles) || anyOf(o.Privileges, c.Privileges))
}

// Equal reports whether two name the same, in the same order.
func (o *Owners) Equal(other *Owners) bool {
	if o == nil || other == nil {
		return o == other
	}
	return slices.Equal(o.Roles, other.Roles) && slices.Equal(o.Privileges, other.Privileges) && slices.Equal(o.Users, other.Users)
}

// Owners are those that the definition names; nil: it names none, and whoever published the workflow first is its owner.
func (d *Definition) Owners() *Owners { return d.owners }

// AccessLine is the line of the first key that says who may publish or invoke the workflow; 0 when none does. Programs of
// before 2026-11-28 do not know it.
func (d *Definition) AccessLine() int { return d.accessLine }

// ownersOf reads owners.
func (b *builder) ownersOf(n *document.Node) {
	if !b.known(n, ownersKeys) {
		return
	}
	b.d.accessLine = cmp.Or(b.d.accessLine, n.Line)
	o := &Owners{
		Roles:      b.names(n.Field("roles"), "role", b.parser.options.HasRole, b.parser.options.Roles),
		Privileges: b.names(n.Field("privileges"), "privilege", b.parser.options.HasPrivilege, b.parser.options.Privileges),
		Users:      b.Texts(n.Field("users")),
	}
	if len(o.Roles)+len(o.Privileges)+len(o.Users) == 0 {
		b.Add(n, "nobody would own the workflow: give roles, privileges or users")
	}
	b.d.owners = o
}
