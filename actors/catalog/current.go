package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// AddBuiltin makes a definition of our own available under an id that no file can have, because it is not an identifier.
// What was once used must stay as it is: a new version would need the old one as well.
func (c *Catalog) AddBuiltin(id string, d *statemachine.Definition) {
	c.builtin[id] = &currentVersion{Definition: d, version: d.Version, listed: true, pins: new(atomic.Int64)}
	c.keep(versionKey{id, d.Version}, d)
}

func (c *Catalog) currentOf(workflow string) *currentVersion {
	if o := (*c.current.Load())[workflow]; o != nil {
		return o
	}
	return c.builtin[workflow]
}

// CallerOf is what the state machine sees of a principal.
func CallerOf(p *identity.Principal) *statemachine.Caller {
	c := new(statemachine.Caller)
	SetCaller(c, p)
	return c
}

// SetCaller is CallerOf for a caller who has the room.
func SetCaller(c *statemachine.Caller, p *identity.Principal) {
	*c = statemachine.Caller{ID: string(p.ID), FullName: p.Name, Roles: p.Roles, Privileges: p.Privileges, OverridesClaims: p.Has(identity.Workflows)}
}

// WithoutPrivileges is a caller who has only roles.
func WithoutPrivileges(c *statemachine.Caller) *statemachine.Caller {
	without := *c
	without.Privileges = nil
	return &without
}

// Len returns how many workflows have a file in the current set, or were published singly.
func (c *Catalog) Len() int {
	n := 0
	for _, o := range *c.current.Load() {
		if o.listed {
			n++
		}
	}
	return n
}

// Newest returns the definition whose rules hold for the workflow. failure.ErrNotFound when it was never published,
// failure.ErrExecution when it cannot be read.
func (c *Catalog) Newest(workflow string) (*statemachine.Definition, error) {
	return c.rules(workflow, c.currentOf(workflow))
}

// Creatable returns the definition for new instances. failure.ErrNotFound when there is none, failure.ErrExecution when
// it cannot be read.
func (c *Catalog) Creatable(workflow string) (*statemachine.Definition, error) {
	o := c.currentOf(workflow)
	if o != nil && !o.listed {
		o = nil
	}
	return c.rules(workflow, o)
}

func (c *Catalog) rules(workflow string, o *currentVersion) (*statemachine.Definition, error) {
	switch {
	case o == nil:
		return nil, failure.ErrNotFound
	case o.Definition != nil:
		return o.Definition, nil
	}
	d, err := c.Version(workflow, o.version)
	if err == nil {
		c.adopt(workflow, o, d)
	}
	return d, err
}

// adopt puts the definition of a current version in its place, now that it was read, unless another one is current by
// now.
func (c *Catalog) adopt(workflow string, o *currentVersion, d *statemachine.Definition) {
	for {
		all := c.current.Load()
		if (*all)[workflow] != o {
			return
		}
		next := maps.Clone(*all)
		read := *o
		read.Definition = d
		next[workflow] = &read
		if c.current.CompareAndSwap(all, &next) {
			return
		}
	}
}

// Pin keeps the content of a workflow's current version.
type Pin struct{ version *currentVersion }

// Pin pins the definition for a create that is about to happen: until it is released, its content cannot be replaced
// under the same version. After the create, the stored count of instances holds it. The errors are those of Creatable.
func (c *Catalog) Pin(workflow string) (Pin, error) {
	for {
		o := c.currentOf(workflow)
		if o == nil || !o.listed {
			return Pin{}, failure.ErrNotFound
		}
		if _, err := c.rules(workflow, o); err != nil {
			return Pin{}, err
		}
		if o.Definition == nil {
			continue // it was read just now, or published again since
		}
		if o.pins.Add(1) > 0 {
			return Pin{o}, nil
		}
		o.pins.Add(-1)
		// Publish is replacing it: wait until it has decided, then look again.
		c.publishing.Lock()
		c.publishing.Unlock() //nolint:staticcheck // only to wait
	}
}

