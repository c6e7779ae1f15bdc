package statemachine

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

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
		User:     c.User(),
		Now:      now,
		Instance: of.exprInstance(in, func() data.Value { return in.State.At.States }),
		In:       func(name string) bool { return of.IsIn(in.State.At.Active, name) },
	}
}

// MayRead decides whether the caller may see this instance.
func (d *Definition) MayRead(v View, c *Caller, now time.Time) bool {
	return v.admits(d.ReadRule, c, now)
}

// MaySend decides whether the caller may send events to this instance; the
// transitions may ask for more.
func (d *Definition) MaySend(v View, c *Caller, now time.Time) bool {
	return v.admits(d.RuleToSend(), c, now)
}

// admits is rule.admits for the instance.
func (v View) admits(r *chart.Rule, c *Caller, now time.Time) bool {
	if r == nil || r.IsPlain() {
		return r == nil || r.Names(c)
	}
	return r.Admits(c, v.scope(c, now))
}
