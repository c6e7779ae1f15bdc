package chart

import (
	"slices"
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
