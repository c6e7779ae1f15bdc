package chart

import (
	"cmp"
	"slices"
	"time"

	"troupe/statemachine/expr"
)

// ReadsEvent reports whether the condition of a rule has to wait for the event.
func (r *Rule) ReadsEvent() bool { return r.When != nil && r.When.Reads("event") }

// MayTake reports whether the caller may send the event in any state.
func (c *EventDeclaration) MayTake(caller *Caller, s *expr.Scope) bool {
	return c == nil || c.Allow.Admits(caller, s)
}

// Caller is who acts: the user's login name with the roles and privileges that hold at present.
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

// User is the variable user of expressions.
func (c *Caller) User() expr.User {
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

// Rule is one rule of an allow block (statemachine/DEFINITION.md, "Rules"): any of the
// lists, and when; a matching deny wins. Built once, then read only.
type Rule struct {
	Roles, Privileges, Users []string
	When                     *expr.Program // nil: true
	Deny                     *Rule         // nil: nobody
	// PerInstance: when looks at an instance or an event.
	PerInstance bool
}

// Names reports whether the rule's lists name the caller; empty lists name everyone.
func (r *Rule) Names(c *Caller) bool {
	if len(r.Roles) == 0 && len(r.Privileges) == 0 && len(r.Users) == 0 {
		return true
	}
	return slices.Contains(r.Users, c.ID) || anyOf(r.Roles, c.Roles) || anyOf(r.Privileges, c.Privileges)
}

func anyOf(wanted, held []string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(held, w) })
}

// IsPerInstance reports whether a condition of the rule, or of what it denies, looks at an instance or an event.
func (r *Rule) IsPerInstance() bool { return r != nil && (r.PerInstance || r.Deny.IsPerInstance()) }

// IsPlain reports whether Names alone decides, so that no scope is needed.
func (r *Rule) IsPlain() bool { return r.When == nil && r.Deny == nil }

// Admits decides with a scope that has everything that the rule may read. An expression that fails refuses: rights fail closed
// (statemachine/DEFINITION.md, "Allow").
func (r *Rule) Admits(c *Caller, s *expr.Scope) bool {
	if r == nil {
		return true
	}
	if !r.Names(c) {
		return false
	}
	if r.When != nil {
		if ok, err := r.When.Bool(s); err != nil || !ok {
			return false
		}
	}
	return r.Deny == nil || !r.Deny.hits(c, s)
}

// hits is Admits for a deny block: there an expression that fails denies.
func (r *Rule) hits(c *Caller, s *expr.Scope) bool {
	if !r.Names(c) {
		return false
	}
	if r.When != nil {
		if ok, err := r.When.Bool(s); err == nil && !ok {
			return false
		}
	}
	return r.Deny == nil || !r.Deny.Admits(c, s) // whom it does not hit after all has to be certain
}

// Foresee decides as far as possible before everything is there that the rule reads. open reports that the condition of a rule
// has to wait for it; the result is ByInstance then.
func (r *Rule) Foresee(c *Caller, s *expr.Scope, open func(*Rule) bool) Right {
	if r == nil {
		return Granted
	}
	if !r.Names(c) {
		return Denied
	}
	right := Granted
	if r.When != nil {
		if open(r) {
			right = ByInstance
		} else if ok, err := r.When.Bool(s); err != nil || !ok {
			return Denied
		}
	}
	switch {
	case r.Deny == nil || !r.Deny.Names(c):
		return right
	case r.Deny.waits(open):
		return ByInstance
	case r.Deny.hits(c, s):
		return Denied
	}
	return right
}

// waits reports whether some condition of a deny block is open.
func (r *Rule) waits(open func(*Rule) bool) bool {
	return r != nil && (open(r) || r.Deny.waits(open))
}

// without is Foresee without an instance.
func (r *Rule) without(c *Caller, now time.Time) Right {
	if r == nil || r.IsPlain() {
		return r.Foresee(c, nil, nil)
	}
	return r.Foresee(c, &expr.Scope{User: c.User(), Now: now}, func(r *Rule) bool { return r.PerInstance })
}

// CreateRight says whether the caller may create instances.
func (d *Definition) CreateRight(c *Caller, now time.Time) Right { return d.CreateRule.without(c, now) }

// ReadRight says whether the caller may see instances.
func (d *Definition) ReadRight(c *Caller, now time.Time) Right { return d.ReadRule.without(c, now) }

// MayReadAll reports whether the caller may see every instance, whatever is in it: true || x is true. ReadRight is
// ByInstance for such a rule, since it evaluates no part of one that looks at an instance.
func (d *Definition) MayReadAll(c *Caller, now time.Time) bool {
	apart := &expr.Scope{User: c.User(), Now: now, Apart: true}
	return d.ReadRule.Foresee(c, apart, func(r *Rule) bool {
		if !r.PerInstance {
			return false
		}
		_, err := r.When.Bool(apart)
		return err != nil
	}) == Granted
}

// ReadsByPrivilege reports whether it may be a privilege that shows the caller instances: without any, the caller has another
// right, or a condition that asks for privileges, and not every instance.
func (d *Definition) ReadsByPrivilege(c *Caller, now time.Time) bool {
	without := *c
	without.Privileges = nil
	return d.ReadRight(&without, now) != d.ReadRight(c, now) || d.ReadRule.readsPrivileges() && !d.MayReadAll(&without, now)
}

// readsPrivileges reports whether a condition of the rule asks for privileges.
func (r *Rule) readsPrivileges() bool {
	return r != nil && (r.When != nil && r.When.ReadsPrivileges() || r.Deny.readsPrivileges())
}

// SendRight says whether the caller may send events. Without a send rule it is the right to read.
func (d *Definition) SendRight(c *Caller, now time.Time) Right {
	return d.RuleToSend().without(c, now)
}

// RuleToSend is the rule for events: that of send, else that of read.
func (d *Definition) RuleToSend() *Rule {
	if d.SendRule == nil {
		return d.ReadRule
	}
	return d.SendRule
}

// System is the user of events that nobody sent. It has no roles.
const System = "system"

var SystemCaller = &Caller{ID: System}
