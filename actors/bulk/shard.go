package bulk

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/wait"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, epoch uint64) (run func()) {
	x := &shard{Service: s, number: sh, epoch: epoch, ctx: ctx}
	return x.run
}

type shard struct {
	*Service
	number key.Shard
	epoch  uint64
	ctx    context.Context //nolint:containedctx // of the epoch
}

// run works on the jobs, which take turns page by page. What cannot be done now is tried again with the next look.
func (x *shard) run() {
	for x.ctx.Err() == nil {
		jobs, err := x.jobs()
		more := false
		for i := range jobs {
			if jobs[i].Status == Running && x.ctx.Err() == nil {
				again, failed := x.page(&jobs[i])
				more, err = more || again, errors.Join(err, failed)
			}
		}
		if len(jobs) > 0 {
			err = errors.Join(err, x.forget(jobs), x.clear(x.ctx, jobs))
		}
		if err != nil && x.ctx.Err() == nil && !errors.Is(err, failure.ErrNotLeader) && !errors.Is(err, persistence.ErrClosed) {
			x.o.Log.Warn().Err(err).Uint16("shard", uint16(x.number)).Msg("a bulk job cannot go on now")
		}
		if !more || err != nil {
			wait.Sleep(x.ctx, lookEvery)
		}
	}
}

// page gives the next instances of a job their turn. more: others may follow.
func (x *shard) page(j *Job) (more bool, err error) {
	p := &progress{}
	stored, err := x.o.Store.Load(key.Bulk(nil, x.number, j.place()))
	if err == nil {
		err = read(stored, p)
	} else if errors.Is(err, persistence.ErrNotFound) {
		err = nil
	}
	if err != nil || p.End != "" {
		return false, failure.OfStore(err)
	}
	select {
	case x.turns <- struct{}{}:
		defer func() { <-x.turns }()
	case <-x.ctx.Done():
		return false, x.ctx.Err()
	}
	begun := time.Now()
	defer func() { wait.Sleep(x.ctx, time.Since(begun)) }()
	by, err := x.creator(j)
	switch {
	case errors.Is(err, failure.ErrForbidden):
		p.End = Cancelled
		return false, x.keep(j, p)
	case err != nil:
		return false, err
	}
	if len(p.Page) == 0 {
		if err := x.next(j, by, p); err != nil {
			return false, err
		}
		if err := x.keep(j, p); err != nil || p.End != "" {
			return false, err
		}
	}
	if err := x.act(j, by, p); err != nil {
		return false, err
	}
	if p.Page = nil; p.Cursor == "" {
		p.End = Done
	}
	return p.End == "", x.keep(j, p)
}

// creator is who acts: failure.ErrForbidden when it may not any more.
func (x *shard) creator(j *Job) (*identity.Principal, error) {
	if j.By == statemachine.System { // those who run the service, at its own machine
		return &identity.Principal{ID: statemachine.System, Privileges: []string{string(identity.Admin), string(identity.Workflows)}}, nil
	}
	by, err := x.o.Principal(identity.UserID(j.By))
	if err == nil && !by.Has(identity.Workflows) {
		err = failure.Needs(identity.Workflows)
	}
	if m := x.migrations.Load(); err == nil && j.Plan != nil && m != nil {
		if _, refused := (*m).Check(j.plan(by)); errors.Is(refused, failure.ErrForbidden) {
			err = refused
		}
	}
	return by, err
}

// next reads which instances come next.
func (x *shard) next(j *Job, by *identity.Principal, p *progress) error {
	req := j.request(by)
	req.Limit, req.Cursor = pageMax, p.Cursor
	end, err := x.o.Queries.QueryIn(x.ctx, x.number, req, func(item []byte) error {
		id, _ := data.Value(item).Lookup("_id")
		if !j.isOlder(id.Text()) {
			p.Page = append(p.Page, id.Text())
		}
		return nil
	})
	switch {
	case errors.Is(err, failure.ErrForbidden): // the rules of the workflow let its creator see nothing any more
		p.End = Cancelled
	case errors.Is(err, failure.ErrNotFound): // the workflow was retired
		p.End = Done
	case err != nil:
		return err
	default:
		if p.Cursor = end.Next; p.Cursor == "" && len(p.Page) == 0 {
			p.End = Done
		}
	}
	return nil
}

