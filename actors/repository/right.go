package repository

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"troupe/actors/identity"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Folders with rights of their own unless rights.yaml says otherwise: everybody reads TempFolder, and below UserFolder
// each user reads the own folder (cmd/troupe/HOME.md, "rights.yaml").
const (
	UserFolder = "User"
	TempFolder = "Temp"
)

// Rights says who reads what. It never changes.
//
// An entry at or above a path that is nearer than all others decides alone. The entries of rights.yaml stand beside
// those that are always there:
//
//	/              nobody
//	/User, /Temp   everyone
//	/User/LOGIN    the user LOGIN
//
// One of rights.yaml replaces the one of the same path. Holders of mod-repository-admin read everything.
type Rights struct {
	top    scope
	closed bool
	isUser func(identity.UserID) bool // isUser tells a user's name from others directly in UserFolder; nil: none is
	len    int
	// warnings are what the author should look at although it is allowed.
	warnings document.Faults
}

// Warnings are what the author of the file should look at although it is allowed.
func (r *Rights) Warnings() document.Faults { return r.warnings }

// scope is a path with an entry, or with entries below.
type scope struct {
	readers  *subjects // nil: no entry
	children map[string]*scope
}

type subjects struct {
	everyone bool
	users    []identity.UserID
	roles    []string
}

func (s *subjects) have(caller *identity.Principal) bool {
	return s.everyone || slices.Contains(s.users, caller.ID) ||
		slices.ContainsFunc(s.roles, func(role string) bool { return slices.Contains(caller.Roles, role) })
}

// Closed returns rights by which only holders of mod-repository-admin read anything: for a start without a rights.yaml
// that could be understood.
func Closed() *Rights { return &Rights{closed: true} }

// Len is the number of entries in rights.yaml.
func (r *Rights) Len() int { return r.len }

// Reads reports whether a caller reads the file of a canonical path. Whether there is such a file does not matter.
func (r *Rights) Reads(caller *identity.Principal, file string) bool {
	v := r.view(caller)
	left := depth(file)
	for name := range Names(file) {
		left--
		if left > 0 {
			v = v.enter(name, isFolder)
		} else {
			v = v.enter(name, isFile)
		}
	}
	return v.readable
}

type kind uint8

const (
	isFile kind = iota
	isFolder
)

type zone uint8

const (
	elsewhere zone = iota
	atTop
	inUserFolder
)

type view struct {
	rights   *Rights
	caller   *identity.Principal
	scope    *scope // nil: no entry here or below
	zone     zone
	readable bool // what the nearest entry at or above says
}

func (r *Rights) view(caller *identity.Principal) view {
	switch {
	case caller.Has(identity.RepositoryAdmin):
		return view{readable: true}
	case r.closed:
		return view{}
	}
	v := view{rights: r, caller: caller, scope: &r.top, zone: atTop}
	if r.top.readers != nil {
		v.readable = r.top.readers.have(caller)
	}
	return v
}

func (v *view) settled() bool { return v.scope == nil && v.zone == elsewhere }

// enter goes to what has the name at this place.
func (v *view) enter(name string, kind kind) view {
	if v.settled() {
		return *v
	}
	next := view{rights: v.rights, caller: v.caller, readable: v.readable}
	switch {
	case v.zone == atTop && name == UserFolder:
		next.zone, next.readable = inUserFolder, true
	case v.zone == atTop && name == TempFolder:
		next.readable = true
	// NB: a folder there is a user's even when there is no such user any more; otherwise it would be everyone's the
	// moment the user is deleted.
	case v.zone == inUserFolder && (kind == isFolder || v.rights.isUser != nil && v.rights.isUser(identity.UserID(name))):
		next.readable = string(v.caller.ID) == name
	}
	if v.scope != nil {
		next.scope = v.scope.children[name]
	}
	if next.scope != nil && next.scope.readers != nil {
		next.readable = next.scope.readers.have(v.caller)
	}
	return next
}

// rightsFolderMax bounds how deep the path of an entry is.
const rightsFolderMax = 1024

const everyone = "*"

var entryKeys = []string{"path", "readers", "writers"}

const (
	rolePrefix = "role:"
	userPrefix = "user:"
)

