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
	return simulation.New(simulation.Options{Definitions: k.definition, User: k.user, Now: now, Covers: covers})
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
	return nil, failure.Refuse(failure.ErrNotFound, "the home has no workflow %s with that version", workflow)
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
