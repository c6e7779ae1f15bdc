package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/migration"
	"troupe/statemachine/internal/record"
)

// ErrNotMigrated: the instance cannot go to the other version. The text of the error says why, for who migrates.
var ErrNotMigrated = migration.ErrRefused

// BriefReason is the text of an ErrNotMigrated for users who cannot see the instance: without anything of its data.
func BriefReason(err error) string {
	if refused := (migration.Refusal{}); errors.As(err, &refused) {
		return refused.Brief
	}
	return ErrNotMigrated.Error()
}

// MigrateEvent is the event in the history entry of a migration.
const MigrateEvent = "migrate"

// Plan says how instances of one version become instances of another one (statemachine/DEFINITION.md, "Migration").
type Plan struct {
	chart.Plan
	from, to *Definition
}

// From and To are the two versions.
func (p *Plan) From() uint64 { return p.from.Version }

// To is the version that instances get.
func (p *Plan) To() uint64 { return p.to.Version }

// Target is the definition that instances get.
func (p *Plan) Target() *Definition { return p.to }

// Migrate makes an instance of From one of To. It is pure as Step is, and in is not changed. ErrNotMigrated means that nothing
// happened; its text says why.
func (p *Plan) Migrate(in *Instance, caller *Caller, now time.Time) (Result, error) {
	next, active, err := migration.Carry(&p.Plan, in)
	if err != nil {
		return Result{}, err
	}
	m := p.to.newMacrostep(&next, active, caller, in.NextTime(now))
	defer m.release()
	m.setEvent(expr.Event{Name: string(MigrateEvent)})
	m.eventData = data.Value(fmt.Sprintf(`{"from":%d,"to":%d}`, p.from.Version, p.to.Version))
	m.enter = m.enter.EmptyFor(len(p.to.Nodes))
	if err := migration.PlanMissing(&p.Plan, &m.Walk, m.enter); err != nil {
		return Result{}, err
	}
	if err := m.runAll(p.Assign); err != nil {
		return Result{}, migration.Refusal{Reason: fmt.Sprintf("assign: %v", err), Brief: "assign: an expression fails"}
	}
	p.beginNew(m, in)
	m.enterAll(m.enter)
	if !p.to.StopsAt(m.Active) { // NB: with the rules of XState the end of a machine runs its exits
		m.runToCompletion()
	}
	before := m.in // whose data is checked here, changed or not
	before.State.At = nil
	result, err := m.result(Moved, in.State.At.End, MigrateEvent, &before)
	if err == nil {
		err = p.to.CheckData(result.Instance.Public, result.Instance.Private)
	}
	if err != nil {
		return Result{}, migration.Refusal{Reason: err.Error(), Brief: fmt.Sprintf("an action fails, or the data does not fit version %d", p.to.Version)}
	}
	return p.to.kept(result, nil, nil, record.InputOfMove(&p.to.Definition, in, &result.Instance))
}

// TryBlind is Migrate for who may not see the data, without its result: whether it would be refused for where the instance stands and what it
// waits for. What the data decides is left out.
func (p *Plan) TryBlind(in *Instance, caller *Caller, now time.Time) error {
	next, active, err := migration.Carry(&p.Plan, in)
	if err != nil {
		return err
	}
	m := p.to.newMacrostep(&next, active, caller, in.NextTime(now))
	defer m.release()
	m.enter = m.enter.EmptyFor(len(p.to.Nodes))
	return migration.PlanMissing(&p.Plan, &m.Walk, m.enter)
}

// Assigns reports whether the plan writes data of instances.
func (p *Plan) Assigns() bool { return len(p.Assign) > 0 }

// ReadsData reports whether what the plan assigns depends on the instance.
func (p *Plan) ReadsData() bool {
	for _, a := range p.Assign {
		for _, s := range a.(*chart.Assign).Settings { //nolint:forcetypeassert // a plan has no other
			if s.Value.ReadsInstance() {
				return true
			}
		}
	}
	return false
}

// beginNew begins what to has at nodes that are active already, and from does not have there.
func (p *Plan) beginNew(m *macrostep, in *Instance) {
	for i := m.Active.Next(1); i >= 0; i = m.Active.Next(i + 1) {
		n := p.to.Nodes[i]
		begins := migration.NewAt(&p.Plan, &in.State, n)
		for _, a := range begins.After {
			m.beginTimer(a)
		}
		if n.Task != nil && !slices.ContainsFunc(m.in.State.Tasks, func(t record.TaskState) bool { return t.Node == n }) {
			m.beginTask(n)
		}
		m.toInvoke = append(m.toInvoke, begins.Invoke...)
	}
}
