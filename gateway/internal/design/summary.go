package design

import (
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
)

// showSummary answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/summary.
func (g *Group) showSummary(x *kernel.Exchange) error {
	of, err := x.InstanceRequest()
	if err != nil {
		return err
	}
	s, err := g.Presentations.Summary(x.Request.Context(), of)
	if err != nil {
		return err
	}
	languages := x.Languages()
	answer := api.Summary{
		WorkflowID: of.WorkflowID, InstanceID: of.InstanceID, WorkflowName: s.Of.Name, Version: s.Of.Version,
		Title: s.Called().For(languages...), Status: show.Statuses(&s.Line, languages), Columns: show.Columns(&s.Line, languages),
		CreatedAt: show.Time(s.Created), UpdatedAt: show.Time(s.Updated), Requester: s.Requester, RequesterName: show.Names{Users: g.Users}.Of(s.Requester),
		Done: s.IsDone, Ended: show.Ended(s.IsDone, s.IsEnded), Tasks: show.Tasks(s.Tasks, languages, show.Names{Users: g.Users}),
	}
	if s.Form != nil {
		answer.Form = &api.SummaryForm{FormID: s.Form.TemplateID, Name: s.Form.Name, Kind: s.Form.Kind.String()}
	}
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(s.Sequence)}
	return x.AnswerJSON(answer)
}