// act gives each instance of a page its turn. With an error some have had it, and will have it again without effect.
func (x *shard) act(j *Job, by *identity.Principal, p *progress) error {
	before := *p
	before.Failures = slices.Clone(p.Failures)
	err := x.each(j, by, p)
	if err != nil {
		*p = before
	}
	return err
}

func (x *shard) each(j *Job, by *identity.Principal, p *progress) error {
	if j.Plan != nil {
		return x.migrate(j, by, p)
	}
	for _, id := range p.Page {
		var err error
		retry := message.Retry{Key: j.key(), Fingerprint: j.fingerprint()}
		switch {
		case j.Delete:
			err = x.o.Delete(x.ctx, j.By, j.WorkflowID, id)
		case j.Reset != nil:
			_, err = x.o.Reset(x.ctx, &message.Reset{
				Load: message.Load{Caller: by, WorkflowID: j.WorkflowID, InstanceID: id}, To: j.Reset.To, Reason: j.Reset.Reason, Retry: retry,
			})
		default:
			_, err = x.o.Send(x.ctx, &message.Event{
				Caller: by, WorkflowID: j.WorkflowID, InstanceID: id, Name: j.Event, Data: j.Data, Counted: true, Retry: retry,
			})
		}
		switch {
		case err == nil, j.Delete && errors.Is(err, failure.ErrNotFound):
			p.Done++
		case isPassing(err):
			return err
		default:
			p.fail(id, err)
		}
	}
	return nil
}

func (x *shard) migrate(j *Job, by *identity.Principal, p *progress) error {
	m := x.migrations.Load()
	if m == nil {
		return failure.ErrUnavailable
	}
	outcomes, err := (*m).Here(x.ctx, &migration.Part{
		WorkflowID: j.WorkflowID, Instances: p.Page, Plan: j.Plan, User: j.By, Roles: by.Roles, Privileges: by.Privileges,
	})
	if err != nil && isPassing(err) {
		return err
	}
	for i, id := range p.Page {
		switch {
		case err != nil: // the plan fits no more
			p.fail(id, err)
		case outcomes[i].Refused != "":
			p.fail(id, failure.Refuse(failure.ErrNotAllowed, "%s", outcomes[i].Refused))
		default:
			p.Done++
		}
	}
	return nil
}

// isPassing reports whether another try may come to something else.
func isPassing(err error) bool {
	return slices.Contains([]failure.Kind{
		failure.ErrInstanceBusy, failure.ErrBusy, failure.ErrUnavailable, failure.ErrNotLeader, failure.ErrOutcomeUnknown,
	}, failure.Of(err).Kind)
}

func (x *shard) keep(j *Job, p *progress) error {
	w := x.o.Store.NewBatchIn(x.number, x.epoch)
	w.Set(key.Bulk(nil, x.number, j.place()), write(p))
	return failure.OfStore(x.o.Store.Commit(w))
}

// forget removes what the shard has of jobs that were removed. One that this node has not heard of yet is younger.
func (x *shard) forget(jobs []Job) error {
	w := x.o.Store.NewBatchIn(x.number, x.epoch)
	err := x.o.Store.Scan(key.BulkPrefix(nil, x.number), func(row, _ []byte) error {
		k, ok := key.Parse(row)
		if !ok {
			return persistence.ErrCorrupt
		}
		id := ulid.ULID(k.Reply).String()
		if id < jobs[len(jobs)-1].ID && !slices.ContainsFunc(jobs, func(j Job) bool { return j.ID == id }) {
			w.Delete(row)
		}
		return nil
	})
	if err != nil || w.Len() == 0 {
		w.Discard()
		return failure.OfStore(err)
	}
	return failure.OfStore(x.o.Store.Commit(w))
}
