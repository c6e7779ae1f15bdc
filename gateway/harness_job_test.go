package gateway

import (
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/job"
)

// fakeJobs are the jobs of the fake workflows: of a type that is called "none" there are none, and what comes of a job
// stands in front of its id.
type fakeJobs struct{ *fakeWorkflows }

func (f fakeJobs) Activate(ctx context.Context, a *job.Activation) ([]job.Leased, error) {
	err := f.ask(func() { f.asked = *a })
	if f.activate != nil {
		return f.activate(ctx, a)
	}
	if err != nil || a.Types[0] == "none" || f.paused != "" {
		return nil, err
	}
	return canned[[]job.Leased]("leased"), nil
}

func (f fakeJobs) Paused() error {
	if f.paused == "" {
		return nil
	}
	return errors.New(f.paused)
}

func (f fakeJobs) Change(_ context.Context, r *job.Request) ([]error, error) {
	err := f.ask(func() { f.asked = *r })
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(r.Items))
	for i := range r.Items {
		errs[i] = map[string]error{
			"lost": failure.ErrLeaseLost, "ended": failure.ErrEnded, "gone": failure.ErrNotFound, "elsewhere": failure.Elsewhere(1), "broken": errors.New("disk on fire"),
			"wrong": failure.Refuse(failure.ErrUnprocessable, "output.id must be a string"),
		}[r.Items[i].JobID]
	}
	return errs, nil
}

func (f fakeJobs) List(_ context.Context, q *job.Query) (*job.Page, error) {
	page := &job.Page{Jobs: canned[[]job.Listed]("jobs"), Next: "more"}
	switch {
	case q.JobID == "gone":
		page = &job.Page{}
	case q.JobID == "":
		page.Jobs[0].Data = nil
	}
	return page, f.ask(func() { f.asked = *q })
}

func (f fakeJobs) Types(_ context.Context, caller *identity.Principal) ([]job.TypeCount, error) {
	return canned[[]job.TypeCount]("jobTypes"), f.ask(func() { f.asked = string(caller.ID) })
}
