// Package migration gives running instances of one version of a workflow another version, many with one request.
//
// Nothing is kept about a migration: an instance that was migrated does not have the version From any more, so a
// request that was interrupted is made again.
package migration

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Bounds.
const (
	PageMax   = 1000 // the most instances of one request
	perSecond = 1000 // how many instances of all requests are migrated on one node, so that events go on beside them
	atATime   = 64   // how many of one request: they share fsyncs
)

// Instances are those of this node.
type Instances interface {
	Migrate(workflowID, instanceID string, m *message.Migration) (bool, error)
}

// Queries lists the instances of all nodes.
type Queries interface {
	Query(context.Context, *query.Request, func(item []byte) error) (*query.End, error)
}

// Options says how a Service works. All but Elsewhere must be set.
type Options struct {
	Instances Instances
	Queries   Queries
	Parser    *statemachine.Parser
	// Newest returns the newest version of a workflow; failure.ErrNotFound when there is no such workflow.
	Newest func(workflowID string) (*statemachine.Definition, error)
	// Pin is catalog.Catalog.PinVersion: what a plan was read with stays what the instances get.
	Pin       func(workflowID string, number uint64) (catalog.Pin, error)
	MayAssign func(workflowID string, by *identity.Principal) error // catalog.Catalog.MayAssign
	// Elsewhere has the node that leads a shard carry out a part. Nil: the store is standalone.
	Elsewhere func(ctx context.Context, shard uint16, p *Part) ([]Outcome, error)
	Log       zerolog.Logger
}

// Service migrates instances. Its methods are safe for concurrent use.
type Service struct {
	o     Options
	limit *rate.Limiter
}

// New returns a service.
func New(o Options) *Service { return &Service{o: o, limit: rate.NewLimiter(perSecond, atATime)} }

// Request asks for the migration of a page of instances.
type Request struct {
	Caller     *identity.Principal
	WorkflowID string
	File       string // Plan is the text of a plan, in YAML or JSON, and File its name in faults
	Plan       []byte
	Filter     string // the text of a filter; empty is all
	DryRun     bool   // nothing changes
	Limit      int    // the most instances, 1 to PageMax
	Cursor     string // Answer.Next of the page before; empty is the first page
}

// Answer says what happened to them.
type Answer struct {
	Matched, Migrated int
	Refused           []Refusal
	Next              string // the cursor of the next page; empty when there is none
}

// Refusal is an instance that stayed as it was, and why; or the reason says that it is not known.
type Refusal struct{ InstanceID, Reason string }

// Part is what one node does.
type Part struct {
	WorkflowID string   `json:"workflowId"`
	Instances  []string `json:"instances"`
	Plan       []byte   `json:"plan"`
	DryRun     bool     `json:"dryRun,omitempty"`
	User       string   `json:"user"`
	Roles      []string `json:"roles,omitempty"`
	Privileges []string `json:"privileges,omitempty"`
}

// Outcome is what happened to an instance.
type Outcome struct {
	// Migrated, or Refused with the reason. Neither: it has ended, or does not have the version any more.
	Migrated bool   `json:"migrated,omitempty"`
	Refused  string `json:"refused,omitempty"`
	err      error  // failure.ErrNotLeader
}

// Migrate migrates a page of instances. It returns document.Faults for a plan that cannot be, failure.ErrNotFound
// without the workflow, failure.ErrForbidden for a plan with assign by somebody who does not own the workflow, and the
// errors of a query.
func (s *Service) Migrate(ctx context.Context, req *Request) (*Answer, error) {
	answer, err := s.migrate(ctx, req)
	return answer, failure.In("migrate", req.WorkflowID, err)
}

func (s *Service) migrate(ctx context.Context, req *Request) (*Answer, error) {
	if _, err := s.o.Newest(req.WorkflowID); failure.Of(err).Kind == failure.ErrNotFound {
		return nil, failure.Refuse(failure.ErrNotFound, "there is no such workflow")
	}
	plan, release, err := s.plan(req.WorkflowID, req.File, req.Plan)
	defer release()
	if err != nil {
		return nil, err
	}
	if plan.Assigns() {
		if err := s.o.MayAssign(req.WorkflowID, req.Caller); err != nil {
			return nil, err
		}
	}
	if req.Limit < 1 || req.Limit > PageMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", PageMax)
	}
	part := &Part{
		WorkflowID: req.WorkflowID, Plan: req.Plan, DryRun: req.DryRun,
		User: string(req.Caller.ID), Roles: req.Caller.Roles, Privileges: req.Caller.Privileges,
	}
	end, err := s.o.Queries.Query(ctx, &query.Request{
		Caller: req.Caller, WorkflowID: req.WorkflowID, Filter: req.Filter, Limit: req.Limit, Cursor: req.Cursor,
		Version: plan.From(), Everyones: true,
	}, func(item []byte) error {
		id, _ := data.Value(item).Lookup("_id")
		part.Instances = append(part.Instances, id.Text())
		return nil
	})
	if err != nil {
		return nil, err
	}
	outcomes := s.here(ctx, plan, part)
	if s.o.Elsewhere != nil {
		s.elsewhere(ctx, part, outcomes)
	}
	answer := &Answer{Next: end.Next, Refused: []Refusal{}}
	for i, o := range outcomes {
		switch {
		case o.Migrated:
			answer.Migrated++
		case o.Refused != "":
			answer.Refused = append(answer.Refused, Refusal{part.Instances[i], o.Refused})
		default:
			continue
		}
		answer.Matched++
	}
	what := "instances were migrated"
	if req.DryRun {
		what = "a migration was tried; nothing has changed"
	}
	s.o.Log.Info().Str("workflow", req.WorkflowID).Uint64("from", plan.From()).Uint64("to", plan.To()).Str("user", part.User).
		Bool("assigns", plan.Assigns()).Bool("dry_run", req.DryRun).Int("migrated", answer.Migrated).Int("refused", len(answer.Refused)).Msg(what)
	return answer, nil
}

