package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Worker takes jobs of some types, has each of them done, and says what came of it. Set its fields, then call Run.
//
//	w := client.Worker{Client: c, Types: []string{"charge-card"}, Concurrency: 8, Handle: charge}
//	err := w.Run(ctx) // until ctx ends, and the jobs that it has are done
type Worker struct {
	Client *Client
	Types  []string
	Name   string // for lists; empty: the machine and the process
	// Concurrency is how many jobs it has at a time. 0: 1.
	Concurrency int
	// Lease is how long each lease is, which the worker extends as long as Handle runs: how soon another worker gets the job
	// when this one has gone. 0: a minute.
	Lease time.Duration
	// Handle does a job, and may run for several at a time. A job can come twice: Job.JobID is the same then. The output,
	// which may be nil, becomes JSON. An error is a failed attempt, with its text for people; Final and Later say more. ctx
	// ends when the job is no longer this worker's (what Handle returns then is dropped) and with Base.
	Handle func(ctx context.Context, job *Job) (output any, err error)
	// OnError hears what went wrong with the service, which is tried again, and of jobs that were lost, perhaps by several
	// goroutines at once. Nil: nobody.
	OnError func(error)
	// Base is above the contexts of Handle. When it ends, jobs are given back. Nil: none ends.
	Base context.Context //nolint:containedctx // it is one of the options
}

// Final marks an error of Handle after which there are no more attempts.
func Final(err error) error { return mark(err, JobFailure{Final: true}) }

// Later marks an error of Handle that does not count as an attempt: the job comes back after the delay of its type.
func Later(err error) error { return mark(err, JobFailure{Later: true}) }

// RetryIn marks an error of Handle after which the next attempt may begin so much later.
func RetryIn(wait time.Duration, err error) error { return mark(err, JobFailure{RetryIn: wait}) }

func mark(err error, as JobFailure) error {
	if err == nil {
		return nil
	}
	return markedError{err, as}
}

type markedError struct {
	error
	as JobFailure
}

func (m markedError) Unwrap() error { return m.error }

const (
	pollMax     = 20 * time.Second // for the first job
	extendMin   = 200 * time.Millisecond
	leaseOf     = time.Minute
	settledMax  = 1000
	settledSize = 1 << 20 // bytes of outputs in one request, about
)

// Run takes jobs until ctx ends, waits until those that it has are done and the service knows, and returns nil. It returns
// earlier, in the same way, with the *Error of a service that refuses this worker.
func (w *Worker) Run(ctx context.Context) error {
	r := &workerRun{Worker: w, ctx: ctx, slots: make(chan struct{}, max(w.Concurrency, 1)), outcomes: make(chan *outcome)}
	if r.base = w.Base; r.base == nil {
		r.base = context.WithoutCancel(ctx)
	}
	r.lease = cmp.Or(w.Lease, leaseOf)
	if r.name = w.Name; r.name == "" {
		host, _ := os.Hostname()
		r.name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	var settling sync.WaitGroup
	settling.Go(r.settle)
	err := r.take()
	r.jobs.Wait()
	close(r.outcomes)
	settling.Wait()
	return err
}

type workerRun struct {
	*Worker
	ctx, base context.Context //nolint:containedctx // of Run
	lease     time.Duration
	name      string
	slots     chan struct{} // one for each job, until its outcome is known
	jobs      sync.WaitGroup
	outcomes  chan *outcome // to settle
}

// outcome is what came of a job, on its way to the service.
type outcome struct {
	job    *Job
	output json.RawMessage
	failed *JobFailure // nil: it is done
	answer chan error
}

func (r *workerRun) report(err error) {
	if r.OnError != nil {
		r.OnError(err)
	}
}

// take activates jobs while there are slots, until ctx ends or the service refuses.
func (r *workerRun) take() error {
	// NB: the first time it does not wait, so that who starts it hears at once that no job is given.
	for failures, told, wait := 0, "", time.Duration(0); ; {
		select {
		case r.slots <- struct{}{}:
		case <-r.ctx.Done():
			return nil
		}
		if r.ctx.Err() != nil {
			return nil
		}
		<-r.slots
		free := cap(r.slots) - len(r.slots)
		jobs, paused, err := r.Client.activate(r.ctx, ActivateRequest{
			Types: r.Types, Worker: r.name, Max: min(free, settledMax), Lease: r.lease, Wait: wait,
		})
		for _, j := range jobs {
			r.slots <- struct{}{}
			r.jobs.Go(func() {
				defer func() { <-r.slots }()
				r.do(j)
			})
		}
		switch {
		case r.ctx.Err() != nil:
			return nil
		case err == nil:
			if paused != "" && paused != told {
				r.report(fmt.Errorf("there are no jobs: %s", paused))
			}
			failures, told, wait = 0, paused, min(pollMax, r.Client.options.CallMax/2)
			continue
		case isRefusal(err):
			return err
		}
		r.report(err)
		if r.Client.pause(r.ctx, spread(r.Client.backoff(r.Client.options.RetryWait, failures))) != nil {
			return nil
		}
		failures++
	}
}

// isRefusal reports whether the service has said what asking again does not change.
func isRefusal(err error) bool {
	refused := (*Error)(nil)
	return errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout ||
		errors.Is(err, ErrInvalid)
}

// do has one job done, and the service told.
func (r *workerRun) do(job *Job) {
	ctx, lose := context.WithCancelCause(r.base)
	k := &keeper{workerRun: r, job: job, lose: lose, until: time.Now().Add(job.lasts)}
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer lose(nil)
	keeping.Go(func() { k.keep(ctx) })
	o := r.handle(ctx, job)
	for failures := 0; ; failures++ {
		if cause := context.Cause(ctx); isRefusal(cause) {
			r.report(fmt.Errorf("job %s is lost: %w", job.JobID, cause))
			return
		}
		r.outcomes <- o
		err := <-o.answer
		refused := (*Error)(nil)
		switch {
		case err == nil:
			return
		case !isRefusal(err):
		case o.failed != nil, errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusNotFound):
			r.report(fmt.Errorf("job %s is lost: %w", job.JobID, err))
			return
		default: // it does not take the output
			o, failures = newOutcome(job, nil, err), 0
			continue
		}
		r.report(fmt.Errorf("the outcome of job %s: %w", job.JobID, err))
		if r.base.Err() != nil || r.ctx.Err() != nil && time.Now().After(k.ends()) {
			return // it comes back to another worker
		}
		_ = r.Client.pause(ctx, spread(r.Client.backoff(r.Client.options.RetryWait, failures)))
	}
}

