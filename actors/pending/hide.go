package pending

import (
	"context"
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/statemachine"
)

// HiddenReason stands for why an event or a delivery failed, which may quote data of the instance.
const HiddenReason = "why is told to those who may read the instance"

// Reason is why an event failed, for a caller who may read the instance or not.
func Reason(reason string, mayRead bool) string {
	if mayRead {
		return reason
	}
	return HiddenReason
}

// hide takes out of incidents what their caller may not see: an operator learns that something failed, where, for whom
// and how often, and data only of instances that they may read.
func (l *Lists) hide(ctx context.Context, p *identity.Principal, incidents []Incident) error {
	of := func(k int) [2]string { return [2]string{incidents[k].Workflow, incidents[k].InstanceID} }
	may, err := l.readable(ctx, p, len(incidents), of)
	for k := range incidents {
		if err == nil && !may[of(k)] {
			incidents[k].hide()
		}
	}
	return err
}

// hideErrors takes out of deliveries what was wrong, where the caller may not read the instance: it may quote
// addresses.
func (l *Lists) hideErrors(ctx context.Context, p *identity.Principal, all []Delivery) error {
	var failed []*Delivery
	for k := range all {
		if all[k].LastError != "" {
			failed = append(failed, &all[k])
		}
	}
	of := func(k int) [2]string { return [2]string{failed[k].Workflow, failed[k].InstanceID} }
	may, err := l.readable(ctx, p, len(failed), of)
	for k, d := range failed {
		d.LastError = Reason(d.LastError, err == nil && may[of(k)])
	}
	return err
}

// readable tells which of n instances a caller may read.
func (l *Lists) readable(ctx context.Context, p *identity.Principal, n int, instance func(int) [2]string) (map[[2]string]bool, error) {
	may := map[[2]string]bool{}
	if p == nil || n == 0 {
		return may, nil
	}
	caller := catalog.CallerOf(p)
	return may, l.queries.Read(ctx, p.ID, func(from *query.Reader) error {
		for k := range n {
			of := instance(k)
			if _, asked := may[of]; asked {
				continue
			}
			ok, err := l.mayRead(from, caller, of[0], of[1])
			if may[of] = ok; err != nil {
				return err
			}
		}
		return nil
	})
}

func (in *Incident) hide() {
	if in.Row != nil && in.Row.Kind != incident.Expression { // whose error is the service's own
		return
	}
	in.Error = HiddenReason
	if in.Row != nil {
		row := *in.Row
		row.Error, row.Read = HiddenReason, nil
		in.Row = &row
	}
}

// One that was never created, or that is gone, can be read by those who may read all of its workflow.
func (l *Lists) mayRead(from *query.Reader, c *statemachine.Caller, workflow, instance string) (bool, error) {
	rules, err := l.catalog.Newest(workflow)
	if err == nil {
		if err := from.Step(); err != nil {
			return false, err
		}
		switch now := l.clock(); rules.ReadRight(c, now) {
		case statemachine.Denied:
			return false, nil
		case statemachine.ByInstance:
			id, ok := instanceid.Parse(instance)
			if !ok {
				return false, nil
			}
			var in *query.Instance
			if in, err = query.LoadInstance(from, l.catalog, l.store.ShardOf(id), workflow, id); err == nil {
				return rules.MayRead(statemachine.View{Instance: &in.State, Of: in.Of}, c, now), nil
			}
		default:
			return true, nil
		}
	}
	if errors.Is(err, failure.ErrNotFound) || errors.Is(err, failure.ErrExecution) {
		err = nil
	}
	return false, err
}
