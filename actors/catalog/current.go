package catalog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// AddBuiltin makes a definition of our own available under an id that no file can have, because it is no identifier.
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
	return &statemachine.Caller{ID: string(p.ID), FullName: p.Name, Roles: p.Roles, Privileges: p.Privileges, OverridesClaims: p.Has(identity.Workflows)}
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
	all := *c.current.Load()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		o := all[id]
		if !o.listed || o.Definition == nil && !c.mayHaveSchedules(versionKey{id, o.version}) {
			continue
		}
		d, err := c.rules(id, o)
		if err != nil {
			continue
		}
		for _, s := range d.Schedules {
			out = append(out, Schedule{id, s})
		}
	}
	return out
}

// NB: it is asked every second; content under a number is replaced only by what is among the versions then.
func (c *Catalog) mayHaveSchedules(k versionKey) bool {
	_, isRead := c.versions.Load(k)
	if _, isTimeless := c.timeless.Load(k); isRead || isTimeless {
		return isRead
	}
	text, err := c.store.Load(key.Definition(nil, k.workflow, k.version))
	if err != nil || bytes.Contains(text, []byte("schedules")) {
		return err == nil
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
func (c *Catalog) MayNotSend(workflowID string, v statemachine.View, caller *statemachine.Caller, event string, now time.Time, hidden error) error {
	newest, err := c.Newest(workflowID)
	if err != nil {
		return err
	}
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
