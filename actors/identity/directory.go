// Package identity answers who sends a request and what that user may do at present. Roles and users are text:
// identity.yaml, read by ParseDirectory into a Directory that never changes. Tokens and sessions are random secrets
// that a Service hands out once and keeps as a SHA-256; passwords are kept as argon2id. Parse a directory, Start a
// service on the store, Authenticate every request, SetDirectory when the file changes, Stop before the store is
// closed. In a cluster each node has a [Replicated]: the node that leads the shard key.Meta runs a Service for its
// epoch, the others read rows. DESIGN.md, "Promises", says what callers can rely on.
//
// It knows nothing of cookies and headers: it takes the text of a credential. No secret and no password is in a stored
// byte, a log line or an error text.
package identity

import (
	_ "embed"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"unicode/utf8"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Role is a named set of privileges.
type Role struct {
	ID         RoleID
	Name       string
	Privileges []Privilege
}

// User is an entry of identity.yaml. Privileges are those beyond the roles'.
type User struct {
	ID         UserID
	Name       string
	Roles      []RoleID
	Privileges []Privilege
	Email      string // "": none
	Disabled   bool
}

// Directory is one version of identity.yaml. It never changes. The zero value has no roles and no users.
type Directory struct {
	roles      []Role
	users      []User
	roleByID   map[RoleID]Role
	principals map[UserID]*Principal // of enabled users
	names      map[UserID]string     // of all users
}

var knownPrivileges = []string{
	string(FormPortal), string(Form), string(Checklist), string(RepositoryAdmin),
	string(Workflows), string(Jobs), string(APITokens), string(Admin),
}

// Privileges returns all privileges that there are, in alphabetical order.
func Privileges() []Privilege {
	out := make([]Privilege, 0, len(knownPrivileges))
	for _, p := range knownPrivileges {
		out = append(out, Privilege(p))
	}
	slices.Sort(out)
	return out
}

// system is reserved: the history will show what the service does on its own under it. No user may have that name.
const system = "system"

// ParseDirectory reads identity.yaml (cmd/troupe/HOME.md, "identity.yaml"). It reports all faults at once, as
// document.Faults with file and line; then the directory is nil.
func ParseDirectory(file string, src []byte) (*Directory, error) {
	root, err := document.Parse(file, src)
	if err != nil {
		return nil, err
	}
	p := &directoryParser{
		Collector: &document.Collector{File: file},
		result:    &Directory{roleByID: map[RoleID]Role{}, principals: map[UserID]*Principal{}, names: map[UserID]string{}},
		seen:      map[UserID]bool{},
	}
	if root.Kind != document.Null {
		p.root(root)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.result, nil
}

// Roles returns the roles in the order of the file. The slice must not be changed.
func (d *Directory) Roles() []Role { return d.roles }

// Users returns all users in the order of the file, disabled ones included. The slice must not be changed.
func (d *Directory) Users() []User { return d.users }

// RoleIDs returns the ids of the roles in the order of the file, as a new slice.
func (d *Directory) RoleIDs() []RoleID {
	ids := make([]RoleID, len(d.roles))
	for i, r := range d.roles {
		ids[i] = r.ID
	}
	return ids
}

// HasRole reports whether there is such a role.
func (d *Directory) HasRole(id RoleID) bool {
	_, found := d.roleByID[id]
	return found
}

// Principal returns the user with the rights of this directory, nil when there is no such user or the user is disabled.
func (d *Directory) Principal(id UserID) *Principal { return d.principals[id] }

// Name is the name of a user for people; "" when there is no such user. Disabled ones have theirs.
func (d *Directory) Name(id UserID) string { return d.names[id] }

// Addresses returns the addresses of "user:LOGIN", and of "role:ROLE" those of all its users, in the order of the file.
// Disabled users, and those who have none, are left out.
func (d *Directory) Addresses(addressee string) (out []string) {
	login, isUser := strings.CutPrefix(addressee, "user:")
	role, isRole := strings.CutPrefix(addressee, "role:")
	for i := range d.users {
		u := &d.users[i]
		if u.Email != "" && !u.Disabled && (isUser && string(u.ID) == login || isRole && slices.Contains(u.Roles, RoleID(role))) {
			out = append(out, u.Email)
		}
	}
	return out
}

func (d *Directory) principal(u User) *Principal {
	roles, privileges := map[string]bool{}, map[string]bool{}
	for _, p := range u.Privileges {
		privileges[string(p)] = true
	}
	for _, id := range u.Roles {
		roles[string(id)] = true
		for _, p := range d.roleByID[id].Privileges {
			privileges[string(p)] = true
		}
	}
	return &Principal{
		ID: u.ID, Name: u.Name,
		Roles:      slices.Sorted(maps.Keys(roles)),
		Privileges: slices.Sorted(maps.Keys(privileges)),
	}
}

// withRoles returns a user with roles beyond the user's own, nil when there is no such user or the user is disabled.
func (d *Directory) withRoles(id UserID, roles []string) *Principal {
	p := d.Principal(id)
	if p == nil || len(roles) == 0 {
		return p
	}
	more := make([]RoleID, 0, len(roles))
	for _, role := range roles {
		more = append(more, RoleID(role))
	}
	return d.extend(p, more)
}

// extend returns the user with more roles. It ignores unknown roles. Without a new role it returns p itself.
func (d *Directory) extend(p *Principal, more []RoleID) *Principal {
	roles, privileges := slices.Clone(p.Roles), slices.Clone(p.Privileges)
	for _, id := range more {
		if role, known := d.roleByID[id]; known {
			roles = append(roles, string(id))
			privileges = append(privileges, texts(role.Privileges)...)
		}
	}
	sorted := func(list []string) []string {
		slices.Sort(list)
		return slices.Compact(list)
	}
	if roles = sorted(roles); len(roles) == len(p.Roles) {
		return p
	}
	return &Principal{ID: p.ID, Name: p.Name, Roles: roles, Privileges: sorted(privileges)}
}

var (
	directoryKeys = []string{"$schema", "roles", "users"}
	roleKeys      = []string{"id", "name", "privileges"}
	userKeys      = []string{"id", "name", "email", "roles", "privileges", "disabled"}
)

type directoryParser struct {
	*document.Collector
	result *Directory
	seen   map[UserID]bool
}

func (p *directoryParser) root(n *document.Node) {
	p.Known(n, directoryKeys...)
	for _, item := range p.entries(n.Field("roles")) {
		p.role(item)
	}
	for _, item := range p.entries(n.Field("users")) {
		p.user(item)
	}
}

func (p *directoryParser) entries(n *document.Node) []*document.Node {
	if n == nil || n.Kind == document.Null {
		return nil
	}
	if n.Kind != document.Sequence {
		p.Add(n, "must be a list")
		return nil
	}
	return n.Items
}

func (p *directoryParser) role(n *document.Node) {
	p.Known(n, roleKeys...)
	id, ok := p.id(n, "role")
	if !ok {
		return
	}
	r := Role{ID: RoleID(id), Name: p.name(n, id), Privileges: p.privileges(n.Field("privileges"))}
	if p.result.HasRole(r.ID) {
		p.Add(n.Field("id"), "role %q is there twice", id)
		return
	}
	p.result.roles = append(p.result.roles, r)
	p.result.roleByID[r.ID] = r
}

func (p *directoryParser) user(n *document.Node) {
	p.Known(n, userKeys...)
	id, ok := p.id(n, "user")
	if !ok {
		return
	}
	u := User{
		ID: UserID(id), Name: p.name(n, id),
		Roles:      p.roles(n.Field("roles")),
		Privileges: p.privileges(n.Field("privileges")),
		Email:      p.email(n.Field("email")),
		Disabled:   p.Bool(n.Field("disabled")),
	}
	switch {
	case id == system:
		p.Add(n.Field("id"), "user %q is reserved for the service itself", id)
		return
	case p.seen[u.ID]:
		p.Add(n.Field("id"), "user %q is there twice", id)
		return
	}
	p.seen[u.ID] = true
	p.result.users = append(p.result.users, u)
	p.result.names[u.ID] = u.Name
	if !u.Disabled {
		p.result.principals[u.ID] = p.result.principal(u)
	}
}

// id is false when the id is missing or invalid.
func (p *directoryParser) id(n *document.Node, what string) (string, bool) {
	field := n.Field("id")
	if field == nil {
		if n.Kind == document.Mapping {
			p.Add(n, "the %s has no id", what)
		}
		return "", false
	}
	id := p.Text(field)
	if field.Kind != document.String { // a fault already
		return "", false
	}
	if !statemachine.IsIdentifier(id) {
		p.Add(field, "%s cannot be the id of a %s", data.Quote(id), what).
			Suggestion = "1 to 128 of A-Z a-z 0-9 . _ ~ -, starting with a letter or digit"
		return "", false
	}
	return id, true
}

func (p *directoryParser) name(n *document.Node, id string) string {
	field := n.Field("name")
	if field == nil {
		return id
	}
	name := p.Text(field)
	if utf8.RuneCountInString(name) > nameCharsMax {
		p.Add(field, "the name has more than %d characters", nameCharsMax)
	}
	return name
}

const (
	nameCharsMax  = 200 // nameCharsMax bounds what a user or role is called: it is shown beside all that the user does
	emailBytesMax = 254 // the longest address that a mail can go to (RFC 5321, 4.5.3.1.3)
)

func (p *directoryParser) email(n *document.Node) string {
	if n == nil {
		return ""
	}
	text := p.Text(n)
	if a, err := mail.ParseAddress(text); n.Kind == document.String && (err != nil || a.Address != text || len(text) > emailBytesMax) {
		p.Add(n, "%s is not an address", data.Quote(text)).Suggestion = "one alone, such as john.doe@example.com"
	}
	return text
}

func (p *directoryParser) privileges(n *document.Node) []Privilege {
	var list []Privilege
	for _, item := range p.entries(n) {
		text := p.Text(item)
		switch {
		case item.Kind != document.String: // a fault already
		case slices.Contains(knownPrivileges, text):
			list = append(list, Privilege(text))
		default:
			p.unknown(item, "privilege", knownPrivileges)
		}
	}
	return list
}

func (p *directoryParser) roles(n *document.Node) []RoleID {
	var list []RoleID
	for _, item := range p.entries(n) {
		id := RoleID(p.Text(item))
		switch {
		case item.Kind != document.String: // a fault already
		case p.result.HasRole(id):
			list = append(list, id)
		default:
			p.unknown(item, "role", texts(p.result.RoleIDs()))
		}
	}
	return list
}

func (p *directoryParser) unknown(n *document.Node, what string, known []string) {
	p.Add(n, "unknown %s %s", what, data.Quote(n.Text)).Suggestion = document.DidYouMean(n.Text, known)
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

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
	Jobs            Privilege = "mod-jobs"
	APITokens       Privilege = "mod-api-tokens"
	Admin           Privilege = "mod-admin"
)

// Kind says with which kind of credential a request was signed.
type Kind uint8

const (
	Token Kind = 1 << iota
	Session
	passwords // the kind of the rows that hold passwords
	// Ending beside Session takes a session that was ended as well, as long as its end is not durable: anyone who signed
	// out may ask again.
	Ending
	// Certificate is that of the connection: it is authenticated where tokens are, and by the gateway alone.
	Certificate
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

// IsOperator reports whether the principal runs workflows or the service.
func (p *Principal) IsOperator() bool { return p.Has(Workflows) || p.Has(Admin) }

// fileSchema is held against ParseDirectory by tests, both ways.
//
//go:embed identity.schema.json
var fileSchema string

// FileSchema returns the JSON Schema 2020-12 of identity.yaml, for editors and other tools.
// Whatever it refuses, ParseDirectory refuses.
func FileSchema() string { return fileSchema }
