package identity

import "slices"

// UserID is a user's login name, for example "john.doe". It is what svcHistory and Form.by show.
type UserID string

// RoleID names a role of identity.yaml.
type RoleID string

// Privilege is one of the rights that the interface names.
type Privilege string

const (
	FormPortal      Privilege = "mod-form-portal"
	Form            Privilege = "mod-form"
	Checklist       Privilege = "mod-checklist"
	RepositoryAdmin Privilege = "mod-repository-admin"
	Workflows       Privilege = "mod-workflows"
	APITokens       Privilege = "mod-api-tokens"
	Admin           Privilege = "mod-admin"
)

// Kind says with which kind of credential a request was signed.
type Kind uint8

const (
	Token Kind = 1 << iota
	Session
	passwords // the kind of the rows that hold passwords
	// Ending beside Session takes a session that was ended as well, as long as its end is not durable: whoever signed
	// out may ask again.
	Ending
)

// Principal is a signed-in user with what the user may do at present.
type Principal struct {
	ID         UserID
	Name       string
	Roles      []string // sorted role ids
	Privileges []string // sorted; those of the roles and the user's own
}

// Has reports whether the principal holds the privilege.
func (p *Principal) Has(want Privilege) bool {
	_, found := slices.BinarySearch(p.Privileges, string(want))
	return found
}