// PinVersion is Pin for a version that need not be the current one: failure.ErrNotFound without it.
func (c *Catalog) PinVersion(workflow string, number uint64) (Pin, error) {
	pin, err := c.Pin(workflow)
	if err == nil && (number == 0 || pin.Definition().Version == number) {
		return pin, nil
	}
	if err == nil {
		pin.Release()
	}
	if number == 0 {
		return Pin{}, err
	}
	if _, err := c.Find(workflow, number); err != nil { // NB: before there is a count of what is not there
		return Pin{}, err
	}
	for {
		c.publishing.Lock()
		pins := c.pinsLocked(versionKey{workflow, number})
		c.publishing.Unlock()
		if pins.Add(1) > 0 {
			d, err := c.Find(workflow, number)
			if err != nil {
				pins.Add(-1)
				return Pin{}, err
			}
			return Pin{&currentVersion{Definition: d, version: number, pins: pins}}, nil
		}
		pins.Add(-1) // other content takes the version: look again
	}
}

// Definition is what is pinned.
func (p Pin) Definition() *statemachine.Definition { return p.version.Definition }

// Release ends the pin. It is called once.
func (p Pin) Release() { p.version.pins.Add(-1) }

// Schedule is one of a workflow that can be created.
type Schedule struct {
	Workflow string
	*statemachine.Schedule
}

// Schedules returns those of the current versions, by workflow and then as the definition has them.
func (c *Catalog) Schedules() (out []Schedule) {
	c.eachTimed(func(id string, d *statemachine.Definition) {
		for _, s := range d.Schedules {
			out = append(out, Schedule{id, s})
		}
	})
	return out
}

// Retention is how long instances of a workflow are kept that are done.
type Retention struct {
	Workflow string
	Done     time.Duration
}

// Retentions returns those of the current versions, by workflow.
func (c *Catalog) Retentions() (out []Retention) {
	c.eachTimed(func(id string, d *statemachine.Definition) {
		if d.Retention > 0 {
			out = append(out, Retention{id, d.Retention})
		}
	})
	return out
}

// eachTimed visits, by workflow, the current versions in which something comes with time, beside their instances.
func (c *Catalog) eachTimed(visit func(id string, d *statemachine.Definition)) {
	all := *c.current.Load()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		o := all[id]
		if !o.listed || o.Definition == nil && !c.mayBeTimed(versionKey{id, o.version}) {
			continue
		}
		if d, err := c.rules(id, o); err == nil {
			visit(id, d)
		}
	}
}

// NB: it is asked every second; content under a number is replaced only by what is among the versions then.
func (c *Catalog) mayBeTimed(k versionKey) bool {
	_, isRead := c.versions.Load(k)
	if _, isTimeless := c.timeless.Load(k); isRead || isTimeless {
		return isRead
	}
	text, err := c.store.Load(key.Definition(nil, k.workflow, k.version))
	for _, word := range []string{"schedules", "retention", "jobs"} {
		if err != nil || bytes.Contains(text, []byte(word)) {
			return err == nil
		}
	}
	c.timeless.Store(k, struct{}{})
	return false
}

// Choice is a workflow that a caller may create.
type Choice struct{ ID, Name string }

