package statemachine

import (
	"cmp"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Caller is who acts: the user's login name with the roles and privileges that
// hold at present.
type Caller struct {
	ID                string
	FullName          string // for people; empty: the id
	Roles, Privileges []string
	// OverridesClaims: the tasks of others do not hold the caller back.
	OverridesClaims bool
}

// Name is the user's; that of nobody is System.
func (c *Caller) Name() string {
	if c == nil {
		return System
	}
	return c.ID
}

func (c *Caller) user() expr.User {
	return expr.User{ID: c.ID, Name: cmp.Or(c.FullName, c.ID), Roles: c.Roles, Privileges: c.Privileges}
}

// Right is what a rule says before an instance is looked at.
type Right uint8

const (
	// Denied means that the caller may not, for any instance.
	Denied Right = iota
	// ByInstance means that it depends on the instance; ask MayRead or MaySend.
	ByInstance
	// Granted means that the caller may, for every instance.
	Granted
)

// rule is one rule of an allow block (statemachine/DEFINITION.md, "Rules"): any of the
// lists, and when; a matching deny wins. Built once, then read only.
type rule struct {
	roles, privileges, users []string
	when                     *expr.Program // nil: true
	deny                     *rule         // nil: nobody
	// perInstance: when looks at an instance or an event.
	perInstance bool
}

// names reports whether the rule's lists name the caller; empty lists name
// everyone.
func (r *rule) names(c *Caller) bool {
	if len(r.roles) == 0 && len(r.privileges) == 0 && len(r.users) == 0 {
		return true
	}
	return slices.Contains(r.users, c.ID) || anyOf(r.roles, c.Roles) || anyOf(r.privileges, c.Privileges)
}

func anyOf(wanted, held []string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(held, w) })
}

// isPlain reports whether names alone decides, so that no scope is needed.
func (r *rule) isPlain() bool { return r.when == nil && r.deny == nil }

// admits decides with a scope that has everything that the rule may read. An
// expression that fails refuses: rights fail closed (statemachine/DEFINITION.md,
// "Allow").
func (r *rule) admits(c *Caller, s *expr.Scope) bool {
	if r == nil {
		return true
	}
	if !r.names(c) {
		return false
	}
	if r.when != nil {
		if ok, err := r.when.Bool(s); err != nil || !ok {
			return false
		}
	}
	return r.deny == nil || !r.deny.hits(c, s)
}

// hits is admits for a deny block: there an expression that fails denies.
func (r *rule) hits(c *Caller, s *expr.Scope) bool {
	if !r.names(c) {
		return false
	}
	if r.when != nil {
		if ok, err := r.when.Bool(s); err == nil && !ok {
			return false
		}
	}
	return r.deny == nil || !r.deny.admits(c, s) // whom it does not hit after all has to be certain
}

// foresee decides as far as possible before everything is there that the rule reads.
// open reports that the condition of a rule has to wait for it; the result is
// ByInstance then.
func (r *rule) foresee(c *Caller, s *expr.Scope, open func(*rule) bool) Right {
	if r == nil {
		return Granted
	}
	if !r.names(c) {
		return Denied
	}
	right := Granted
	if r.when != nil {
		if open(r) {
			right = ByInstance
		} else if ok, err := r.when.Bool(s); err != nil || !ok {
			return Denied
		}
	}
	switch {
	case r.deny == nil || !r.deny.names(c):
		return right
	case r.deny.waits(open):
		return ByInstance
	case r.deny.hits(c, s):
		return Denied
	}
	return right
}

// waits reports whether some condition of a deny block is open.
func (r *rule) waits(open func(*rule) bool) bool {
	return r != nil && (open(r) || r.deny.waits(open))
}

// without is foresee without an instance.
func (r *rule) without(c *Caller, now time.Time) Right {
	if r == nil || r.isPlain() {
		return r.foresee(c, nil, nil)
	}
	return r.foresee(c, &expr.Scope{User: c.user(), Now: now}, func(r *rule) bool { return r.perInstance })
}

// CreateRight says whether the caller may create instances.
func (d *Definition) CreateRight(c *Caller, now time.Time) Right { return d.create.without(c, now) }

// ReadRight says whether the caller may see instances.
func (d *Definition) ReadRight(c *Caller, now time.Time) Right { return d.read.without(c, now) }

// SendRight says whether the caller may send events. Without a send rule it is
// the right to read.
func (d *Definition) SendRight(c *Caller, now time.Time) Right {
	return d.sendRule().without(c, now)
}

func (d *Definition) sendRule() *rule {
	if d.send == nil {
		return d.read
	}
	return d.send
}

// View is an instance for the rules of a definition that may be another version than
// its own.
type View struct {
	Instance *Instance
	// Of is the definition that the instance runs under.
	Of *Definition
	// Budget bounds what all that is evaluated costs, of several instances perhaps; nil: each call has that of an event.
	Budget *expr.Budget
}

// NewBudget returns a View.Budget of so many units. Beyond it conditions refuse and texts fall back: who sees Exhausted looks again with another one.
func NewBudget(units uint64) *expr.Budget {
	b := expr.NewBudget(units)
	return &b
}

func (v View) scope(c *Caller, now time.Time) *expr.Scope {
	in, of, budget := v.Instance, v.Of, v.Budget
	if budget == nil {
		budget = NewBudget(maxCost)
	}
	return &expr.Scope{
		Budget:   budget,
		Public:   in.Public,
		Private:  in.Private,
		User:     c.user(),
		Now:      now,
		Instance: of.exprInstance(in, func() data.Value { return in.at.states }),
		In:       func(name string) bool { return of.isIn(in.at.active, name) },
	}
}

// MayRead decides whether the caller may see this instance.
func (d *Definition) MayRead(v View, c *Caller, now time.Time) bool {
	return d.read.admitsTo(v, c, now)
}

// MaySend decides whether the caller may send events to this instance; the
// transitions may ask for more.
func (d *Definition) MaySend(v View, c *Caller, now time.Time) bool {
	return d.sendRule().admitsTo(v, c, now)
}

// admitsTo is admits for an instance.
func (r *rule) admitsTo(v View, c *Caller, now time.Time) bool {
	if r == nil || r.isPlain() {
		return r == nil || r.names(c)
	}
	return r.admits(c, v.scope(c, now))
}
