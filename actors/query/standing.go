package query

import (
	"context"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Standing is how many instances of a workflow stand at a position.
type Standing struct {
	At        statemachine.Position
	Instances int64
	About     bool // it is an estimate
	AtLeast   bool // and there are more: reading ended before that
}

const (
	standingRows  = 100_000 // about how many rows are read for all positions together, and standingMin the fewest for one
	standingMin   = 64
	standingTimes = 16
)

// Standing counts how many instances of a workflow, of all its versions and whoever may see them, stand at each of the
// positions. Where they are many it is an estimate: after some rows, the shards that were not read are taken for like
// those that were.
func (s *Service) Standing(ctx context.Context, caller *identity.Principal, workflowID string, at []statemachine.Position) ([]Standing, error) {
	q := &query{service: s, req: &Request{Caller: caller, WorkflowID: workflowID}, workflowID: workflowID, begun: time.Now()}
	out := make([]Standing, len(at))
	var err error = failure.ErrUnavailable
	if s.stopped.Err() == nil {
		err = q.withSlots(ctx, func() error { return q.inSnapshot(func() error { return q.standing(at, out) }) })
	}
	if err != nil {
		return nil, failure.In("count", workflowID, err)
	}
	return out, nil
}

func (q *query) standing(at []statemachine.Position, out []Standing) error {
	enough := int64(max(standingMin, standingRows/max(1, len(at))))
	for i, p := range at {
		var stopped error
		e, err := q.snapshot.Estimate(enough, standingTimes*enough, func([]byte) error {
			stopped = q.chargeStep()
			return stopped
		}, key.Range{Prefix: key.MachinePrefix(nil, key.EveryShard, q.workflowID, string(p.Node), string(p.Machine))})
		if stopped != nil {
			return stopped
		}
		if err != nil {
			return failure.OfStore(err)
		}
		out[i] = Standing{At: p, Instances: e.Keys, About: !e.Exact, AtLeast: e.Read >= standingTimes*enough}
	}
	return q.awaitDurable()
}