// handle calls Handle, and makes an outcome of what it returns.
func (r *workerRun) handle(ctx context.Context, job *Job) (o *outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			o = newOutcome(job, nil, fmt.Errorf("panic: %v", reason))
		}
	}()
	output, err := r.Handle(ctx, job)
	if err != nil && r.base.Err() != nil {
		err = Later(err)
	}
	return newOutcome(job, output, err)
}

func newOutcome(job *Job, output any, err error) *outcome {
	o := &outcome{job: job, answer: make(chan error, 1)}
	if err == nil && output != nil {
		o.output, err = encode(output)
	}
	if err != nil {
		o.failed = &JobFailure{}
		marked := markedError{}
		if errors.As(err, &marked) {
			*o.failed = marked.as
		}
		o.failed.JobID, o.failed.Lease, o.failed.Message = job.JobID, job.Lease, err.Error()
		if refused := (*Error)(nil); errors.As(err, &refused) && refused.Message != "" {
			o.failed.Message = refused.Message
		}
	}
	return o
}

// keeper extends the lease of a job.
type keeper struct {
	*workerRun
	job   *Job
	lose  context.CancelCauseFunc
	mu    sync.Mutex
	until time.Time // guarded by mu
}

// ends is when the lease does, as far as it is known.
func (k *keeper) ends() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.until
}

// keep extends the lease when half of it is over, until ctx ends or the lease is lost.
func (k *keeper) keep(ctx context.Context) {
	wait := max(k.job.lasts/2, extendMin)
	for failures := 0; ; {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		by := max(k.job.lasts.Round(time.Second), time.Second)
		asked := time.Now()
		errs, err := k.Client.Extend(ctx, []Extension{{JobID: k.job.JobID, Lease: k.job.Lease, By: by}})
		if err == nil {
			err = errs[0]
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			k.mu.Lock()
			k.until = asked.Add(by)
			k.mu.Unlock()
			wait, failures = max(by/2, extendMin), 0
			continue
		case isRefusal(err):
			k.lose(err)
			return
		}
		k.report(fmt.Errorf("extend the lease of job %s: %w", k.job.JobID, err))
		wait = spread(k.Client.backoff(k.Client.options.RetryWait, failures))
		failures++
	}
}

// settle tells the service of outcomes: while it tells of some, those that come wait for the next request together.
func (r *workerRun) settle() {
	for first := range r.outcomes {
		batch, size := []*outcome{first}, len(first.output)
		for more := true; more && len(batch) < settledMax && size < settledSize; {
			select {
			case o, ok := <-r.outcomes:
				if more = ok; ok {
					batch, size = append(batch, o), size+len(o.output)
				}
			default:
				more = false
			}
		}
		r.tell(batch)
	}
}

func (r *workerRun) tell(batch []*outcome) {
	ctx := context.WithoutCancel(r.ctx)
	var done, failed []*outcome
	var completions []Completion
	var failures []JobFailure
	for _, o := range batch {
		if o.failed == nil {
			done, completions = append(done, o), append(completions, Completion{JobID: o.job.JobID, Lease: o.job.Lease, Output: o.output})
		} else {
			failed, failures = append(failed, o), append(failures, *o.failed)
		}
	}
	tellAll(done, completions, func(c []Completion) ([]error, error) { return r.Client.Complete(ctx, c) })
	tellAll(failed, failures, func(f []JobFailure) ([]error, error) { return r.Client.Fail(ctx, f) })
}

// tellAll sends one request for all, and one for each when the service takes no such request.
func tellAll[T any](outcomes []*outcome, items []T, send func([]T) ([]error, error)) {
	if len(items) == 0 {
		return
	}
	errs, err := send(items)
	if err != nil && isRefusal(err) && len(items) > 1 {
		for i := range items {
			tellAll(outcomes[i:i+1], items[i:i+1], send)
		}
		return
	}
	for i, o := range outcomes {
		if err != nil {
			o.answer <- err
		} else {
			o.answer <- errs[i]
		}
	}
}