// Choices lists what the caller may create, by id.
func (c *Catalog) Choices(caller *statemachine.Caller, now time.Time) []Choice {
	out := []Choice{}
	for id, o := range *c.current.Load() {
		if choice, ok := c.choice(id, o, caller, now); ok {
			out = append(out, choice)
		}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Choice returns one of the Choices; false when the caller may not create it.
func (c *Catalog) Choice(id string, caller *statemachine.Caller, now time.Time) (Choice, bool) {
	return c.choice(id, (*c.current.Load())[id], caller, now)
}

// choice is the workflow as one that the caller may create; false when it is none. nil is none, and so is one whose
// definition cannot be read.
func (c *Catalog) choice(id string, o *currentVersion, caller *statemachine.Caller, now time.Time) (Choice, bool) {
	if o == nil || !o.listed {
		return Choice{}, false
	}
	d, err := c.rules(id, o)
	if err != nil || d.CreateRight(caller, now) == statemachine.Denied {
		return Choice{}, false
	}
	return Choice{ID: id, Name: d.Name}, true
}

// MayNotSend is failure.ErrForbidden for an event that its sender has no right to now, which it tells: the one to send
// events at all, or, with a name, the one to this event in the state where it is.
func MayNotSend(newest *statemachine.Definition, v statemachine.View, caller *statemachine.Caller, event string, now time.Time, hidden error) error {
	if newest.ReadRight(caller, now) == statemachine.Denied || !newest.MayRead(v, caller, now) {
		return hidden
	}
	if event == "" {
		return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send events to this instance (allow.send)")
	}
	var states []string
	for _, p := range v.Of.Positions(v.Instance) {
		states = append(states, string(p.Node))
	}
	return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send %q in state %s", event, strings.Join(states, ", "))
}

// ownersSetting keeps those that are gone, so that nobody takes over an id that was in use.
const ownersSetting = "workflow-owners"

func (o ownership) effective() *statemachine.Owners {
	if o.Owners == nil && o.By != "" {
		return &statemachine.Owners{Users: []string{o.By}}
	}
	return o.Owners
}

func (c *Catalog) loadOwners() (map[string]ownership, error) {
	owners := map[string]ownership{}
	err := c.loadSetting(ownersSetting, &owners)
	return owners, err
}

// ownersOf goes by a version that is there, and by what is kept only where it is gone or cannot be read.
func (c *Catalog) ownersOf(all map[string]ownership, workflow string, now *currentVersion) (of ownership, known bool) {
	of, known = all[workflow]
	if now == nil {
		return of, known
	}
	if d, err := c.rules(workflow, now); err == nil {
		of.Owners = d.Owners
	}
	return of, true
}

// MayAssign is the refusal of a user who may not migrate the workflow's instances by a plan that writes their data: create and the
// rules of the workflow do not bind it, so it is for those who decide about these.
func (c *Catalog) MayAssign(workflow string, by *identity.Principal) error {
	of, _ := c.ownersOf(*c.owners.Load(), workflow, c.currentOf(workflow))
	return mayAsOwner(workflow, "migrate its instances with assign", of, by)
}

func mayAsOwner(workflow, what string, of ownership, by *identity.Principal) error {
	owners := of.effective()
	if by.Has(identity.Admin) || owners.Has(CallerOf(by)) {
		return nil
	}
	if owners == nil {
		return failure.Refuse(failure.ErrForbidden, "workflow %s has no owners: only holders of %s may %s", workflow, identity.Admin, what)
	}
	var who []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"user", owners.Users}, {"role", owners.Roles}, {"privilege", owners.Privileges}} {
		if len(list.names) > 0 {
			who = append(who, list.what+" "+strings.Join(list.names, ", "))
		}
	}
	return failure.Refuse(failure.ErrForbidden, "only the owners of workflow %s (%s) and holders of %s may %s", workflow, strings.Join(who, "; "), identity.Admin, what)
}

func (p *publication) remember(all map[string]ownership, workflow string, d *statemachine.Definition, by string) {
	before, known := all[workflow]
	next := ownership{By: by, Owners: before.Owners}
	if d != nil { // NB: else the newest version cannot be read
		next.Owners = d.Owners
	}
	if known && before.By == next.By && before.Owners.Equal(next.Owners) {
		return
	}
	if p.owners == nil {
		p.owners = maps.Clone(all)
	}
	p.owners[workflow] = next
}

// noteRights notes which blocks about rights a source changes. now is the newest version; nil: there is none.
func (c *Catalog) noteRights(p *publication, s *Source, now *currentVersion) error {
	if now == nil {
		return nil
	}
	before, err := c.loadStored(versionKey{s.key().workflow, now.version})
	if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	if blocks := changedBlocks(before, s.stored("")); len(blocks) > 0 {
		p.changes = append(p.changes, rightsChange{s.key(), now.version, blocks})
	}
	return nil
}

func changedBlocks(before, after stored) (blocks []string) {
	old, oldErr := document.Parse(before.File, []byte(before.Text))
	next, nextErr := document.Parse(after.File, []byte(after.Text))
	if oldErr != nil || nextErr != nil {
		return nil // NB: what was published could be read
	}
	for _, key := range []string{"owners", "allow", "create"} {
		a, aErr := old.Field(key).Data()
		b, bErr := next.Field(key).Data()
		refers := strings.Contains(string(b), `"$ref"`) && !maps.Equal(before.Refs, after.Refs)
		if aErr != nil || bErr != nil || string(a) != string(b) || refers {
			blocks = append(blocks, key)
		}
	}
	return blocks
}

func (c *Catalog) logRights(p *publication, by identity.UserID) {
	for _, change := range p.changes {
		c.log.Info().Str("workflow", change.key.workflow).Uint64("version", change.key.version).Uint64("before", change.before).
			Str("user", cmp.Or(string(by), "home")).Strs("blocks", slices.Clone(change.blocks)).Msg("a version changes the rights of its workflow")
	}
}

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
// is no longer one.
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