// Check returns the version that a plan migrates from, and the errors of Migrate for its plan and its caller.
func (s *Service) Check(req *Request) (from uint64, err error) {
	plan, release, err := s.plan(req.WorkflowID, req.File, req.Plan)
	defer release()
	if err != nil {
		return 0, err
	}
	if plan.Assigns() {
		err = s.o.MayAssign(req.WorkflowID, req.Caller)
	}
	return plan.From(), err
}

func (s *Service) plan(workflowID, file string, text []byte) (plan *statemachine.Plan, release func(), err error) {
	var pins []catalog.Pin
	release = func() {
		for _, pin := range pins {
			pin.Release()
		}
	}
	var passing error // that does not mention the plan
	plan, err = s.o.Parser.ParsePlan(file, text, func(number uint64) (*statemachine.Definition, error) {
		pin, err := s.o.Pin(workflowID, number)
		if failure.Of(err).Kind == failure.ErrNotFound {
			return nil, errors.New("there is no such version of " + workflowID)
		}
		if err != nil {
			passing = err
			return nil, err
		}
		pins = append(pins, pin)
		return pin.Definition(), nil
	})
	var faults document.Faults
	if passing != nil {
		err = passing
	} else if errors.As(err, &faults) {
		err = &failure.Error{Kind: failure.ErrInvalid, Reason: "the plan has errors; nothing was migrated", Cause: faults}
	}
	return plan, release, err
}

// Here carries out a part for the instances that are led here. The others are refused.
func (s *Service) Here(ctx context.Context, p *Part) ([]Outcome, error) {
	plan, release, err := s.plan(p.WorkflowID, "plan", p.Plan)
	defer release()
	if err != nil {
		return nil, err
	}
	outcomes := s.here(ctx, plan, p)
	for i := range outcomes {
		if err := outcomes[i].err; err != nil {
			outcomes[i] = Outcome{Refused: reasonOf(err)}
		}
	}
	return outcomes, nil
}

func (s *Service) here(ctx context.Context, plan *statemachine.Plan, p *Part) []Outcome {
	m := &message.Migration{
		Plan: plan, DryRun: p.DryRun, Caller: catalog.CallerOf(&identity.Principal{ID: identity.UserID(p.User), Roles: p.Roles, Privileges: p.Privileges}),
	}
	outcomes := make([]Outcome, len(p.Instances))
	var all sync.WaitGroup
	room := make(chan struct{}, atATime)
	for i, id := range p.Instances {
		if err := s.limit.Wait(ctx); err != nil {
			outcomes[i].Refused = "the request ended before"
			continue
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if guard.Try(s.o.Log, "migration of an instance", func() { outcomes[i] = s.one(p.WorkflowID, id, m) }) != nil {
				outcomes[i] = Outcome{Refused: reasonOf(failure.ErrInternal)}
			}
		})
	}
	all.Wait()
	return outcomes
}

// An instance that has too much to do is asked three times.
func (s *Service) one(workflowID, id string, m *message.Migration) Outcome {
	for tries := 1; ; tries++ {
		migrated, err := s.o.Instances.Migrate(workflowID, id, m)
		switch kind := failure.Of(err).Kind; {
		case err == nil:
			return Outcome{Migrated: migrated}
		case kind == failure.ErrNotLeader:
			return Outcome{err: err}
		case kind == failure.ErrNotFound:
			return Outcome{}
		case kind == failure.ErrInstanceBusy && tries < 3:
			continue
		default:
			return Outcome{Refused: reasonOf(err)}
		}
	}
}

func reasonOf(err error) string {
	if f := failure.Of(err); f.Reason != "" {
		return f.Reason
	} else if f.Kind != failure.ErrInternal {
		return f.Kind.Error()
	}
	return err.Error()
}

func (s *Service) elsewhere(ctx context.Context, p *Part, outcomes []Outcome) {
	shards := map[uint16][]int{}
	for i := range outcomes {
		if err := outcomes[i].err; err != nil {
			shard := failure.Of(err).Shard
			shards[shard] = append(shards[shard], i)
		}
	}
	var all sync.WaitGroup
	for shard, places := range shards {
		all.Go(func() {
			part := *p
			part.Instances = nil
			for _, i := range places {
				part.Instances = append(part.Instances, p.Instances[i])
			}
			done, err := s.o.Elsewhere(ctx, shard, &part)
			for k, i := range places {
				switch {
				case err != nil:
					outcomes[i] = Outcome{Refused: "it is not known whether it was migrated: " + reasonOf(err)}
				case k < len(done):
					outcomes[i] = done[k]
				}
			}
		})
	}
	all.Wait()
}
