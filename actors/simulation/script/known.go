package script

import (
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/simulation"
	"troupe/statemachine"
)

// Known is the home of the tests: what they may name, and what they run against.
type Known struct {
	directory   *identity.Directory
	newest      map[string]*statemachine.Definition
	definitions []*statemachine.Definition
	published   func(workflow string, version uint64) (*statemachine.Definition, error) // what there is beside; nil: nothing
}

// NewPublished returns what a service knows: its users, the versions of workflows that find returns (0 is the newest), and own, a definition
// that is the newest of its workflow here, or nil. It is for an author who may name every user, but is not told who there is: a name that
// is none is not answered with others, and one who is disabled is none.
func NewPublished(directory *identity.Directory, find func(workflow string, version uint64) (*statemachine.Definition, error), own *statemachine.Definition) *Known {
	var definitions []*statemachine.Definition
	if own != nil {
		definitions = append(definitions, own)
	}
	k := NewKnown(directory, definitions)
	k.published = find
	return k
}

// NewKnown returns a home with these users and these versions of workflows.
func NewKnown(directory *identity.Directory, definitions []*statemachine.Definition) *Known {
	k := &Known{directory: directory, newest: map[string]*statemachine.Definition{}, definitions: definitions}
	for _, d := range definitions {
		if before := k.newest[string(d.ID)]; before == nil || before.Version < d.Version {
			k.newest[string(d.ID)] = d
		}
	}
	return k
}

// World returns an empty world that begins at a time. With covers it notes what its instances reach.
func (k *Known) World(now time.Time, covers bool) *simulation.World {
	return simulation.New(k.options(now, covers))
}

func (k *Known) options(now time.Time, covers bool) simulation.Options {
	return simulation.Options{Definitions: k.definition, User: k.user, Now: now, Covers: covers}
}

func (k *Known) definition(workflow string, version uint64) (*statemachine.Definition, error) {
	if d := k.newest[workflow]; d != nil && version == 0 {
		return d, nil
	}
	for _, d := range k.definitions {
		if string(d.ID) == workflow && d.Version == version {
			return d, nil
		}
	}
	if k.published != nil {
		return k.published(workflow, version)
	}
	return nil, failure.Refuse(failure.ErrNotFound, "the home has no workflow %s with that version", workflow)
}

// current is the newest version of a workflow; nil: there is none.
func (k *Known) current(workflow string) *statemachine.Definition {
	d, err := k.definition(workflow, 0)
	if err != nil {
		return nil
	}
	return d
}

func (k *Known) user(login string) (*identity.Principal, error) {
	if p := k.directory.Principal(identity.UserID(login)); p != nil {
		return p, nil
	}
	return nil, failure.Refuse(failure.ErrUnauthorized, "there is no user %s who can sign in", login)
}

// users are the logins of all who can sign in, in the order of the file.
func (k *Known) users() (logins []string) {
	for _, u := range k.directory.Users() {
		if !u.Disabled {
			logins = append(logins, string(u.ID))
		}
	}
	return logins
}

// Workflows are the ids of all workflows, in order.
func (k *Known) Workflows() []string { return keysOf(k.newest) }
