package api

// AuditRow is a row of the audit log (gateway/INTERFACE.md, "The audit log").
type AuditRow struct {
	TS     string `json:"ts"`
	Actor  string `json:"actor"`
	Action string `json:"action"`
	Target string `json:"target"`
	Count  uint64 `json:"count,omitempty"` // of how many it tells, if not of one action
	Hash   string `json:"hash"`
	Prev   string `json:"prev"`
}

// AuditPage answers GET audit.
type AuditPage struct {
	Audit []AuditRow `json:"audit"`
	// Next is After of the next request; nil at the end of a list that begins with the newest.
	Next *string `json:"next"`
}

// AuditChain answers GET audit/verify.
type AuditChain struct {
	Rows   uint64  `json:"rows"` // that are whole
	Head   string  `json:"head"` // hash of the last of them
	Broken *string `json:"broken"`
}

// User is a user of identity.yaml, with all that the user's roles give.
type User struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Email      string      `json:"email,omitempty"`
	Disabled   bool        `json:"disabled"`
	Roles      []string    `json:"roles"`
	Privileges []Privilege `json:"privileges"`
}

// Privilege is one that a user has, and why.
type Privilege struct {
	ID   string   `json:"id"`
	From []string `json:"from"` // "role:ROLE", and "user" for the user's own entry
}

// UserList answers GET users.
type UserList struct {
	Users []User  `json:"users"`
	Next  *string `json:"next"`
}

// UserRole is a role of identity.yaml.
type UserRole struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Privileges []string `json:"privileges"`
	Users      []string `json:"users"` // the enabled ones that have it there
}

// RoleList answers GET roles.
type RoleList struct {
	Roles []UserRole `json:"roles"`
}

// Permission answers GET users/{id}/can.
type Permission struct {
	Allowed bool     `json:"allowed"`
	Why     []string `json:"why"` // sentences for people
}

// Credential is a token or a session, without its secret.
type Credential struct {
	ID       string  `json:"id"`
	User     string  `json:"user"`
	Note     string  `json:"note"`
	Created  string  `json:"created"`
	Expires  *string `json:"expires"`  // nil: never
	LastUsed *string `json:"lastUsed"` // nil: never; up to a minute old
	Revoked  *string `json:"revoked"`  // nil: it was not
}

// TokenList answers GET tokens.
type TokenList struct {
	Tokens []Credential `json:"tokens"`
	Next   *string      `json:"next"`
}

// SessionList answers GET sessions.
type SessionList struct {
	Sessions []Credential `json:"sessions"`
	Next     *string      `json:"next"`
}

// CreatedToken answers POST tokens.
type CreatedToken struct {
	Token string `json:"token"` // it is never shown again
	Credential
}
