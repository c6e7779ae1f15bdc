// Package jobs has the routes of jobs: programs take them and say what came of them, operators list and change them.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"troupe/actors/audit"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Jobs   Jobs
	Bodies Bodies

	stopping context.Context //nolint:containedctx // it ends waits, as its cancel does
	stop     context.CancelFunc
}

// New makes a group.
func New() *Group {
	g := &Group{}
	g.stopping, g.stop = context.WithCancel(context.Background())
	return g
}

// StopWaiting ends the waits of activations, which answer what there is.
func (g *Group) StopWaiting() { g.stop() }

// Jobs gives work of instances to programs. Errors are those of package failure.
type Jobs interface {
	// Activate returns jobs whose leases are durable. When ctx ends while it waits, it has leased nothing, and its error is
	// that of ctx.
	Activate(context.Context, *job.Activation) ([]job.Leased, error)
	// Change has one error for each item, in order; nil: done, and durable.
	Change(context.Context, *job.Request) ([]error, error)
	List(context.Context, *job.Query) (*job.Page, error)
	// Paused is nil, or why no job is given now.
	Paused() error
	// Types counts the jobs of all types that the caller may list.
	Types(ctx context.Context, caller *identity.Principal) ([]job.TypeCount, error)
}

// Bodies reads the bodies of requests with many items, which have a bound in all.
type Bodies interface {
	ReadBody(*kernel.Exchange) ([]byte, error)
	ReleaseBody(*kernel.Exchange)
}

// Routes are jobs.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath, Operator: true}
	activate := base.Row("activate-jobs", "POST", "/jobs/activate", g.activate)
	base.ReadsBody = true
	change := base.Row
	base.Privilege, base.OrPrivilege = identity.Workflows, identity.Jobs
	operate := base.Row
	base.ReadsBody = false
	return []kernel.Route{
		activate,
		change("complete-jobs", "POST", "/jobs/complete", g.change(job.Complete)),
		change("fail-jobs", "POST", "/jobs/fail", g.change(job.Fail)),
		change("extend-jobs", "POST", "/jobs/extend", g.change(job.Extend)),
		operate("retry-jobs", "POST", "/jobs/retry", g.change(job.Retry)),
		operate("cancel-jobs", "POST", "/jobs/cancel", g.change(job.Cancel)),
		base.Row("jobs", "GET", "/jobs", g.list, "type", "state", "workflowId", "limit", "cursor"),
		base.Row("job-types", "GET", "/jobs/types", g.listTypes),
		base.Row("job", "GET", "/job/:jobId", g.show),
	}
}

// activate looks for jobs at once. A request that has to wait for the first counts as a wait meanwhile, and no longer
// as a request in flight.
func (g *Group) activate(x *kernel.Exchange) error {
	asked, err := parseActivation(x.Body)
	if err != nil {
		return err
	}
	wait := asked.Wait
	asked.Caller, asked.Wait = x.Caller, 0
	leased, err := g.Jobs.Activate(x.Request.Context(), asked)
	if err == nil && len(leased) == 0 && wait > 0 {
		asked.Wait = wait
		leased, err = g.await(x, asked)
	}
	if err != nil {
		return err
	}
	x.Out = append(x.Out, `{"jobs":[`...)
	for i := range leased {
		if i > 0 {
			x.Out = append(x.Out, ',')
		}
		x.Out = appendLeased(x.Out, &leased[i])
	}
	x.Out = append(x.Out, ']')
	if err := g.Jobs.Paused(); err != nil && len(leased) == 0 {
		x.Out = data.AppendString(append(x.Out, `,"paused":`...), err.Error())
	}
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
	return nil
}

// await activates with a wait.
func (g *Group) await(x *kernel.Exchange, asked *job.Activation) ([]job.Leased, error) {
	if err := x.AdmitWait(); err != nil {
		return nil, err
	}
	defer x.ReleaseWait()
	x.EndAdmission()
	ctx, cancel := context.WithCancel(x.Request.Context())
	defer cancel()
	defer context.AfterFunc(g.stopping, cancel)()
	leased, err := g.Jobs.Activate(ctx, asked)
	x.RenewWriteTime()
	switch {
	case g.stopping.Err() != nil && errors.Is(err, context.Canceled):
		return nil, nil
	case err != nil || len(leased) == 0:
		return nil, err
	}
	// NB: a wait must not outlive its credential, and what nobody reads must not wait until its lease has ended.
	if _, err = x.Reauthorize(); err == nil {
		err = x.Request.Context().Err()
	}
	if err == nil {
		return leased, nil
	}
	g.giveBack(x, leased)
	if errors.Is(err, kernel.ErrWatchOver) { // whoever asks again has the other rights
		return nil, nil
	}
	return nil, err
}

