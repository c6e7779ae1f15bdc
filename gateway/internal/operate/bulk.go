package operate

import (
	"context"

	"troupe/actors/bulk"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// BulkJobs does one thing to many instances. Errors are those of package failure; that of a plan with faults wraps
// document.Faults.
type BulkJobs interface {
	// Create begins a job, unless it is a dry run, and counts what it is for.
	Create(ctx context.Context, by *identity.Principal, j *bulk.Job, dryRun bool) error
	// Change pauses, resumes or ends a job. It returns when it is durable.
	Change(ctx context.Context, who, id string, action bulk.Action) error
	Find(ctx context.Context, id string) (*bulk.State, error)
	List(context.Context) ([]*bulk.State, error)
}

func (g *Group) createBulk(x *kernel.Exchange) error {
	job, dryRun, err := parseBulk(x.Body)
	if err != nil {
		return err
	}
	if err := g.BulkJobs.Create(x.Request.Context(), x.Caller, job, dryRun); err != nil {
		return x.AnswerFaults(err)
	}
	answer := api.BulkCreated{Count: job.Total}
	if job.ID != "" {
		answer.ID = &job.ID
	}
	return x.AnswerJSON(answer)
}

func (g *Group) listBulk(x *kernel.Exchange) error {
	jobs, err := g.BulkJobs.List(x.Request.Context())
	if err != nil {
		return err
	}
	answer := api.BulkList{Bulk: []api.BulkJob{}}
	for _, j := range jobs {
		answer.Bulk = append(answer.Bulk, bulkOf(j))
	}
	return x.AnswerJSON(answer)
}

func (g *Group) showBulk(x *kernel.Exchange) error {
	job, err := g.BulkJobs.Find(x.Request.Context(), x.Params.ByName("id"))
	if err != nil {
		return err
	}
	return x.AnswerJSON(bulkOf(job))
}

func (g *Group) changeBulk(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, bulk.Pause, bulk.Resume, bulk.Cancel)
	if err != nil {
		return err
	}
	if err := g.BulkJobs.Change(x.Request.Context(), string(x.Caller.ID), x.Params.ByName("id"), action); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

func bulkOf(s *bulk.State) api.BulkJob {
	out := api.BulkJob{
		ID: s.ID, WorkflowID: s.WorkflowID, Action: "event", Event: s.Event, User: s.By, Created: show.Time(s.Created),
		Status: string(s.Status), Done: s.Done, Failed: s.Failed, Total: s.Total, Failures: []api.BulkFailure{},
	}
	switch {
	case s.Delete:
		out.Action = "delete"
	case s.Reset != nil:
		out.Action, out.Reset = "reset", &api.ResetRequest{To: s.Reset.To, Reason: s.Reset.Reason}
	case s.From != 0: // the plan is gone when it has ended
		out.Action = "migrate"
	}
	for _, f := range s.Failures {
		out.Failures = append(out.Failures, api.BulkFailure(f))
	}
	return out
}

var (
	bulkShape = parse.NewShape("",
		parse.Field{Name: "workflowId", Kind: data.String, Required: true}, parse.Field{Name: "filter", Kind: data.Object},
		parse.Field{Name: "action", Kind: data.Object, Required: true}, parse.Field{Name: "dryRun"},
	)
	bulkActionShape = parse.NewShape("action.",
		parse.Field{Name: "event", Kind: data.Object}, parse.Field{Name: "migrate", Kind: data.Object}, parse.Field{Name: "delete"},
		parse.Field{Name: "reset", Kind: data.Object},
	)
	bulkResetShape = resetShape("action.reset.")
	bulkEventShape = parse.NewShape("action.event.", parse.Field{Name: "name", Kind: data.String, Required: true}, parse.Field{Name: "data", Kind: data.Object})
)

func parseBulk(body []byte) (job *bulk.Job, dryRun bool, err error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, false, err
	}
	var members [4]data.Value
	var action [4]data.Value
	if err := bulkShape.Read(value, members[:]); err != nil {
		return nil, false, err
	}
	if err := bulkActionShape.Read(members[2], action[:]); err != nil {
		return nil, false, err
	}
	job = &bulk.Job{WorkflowID: members[0].Text(), Filter: string(members[1])}
	if dryRun, err = flag(members[3], "dryRun"); err == nil {
		job.Delete, err = flag(action[2], "action.delete")
	}
	if err != nil {
		return nil, false, err
	}
	asked := 0
	for _, has := range []bool{len(action[0]) > 0, len(action[1]) > 0, job.Delete, len(action[3]) > 0} {
		if has {
			asked++
		}
	}
	if asked != 1 {
		return nil, false, parse.Malformed(`"action" must have one of "event", "migrate", "reset" and "delete": true`)
	}
	if job.Delete && len(members[1]) == 0 {
		return nil, false, parse.Malformed(`"filter" is missing; {} deletes all instances of the workflow`)
	}
	if len(action[0]) > 0 {
		var event [2]data.Value
		if err := bulkEventShape.Read(action[0], event[:]); err != nil {
			return nil, false, err
		}
		if job.Event, job.Data = event[0].Text(), event[1]; job.Event == "" {
			return nil, false, parse.Malformed(`"action.event.name" must not be empty`)
		}
	}
	if len(action[1]) > 0 {
		if err := readPlan(job, action[1]); err != nil {
			return nil, false, err
		}
	}
	if len(action[3]) > 0 {
		to, reason, err := parseReset(action[3], bulkResetShape)
		if err != nil {
			return nil, false, err
		}
		job.Reset = &bulk.Reset{To: to, Reason: reason}
	}
	if !statemachine.IsIdentifier(job.WorkflowID) {
		return nil, false, failure.ErrNotFound
	}
	return job, dryRun, nil
}

// readPlan reads a plan, or an object that has it as its member plan.
func readPlan(job *bulk.Job, v data.Value) error {
	job.File, job.Plan = "plan.json", v
	plan, has := v.Lookup("plan")
	if !has {
		return nil
	}
	for key := range v.Members() {
		if key != "plan" {
			return parse.UnknownMember("action.migrate.", key, "plan")
		}
	}
	var err error
	job.File, job.Plan, err = planOf(plan, "action.migrate.plan")
	return err
}

func flag(v data.Value, name string) (bool, error) {
	if len(v) > 0 && v.Kind() != data.Bool {
		return false, parse.Malformed(`"%s" must be true or false, not %s`, name, parse.WithArticle(v.Kind()))
	}
	return string(v) == "true", nil
}
