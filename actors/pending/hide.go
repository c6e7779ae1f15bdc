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

// HiddenReason stands for why an event failed, which may quote data of the instance.
const HiddenReason = "why is told to those who may read the instance"

// Reason is why an event failed, for a caller who may read the instance or not.
func Reason(reason string, mayRead bool) string {
	if mayRead {
		return reason
	}
	return HiddenReason
}

// hide takes out of incidents what their caller may not see: an operator learns that something failed, where, for whom and how often, and
// data only of instances that they may read.
//
// Sketch of the cost: a read for each instance of the page.
func (l *Lists) hide(ctx context.Context, p *identity.Principal, incidents []Incident) error {
	may := map[[2]string]bool{}
	if p != nil && len(incidents) > 0 {
		caller := catalog.CallerOf(p)
		err := l.queries.Read(ctx, p.ID, func(from *query.Reader) error {
			for k := range incidents {
				of := [2]string{incidents[k].Workflow, incidents[k].InstanceID}
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
		if err != nil {
			return err
		}
	}
	for k := range incidents {
		if in := &incidents[k]; !may[[2]string{in.Workflow, in.InstanceID}] {
			in.hide()
		}
	}
	return nil
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

// mayRead asks whether a caller may read an instance. One that was never created, or that is gone, can be read by those who may read all of
// its workflow.
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