// giveBack ends leases that nobody got.
func (g *Group) giveBack(x *kernel.Exchange, leased []job.Leased) {
	back := &job.Request{Caller: x.Caller, Action: job.Fail}
	for i := range leased {
		back.Items = append(back.Items, job.Item{JobID: leased[i].JobID, Lease: leased[i].Lease, Later: true, RetryIn: new(time.Duration)})
	}
	_, _ = g.Jobs.Change(context.WithoutCancel(x.Request.Context()), back) // else the leases run out
}

// appendLeased appends an api.Job. NB: programs take thousands of them in a second.
func appendLeased(dst []byte, l *job.Leased) []byte {
	text := func(name, value string) { dst = data.AppendString(append(dst, name...), value) }
	number := func(name string, value uint64) { dst = strconv.AppendUint(append(dst, name...), value, 10) }
	at := func(name string, value time.Time) {
		dst = append(show.AppendTime(append(append(dst, name...), '"'), value), '"')
	}
	text(`{"jobId":`, l.JobID)
	text(`,"lease":`, l.Lease)
	text(`,"type":`, l.Type)
	text(`,"workflowId":`, l.WorkflowID)
	number(`,"version":`, l.Version)
	text(`,"instanceId":`, l.InstanceID)
	text(`,"stateMachineId":`, l.StateMachineID)
	text(`,"nodeId":`, l.NodeID)
	number(`,"attempt":`, uint64(l.Attempt))           //nolint:gosec // not negative
	number(`,"attemptsLeft":`, uint64(l.AttemptsLeft)) //nolint:gosec // not negative
	number(`,"priority":`, uint64(l.Priority))         //nolint:gosec // 0 to 100
	at(`,"created":`, l.Created)
	at(`,"deadline":`, l.Deadline)
	dst = append(append(dst, `,"data":`...), cmp.Or(string(l.Data), "null")...)
	if l.Traceparent != "" {
		text(`,"traceparent":`, l.Traceparent)
	}
	return append(dst, '}')
}

// change is what changes jobs. What operators do is recorded for each job, as long as there is one.
func (g *Group) change(action job.Action) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		defer g.Bodies.ReleaseBody(x)
		if parse.IsLines(x.Request.Header) {
			return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json, in UTF-8")
		}
		body, err := g.Bodies.ReadBody(x)
		if err != nil {
			return err
		}
		request := &job.Request{Caller: x.Caller, Action: action}
		if request.Items, err = parseItems(action, body); err != nil {
			return err
		}
		errs, err := g.Jobs.Change(x.Request.Context(), request)
		if err != nil {
			return err
		}
		x.Out = append(x.Out, `{"results":[`...)
		for i, err := range errs {
			if i > 0 {
				x.Out = append(x.Out, ',')
			}
			if err == nil && (action == job.Retry || action == job.Cancel) {
				err = x.Services.Audit.Record(x.Request.Context(), string(x.Caller.ID), audit.Action("job."+action), request.Items[i].JobID)
			}
			if err == nil {
				x.Out = append(x.Out, `{"status":200}`...)
			} else {
				x.AppendItemError(explained(err))
			}
		}
		x.Out = append(x.Out, "]}"...)
		x.Send(http.StatusOK)
		return nil
	}
}

// explained is an error with what it means for a job.
func explained(err error) error {
	if of := failure.Of(err); of.Kind == failure.ErrEnded && of.Reason == "" {
		return failure.Refuse(failure.ErrEnded, "the job has ended, or its instance has left the state that waited for it; stop working on it")
	}
	return err
}

func (g *Group) list(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	query := job.Query{
		Caller: x.Caller, Type: q.Text("type"), State: parse.Choice(&q, "state", job.Waiting, job.Running, job.Failed),
		WorkflowID: q.Text("workflowId"), Limit: q.Limit(parse.PageDefault), Cursor: q.Cursor(),
	}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Jobs.List(x.Request.Context(), &query)
	if err != nil {
		return err
	}
	answer := api.JobList{Jobs: make([]api.ListedJob, len(page.Jobs)), Next: x.LinkNext(page.Next)}
	for i := range page.Jobs {
		answer.Jobs[i] = show.Job(&page.Jobs[i])
	}
	return x.AnswerJSON(answer)
}

func (g *Group) show(x *kernel.Exchange) error {
	page, err := g.Jobs.List(x.Request.Context(), &job.Query{Caller: x.Caller, JobID: x.Params.ByName("jobId"), Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Jobs) == 0 {
		return failure.ErrNotFound
	}
	return x.AnswerJSON(show.Job(&page.Jobs[0]))
}

func (g *Group) listTypes(x *kernel.Exchange) error {
	counts, err := g.Jobs.Types(x.Request.Context(), x.Caller)
	if err != nil {
		return err
	}
	answer := api.JobTypes{Types: make([]api.JobType, len(counts))}
	for i := range counts {
		c := &counts[i]
		answer.Types[i] = api.JobType{
			Type: c.Type, Waiting: c.Waiting, Running: c.Running, Failed: c.Failed, Oldest: show.TimeOrNil(c.Oldest), Workers: show.OrEmpty(c.Workers),
		}
	}
	return x.AnswerJSON(answer)
}
