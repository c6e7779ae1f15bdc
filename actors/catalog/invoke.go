package catalog

import (
	"errors"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine"
)

func (c *Catalog) originOf(key versionKey) (origin, error) {
	if o, ok := c.origins.Load(key); ok {
		return o, nil
	}
	s, err := c.loadStored(key)
	if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrCorrupt) {
		return origin{}, nil // nobody is known
	}
	if err != nil {
		return origin{}, failure.OfStore(err)
	}
	o := origin{home: s.By == "", by: identity.UserID(s.By)}
	c.origins.Store(key, o)
	return o, nil
}

// MayInvoke says whether instances of a version may have children of another workflow with any data
// (statemachine/DEFINITION.md, "Who may invoke"). Otherwise the rules of the called one bind, asked of a user: one
// without an id is nobody. find returns the users that there are, nil for none.
func (c *Catalog) MayInvoke(workflow string, version uint64, called string, find func(identity.UserID) *identity.Principal) (free bool, by *statemachine.Caller, err error) {
	if called == workflow {
		return true, nil, nil
	}
	o, err := c.originOf(versionKey{workflow, version})
	if err != nil {
		return false, nil, err
	}
	user := find(o.by)
	by = &statemachine.Caller{}
	if user != nil {
		by = CallerOf(user)
	}
	return o.home || c.isFree(workflow, o.by, user, called), by, nil
}

// isFree reports whether a workflow that a user has published may invoke another with any data. user is nil when there
// is no such one any more.
func (c *Catalog) isFree(workflow string, by identity.UserID, user *identity.Principal, called string) bool {
	if user != nil && user.Has(identity.Admin) {
		return true
	}
	now := c.currentOf(called)
	if now == nil {
		return false
	}
	if d, err := c.rules(called, now); err == nil && d.LetsInvoke(workflow) {
		return true
	}
	if by == "" {
		return false
	}
	owner := &statemachine.Caller{ID: string(by)} // NB: what was somebody's goes on when that user has left
	if user != nil {
		owner = CallerOf(user)
	}
	of, _ := c.ownersOf(*c.owners.Load(), called, now)
	return of.effective().Has(owner)
}

func (c *Catalog) checkInvocations(s *Source, by *identity.Principal) error {
	for _, inv := range s.Parsed.Invocations() {
		if inv.Workflow == string(s.Parsed.ID) || c.isFree(string(s.Parsed.ID), by.ID, by, inv.Workflow) {
			continue
		}
		d, err := c.Newest(inv.Workflow)
		if errors.Is(err, failure.ErrNotFound) || errors.Is(err, failure.ErrExecution) {
			continue // whoever publishes it decides
		}
		if err == nil {
			err = d.ForeseeInvoke(CallerOf(by), inv, time.Now())
		}
		if err != nil {
			return failure.Refuse(failure.ErrForbidden, "%[1]s may not invoke %[2]s so: you do not own %[2]s, its allow.invoke does not name %[1]s, and its rules refuse you: %[3]w", s.Parsed.ID, inv.Workflow, err)
		}
	}
	return nil
}
