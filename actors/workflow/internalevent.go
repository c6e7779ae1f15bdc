package workflow

import (
	"context"
	"errors"

	"troupe/actors/bulk"
	"troupe/actors/failure"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/instance"
	"troupe/actors/internal/instanceid"
	"troupe/actors/invoke"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/actors/retention"
	"troupe/actors/schedule"
	"troupe/actors/shard"
	"troupe/actors/timer"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// makeInternal makes what comes on its own. NB: before anything runs that commits, since each commit tells it.
func (r *Router) makeInternal() {
	if r.o.Sender != nil {
		r.env.Outbox = outbox.New(outbox.Options{
			Store: r.o.Store, Clock: r.o.Clock, Definition: r.o.Catalog.Version, Sender: r.o.Sender, Inside: r.deliverInside, Tracer: r.o.Tracer, Log: r.o.Log,
			Held: func() bool { return r.hold.Holds(hold.Outbox) },
			Tell: func(o *outbox.Outcome, done func(error)) {
				r.postInternal(o.Workflow, o.Key.ID, instance.TellOutcome{Outcome: o}, done)
			},
		})
	}
	r.invokes = invoke.New(invoke.Options{
		Store: r.o.Store, Catalog: r.o.Catalog, Clock: r.o.Clock, Log: r.o.Log, Principal: r.principal, Note: r.Incidents.Note, TreeMax: r.o.TreeInstancesMax,
		Read: func(ctx context.Context, of []query.Name, read func(query.Loader) error) error {
			if r.Fanout == nil {
				return read(r.o.Store)
			}
			return r.Queries.ReadInstances(ctx, statemachine.System, of, read)
		},
		Elsewhere: r.o.Elsewhere,
	})
	r.Waiting = pending.New(r.o.Store, r.Queries, r.o.Catalog, r.env.Outbox, r.o.Clock, r.Fanout)
	r.Jobs = job.New(job.Options{
		Store: r.o.Store, Clock: r.o.Clock, Log: r.o.Log, Types: r.o.Catalog.JobTypes, Queries: r.Queries, Fanout: r.Fanout, Peers: r.o.Peers,
		Tracer: r.o.Tracer,
		Held:   func() error { return r.hold.Refusal(hold.Jobs) },
		Finish: r.finishJob,
		Again: func(workflow string, of key.Job, done func(error)) {
			r.postInternal(workflow, of.ID, instance.RetryJob{ID: statemachine.ElementID{Sequence: of.Sequence, Number: of.Number}}, done)
		},
		MayRead: func(caller *identity.Principal, workflow, instance string) bool {
			return r.View(&message.Load{Caller: caller, WorkflowID: workflow, InstanceID: instance}, func(message.View) {}) == nil
		},
	})
	r.env.Jobs = r.Jobs
	r.env.Timers = timer.New(timer.Options{Store: r.o.Store, Clock: r.o.Clock, Fire: r.fire, Log: r.o.Log})
	r.Bulk = bulk.New(bulk.Options{
		Store: r.o.Store, Clock: r.o.Clock, Log: r.o.Log, Queries: r.Queries, Principal: r.principal, MaySend: r.env.MaySend, Send: r.Send, Reset: r.Reset, Current: r.o.Current, Audit: r.o.Audit,
		KnowsEvent: r.o.Catalog.KnowsEvent,
		Delete: func(ctx context.Context, user, workflow, instance string) error {
			return r.delete(ctx, user, workflow, instance, false, nil, &r.deleted.bulk)
		},
	})
	r.retention = retention.New(retention.Options{Store: r.o.Store, Clock: r.o.Clock, Log: r.o.Log, Retentions: r.o.Catalog.Retentions, Delete: r.expire})
	r.schedules = schedule.New(schedule.Options{
		Store: r.o.Store, Clock: r.o.Clock, Schedules: r.o.Catalog.Schedules, Create: r.createScheduled, Log: r.o.Log,
		Held: func() bool { return r.hold.Holds(hold.Schedules) },
	})
}

func (r *Router) background() []shard.Background {
	works := []shard.Background{{Name: "timers", Begin: r.env.Timers.Begin}, {Name: "schedules", Begin: r.schedules.Begin}, {Name: "retention", Begin: r.retention.Begin}, {Name: "bulk", Begin: r.Bulk.Begin}, {Name: "jobs", Begin: r.Jobs.Begin}}
	if r.env.Outbox != nil {
		works = append(works, shard.Background{Name: "outbox", Begin: r.env.Outbox.Begin})
	}
	return works
}

// fire gives an instance the event of a timer. One that was deleted has none any more.
func (r *Router) fire(row timer.Row, done func(error)) {
	span := r.o.Tracer.Begin(row.Trace, "timer", trace.Internal)
	if span != nil {
		span.Set("troupe.workflow", row.Workflow, "troupe.instance", instanceid.Text(row.Instance))
	}
	r.postInternal(row.Workflow, row.Instance, instance.FireTimer{ID: row.Timer, Span: span}, func(err error) {
		if errors.Is(err, failure.ErrNotFound) {
			err = nil
		}
		span.End(err) // NB: where its instance has not come to it
		done(err)
	})
}

// finishJob gives an instance the end of a job. Those of workers are bounded as other requests are.
func (r *Router) finishJob(f *job.Finish, done func(error)) {
	req := instance.FinishJob{Finish: f, Span: r.o.Tracer.Continue(f.Trace, "callback", trace.Internal)}
	if req.Span != nil {
		req.Span.Set("troupe.workflow", f.Workflow, "troupe.instance", instanceid.Text(f.Job.ID))
		answered := done
		done = func(err error) {
			req.Span.End(err) // NB: where its instance has not come to it
			answered(err)
		}
	}
	if f.Failed {
		r.postInternal(f.Workflow, f.Job.ID, req, done)
		return
	}
	err := r.accepting()
	if err == nil {
		var at shard.Place
		if at, err = r.shards.At(f.Job.ID); err == nil {
			_, err = r.post(at, f.Workflow, req, told{done})
		}
	}
	if err != nil {
		done(err)
	}
}

// postInternal gives an instance what nobody sent. It is not refused because many others ask: what comes on its own
// bounds its own number.
func (r *Router) postInternal(workflowID string, id key.ID, m instance.Request, done func(error)) {
	err := r.Accepting()
	if err == nil {
		err = r.shards.AdmitInternal()
	}
	if err == nil {
		var at shard.Place
		if at, err = r.shards.At(id); err != nil {
			r.shards.Dismiss()
		} else {
			_, err = r.shards.Post(at, workflowID, m, told{done})
		}
	}
	if err != nil {
		done(err)
	}
}

// told is the recipient of the answer to an event that nobody sent.
type told struct{ done func(error) }

// Begin implements message.Recipient.
func (told) Begin(message.Turn) error { return nil }

// Refused implements message.Recipient.
func (told) Refused(error) {}

// Answered implements message.Recipient.
func (f told) Answered(_ *message.Reply, err error) { f.done(err) }
