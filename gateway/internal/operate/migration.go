package operate

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/migration"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// Migrations gives running instances other versions. The error of a plan with faults is failure.ErrInvalid and wraps document.Faults.
type Migrations interface {
	Migrate(context.Context, *migration.Request) (*migration.Answer, error)
}

// migrateInstances answers POST workflow/api/v1/instances/{workflowId}/migrate.
func (g *Group) migrateInstances(x *kernel.Exchange) error {
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	if g.Migrations == nil {
		return failure.ErrNotFound
	}
	request, err := parseMigration(x.Body)
	if err != nil {
		return err
	}
	request.Caller, request.WorkflowID = x.Caller, x.Params.ByName("workflowId")
	answer, err := g.Migrations.Migrate(x.Request.Context(), request)
	if err != nil {
		return x.AnswerFaults(err)
	}
	shown := api.MigrationAnswer{Matched: answer.Matched, Migrated: answer.Migrated, Refused: []api.MigrationRefusal{}}
	for _, r := range answer.Refused {
		shown.Refused = append(shown.Refused, api.MigrationRefusal(r))
	}
	if answer.Next != "" {
		shown.Next = &answer.Next
	}
	return x.AnswerJSON(shown)
}

// parseMigration reads the body.
func parseMigration(body []byte) (*migration.Request, error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, err
	}
	request := &migration.Request{Limit: migration.PageMax}
	for key, v := range value.Members() {
		switch key {
		case "plan":
			switch v.Kind() {
			case data.Object:
				request.File, request.Plan = "plan.json", v
			case data.String:
				request.File, request.Plan = "plan.yaml", []byte(v.Text())
			default:
				return nil, parse.Malformed(`"plan" must be an object, or a string with YAML, not %s`, parse.WithArticle(v.Kind()))
			}
		case "filter":
			filter, err := parse.ObjectMember(v, key)
			if err != nil {
				return nil, err
			}
			request.Filter = string(filter)
		case "dryRun":
			if v.Kind() != data.Bool {
				return nil, parse.Malformed(`"dryRun" must be true or false, not %s`, parse.WithArticle(v.Kind()))
			}
			request.DryRun = string(v) == "true"
		case "limit":
			n, ok := v.Int64()
			if !ok || n < 1 || n > migration.PageMax {
				return nil, parse.Malformed(`"limit" must be a whole number from 1 to %d`, migration.PageMax)
			}
			request.Limit = int(n)
		case "cursor":
			if v.Kind() == data.Null {
				continue // "next" of an answer
			}
			if request.Cursor, err = parse.StringMember(v, key); err != nil {
				return nil, err
			}
		default:
			return nil, parse.UnknownMember("", key, "plan", "filter", "dryRun", "limit", "cursor")
		}
	}
	if request.Plan == nil {
		return nil, parse.Malformed(`the member "plan" is missing`)
	}
	return request, nil
}
