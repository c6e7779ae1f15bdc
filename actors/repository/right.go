package repository

import (
	"slices"

	"troupe/actors/identity"
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
}

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