// ParseRights reads rights.yaml (cmd/troupe/HOME.md, "rights.yaml"). It reports all faults at once, as document.Faults
// with file and line; then the rights are nil. A nil directory means that its own faults are reported already: then
// every name passes.
func ParseRights(file string, src []byte, directory *identity.Directory) (*Rights, error) {
	root, err := document.Parse(file, src)
	if err != nil {
		return nil, err
	}
	p := &rightsParser{
		Collector: &document.Collector{File: file},
		directory: directory,
		result:    &Rights{isUser: func(identity.UserID) bool { return false }},
		lines:     map[string]int{},
	}
	if directory != nil {
		for _, u := range directory.Users() {
			p.users = append(p.users, string(u.ID))
		}
		slices.Sort(p.users)
		p.result.isUser = func(id identity.UserID) bool {
			_, found := slices.BinarySearch(p.users, string(id))
			return found
		}
	}
	switch root.Kind {
	case document.Null:
	case document.Sequence:
		for _, item := range root.Items {
			p.entry(item)
		}
	default:
		p.Add(root, "expected a list of entries, found %s", root.Kind)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.result, nil
}

type rightsParser struct {
	*document.Collector
	directory *identity.Directory
	users     []string // sorted
	result    *Rights
	lines     map[string]int // of the paths so far
}

// Who may write is checked, but not kept: nothing writes through the service, and a warning says so.
func (p *rightsParser) entry(n *document.Node) {
	p.Known(n, entryKeys...)
	if n.Kind != document.Mapping { // a fault already
		return
	}
	at, ok := p.path(n)
	readers := p.subjects(n.Field("readers"))
	if writers := n.Field("writers"); writers != nil {
		p.subjects(writers)
		p.result.warnings = append(p.result.warnings, document.Fault{
			File: p.File, Line: writers.Line, Reason: "writers has no effect: nothing is written through the service",
			Suggestion: "remove it, and let people write in the folder or the bucket itself",
		})
	}
	if len(n.Fields) == 1 && ok { // an unknown key is a fault of its own
		p.Add(n, "the entry names neither readers nor writers").Suggestion = "readers: [] is nobody"
	}
	if !ok {
		return
	}
	if line, twice := p.lines[at]; twice {
		p.Add(n.Field("path"), "line %d has an entry for %s as well", line, data.Quote(at))
		return
	}
	p.lines[at] = n.Line
	s := &p.result.top
	for name := range Names(at) {
		if s.children == nil {
			s.children = map[string]*scope{}
		}
		if s.children[name] == nil {
			s.children[name] = &scope{}
		}
		s = s.children[name]
	}
	s.readers = readers
	p.result.len++
}

func (p *rightsParser) path(n *document.Node) (string, bool) {
	field := n.Field("path")
	if field == nil {
		p.Add(n, "the entry has no path")
		return "", false
	}
	text := p.Text(field)
	if field.Kind != document.String { // a fault already
		return "", false
	}
	if depth(text) > rightsFolderMax {
		p.Add(field, "%s is deeper than %d folders", data.Quote(text), rightsFolderMax)
		return "", false
	}
	if !IsPath(text) {
		f := p.Add(field, "%s is not a path of the repository", data.Quote(text))
		f.Suggestion = "it begins with / and has no empty names, no . and .., and no slash at its end"
		if near := path.Clean("/" + text); isText(text) && text != "" {
			f.Suggestion = "did you mean " + data.Quote(near) + "?"
		}
		return "", false
	}
	return text, true
}

func (p *rightsParser) subjects(n *document.Node) *subjects {
	list := &subjects{}
	if n == nil {
		return list
	}
	items := n.Items
	switch n.Kind {
	case document.String:
		items = []*document.Node{n}
	case document.Sequence, document.Null:
	default:
		p.Add(n, "expected a list, found %s", n.Kind)
		return list
	}
	seen := map[string]bool{}
	for _, item := range items {
		text := p.Text(item)
		if item.Kind != document.String { // a fault already
			continue
		}
		if seen[text] {
			p.Add(item, "%s is there twice", data.Quote(text))
			continue
		}
		seen[text] = true
		p.subject(list, item, text)
	}
	return list
}

func (p *rightsParser) subject(list *subjects, n *document.Node, text string) {
	role, isRole := strings.CutPrefix(text, rolePrefix)
	user, isUser := strings.CutPrefix(text, userPrefix)
	switch {
	case text == everyone:
		list.everyone = true
	case isRole:
		list.roles = append(list.roles, role)
		if p.directory != nil && !p.directory.HasRole(identity.RoleID(role)) {
			p.unknown(n, "role", rolePrefix, role, roleNames(p.directory))
		}
	case isUser:
		list.users = append(list.users, identity.UserID(user))
		if _, found := slices.BinarySearch(p.users, user); p.directory != nil && !found {
			p.unknown(n, "user", userPrefix, user, p.users)
		}
	default:
		f := p.Add(n, "%s is neither a role nor a user", data.Quote(text))
		f.Suggestion = `"*", role:ID or user:ID`
		if p.directory == nil {
			return
		}
		if p.directory.HasRole(identity.RoleID(text)) {
			f.Suggestion = "did you mean " + data.Quote(rolePrefix+text) + "?"
		} else if _, found := slices.BinarySearch(p.users, text); found {
			f.Suggestion = "did you mean " + data.Quote(userPrefix+text) + "?"
		}
	}
}

func (p *rightsParser) unknown(n *document.Node, what, prefix, id string, known []string) {
	f := p.Add(n, "unknown %s %s", what, data.Quote(id))
	if near := document.Closest(id, known); near != "" {
		f.Suggestion = fmt.Sprintf("did you mean %q?", prefix+near)
	}
}

func roleNames(directory *identity.Directory) []string {
	var names []string
	for _, id := range directory.RoleIDs() {
		names = append(names, string(id))
	}
	return names
}
