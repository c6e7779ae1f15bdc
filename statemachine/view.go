package statemachine

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
)

// Title returns the line that tells an instance from its siblings: its key when the definition has no title, or when that fails or is
// empty for this instance; no text without either. It is evaluated here: an instance whose title nobody asks for pays nothing.
func (d *Definition) Title(in *Instance) Text {
	if d.TitleCaption == nil {
		return chart.Plain(in.Key())
	}
	if d.TitleCaption.Made == nil {
		return d.TitleCaption.Fixed
	}
	m := d.newMacrostep(in, in.State.At.Active, chart.SystemCaller, in.UpdatedAt)
	defer m.release()
	title, _ := d.TitleCaption.Eval(&m.scope, chart.MaxTitle)
	if len(title) == 0 {
		return chart.Plain(in.Key())
	}
	return title
}

// View is an instance for the rules of a definition that may be another version than its own.
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
		budget = NewBudget(fault.MaxCost)
	}
	return &expr.Scope{
		Budget:   budget,
		Public:   in.Public,
		Private:  in.Private,
		User:     c.User(),
		Now:      now,
		Parent:   exprParent(in),
		Instance: of.exprInstance(in, func() data.Value { return in.State.At.States }),
		In:       func(name string) bool { return of.IsIn(in.State.At.Active, name) },
	}
}

// MayRead decides whether the caller may see this instance.
func (d *Definition) MayRead(v View, c *Caller, now time.Time) bool {
	return v.admits(d.ReadRule, c, now)
}

// MaySend decides whether the caller may send events to this instance; the transitions may ask for more.
func (d *Definition) MaySend(v View, c *Caller, now time.Time) bool {
	return v.admits(d.RuleToSend(), c, now)
}

func (v View) admits(r *chart.Rule, c *Caller, now time.Time) bool {
	if r == nil || r.IsPlain() {
		return r == nil || r.Names(c)
	}
	return r.Admits(c, v.scope(c, now))
}

// IsCandidate decides whether the caller may take over a task. It asks nothing that depends on an event.
func (v View) IsCandidate(t *Task, c *Caller, now time.Time) bool {
	r := v.Of.TaskRuleAt(t.At)
	if r == nil {
		return false
	}
	if len(r.Candidates) == 0 {
		return true
	}
	var scope *expr.Scope
	for _, names := range r.Candidates {
		if !names.IsPlain() && scope == nil {
			scope = v.scope(c, now)
		}
		if names.Foresee(c, scope, (*chart.Rule).ReadsEvent) != Denied {
			return true
		}
	}
	return false
}

// TaskText is what people read of a task. Title is never empty.
type TaskText struct{ Title, Description Text }

// TaskText makes the texts of a task. One that fails to be made falls back: the title to the label of the node, and that to its id.
func (v View) TaskText(t *Task) (out TaskText) {
	if r := v.Of.TaskRuleAt(t.At); r != nil && (r.Title != nil || r.Description != nil) {
		scope := v.scope(chart.SystemCaller, t.Created)
		out.Title, _ = r.Title.Eval(scope, chart.MaxTitle)
		out.Description, _ = r.Description.Eval(scope, fault.MaxDescription)
	}
	if len(out.Title) == 0 {
		out.Title = v.Of.LabelOf(t.At).Label
	}
	return out
}

// WhyRead is MayRead, with a reason for those who run the service.
func (d *Definition) WhyRead(v View, c *Caller, now time.Time) (may bool, why string) {
	return d.ReadRule.Why(c, v.scope(c, now))
}

// WhySend is MaySend, with a reason for those who run the service.
func (d *Definition) WhySend(v View, c *Caller, now time.Time) (may bool, why string) {
	if d.SendRule == nil {
		may, why = d.WhyRead(v, c, now)
		return may, "as for allow.read: " + why
	}
	return d.SendRule.Why(c, v.scope(c, now))
}
