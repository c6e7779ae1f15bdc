// Package demo fills the store of an example home with requests in all their states: some weeks of work of the people
// who are in it. It works as those people do, at an instance router and a form portal whose clock goes through those
// weeks, so that what it leaves is what a service leaves: histories, tasks, timers, deliveries.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

// Options says where the requests go. All but Log must be set.
type Options struct {
	Workflow  workflow.Options // the router's options, with a store that no other router works on
	Templates *formportal.Templates
	Directory *identity.Directory
	Now       time.Time // when the weeks end
	Log       zerolog.Logger
}

// Seed makes the requests in a store that has no instance of the example's workflows, and returns how many it made.
func Seed(ctx context.Context, o Options) (made int, err error) {
	hasWorkflow := func(id string) bool {
		_, err := o.Workflow.Catalog.Newest(id)
		return err == nil
	}
	if err := Check(hasWorkflow, o.Directory); err != nil {
		return 0, err
	}
	s := &seeder{o: o, directory: o.Directory, answers: map[string]supplier{}}
	requests := story()
	s.now.Store(o.Now.UnixNano())
	system := actors.NewSystem(o.Log)
	w := o.Workflow
	w.System, w.Clock, w.Sender, w.Log = system, s.clock, s, o.Log
	if s.router, err = workflow.Start(w); err != nil {
		return 0, err
	}
	s.portal = formportal.Start(formportal.Options{
		System: system, Workflows: s.router, Templates: o.Templates, Clock: s.clock, Log: o.Log,
		Directory: func() *identity.Directory { return o.Directory },
	})
	defer func() { // NB: also after ctx has ended: the store must not be closed below a router
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, s.portal.Stop(ctx), s.router.Stop(ctx), system.Stop(ctx))
	}()
	if used, err := s.isUsed(ctx); err != nil || used {
		return 0, err
	}
	return s.make(ctx, requests)
}

type act func(*seeder, context.Context, *made, *identity.Principal) error

type step struct {
	ago time.Duration // before Now
	by  identity.UserID
	do  act
	of  *made
}

type made struct {
	*wanted
	id string
}

type seeder struct {
	o         Options
	directory *identity.Directory
	router    *workflow.Router
	portal    *formportal.Portal
	now       atomic.Int64 // Unix nanoseconds

	mu      sync.Mutex
	answers map[string]supplier // by instance: what its supplier says
}

func (s *seeder) clock() time.Time { return time.Unix(0, s.now.Load()) }

// make does the steps of all requests in the order of their times, so that the clock never goes back.
func (s *seeder) make(ctx context.Context, requests []*wanted) (int, error) {
	var steps []step
	for _, r := range requests {
		of := &made{wanted: r}
		steps = append(steps, step{r.ago, r.by, (*seeder).begin, of})
		for _, next := range r.steps {
			next.of = of
			steps = append(steps, next)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.ago, a.ago) })
	for _, next := range steps {
		s.now.Store(s.o.Now.Add(-next.ago).UnixNano())
		if err := next.do(s, ctx, next.of, s.directory.Principal(next.by)); err != nil {
			return 0, fmt.Errorf("%s of %s, %s ago, by %s: %w", next.of.workflow, next.of.by, next.of.ago, next.by, err)
		}
	}
	return len(requests), nil
}

// Check refuses a home that lacks somebody, or a workflow, of the requests.
func Check(hasWorkflow func(id string) bool, directory *identity.Directory) error {
	for _, r := range story() {
		if r.workflow != formportal.PlainWorkflow && !hasWorkflow(r.workflow) {
			return fmt.Errorf("it is not the example: it has no workflow %s", r.workflow)
		}
		if directory.Principal(r.by) == nil {
			return fmt.Errorf("it is not the example: it has no user %s", r.by)
		}
	}
	return nil
}

func (s *seeder) isUsed(ctx context.Context) (bool, error) {
	errFound := errors.New("found")
	for _, name := range []string{leaves, orders, counts} {
		err := s.o.Workflow.Store.Scan(key.RecordPrefix(nil, key.EveryShard, name), func(_, _ []byte) error { return errFound })
		if errors.Is(err, errFound) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, ctx.Err()
}

func (s *seeder) begin(ctx context.Context, of *made, by *identity.Principal) (err error) {
	if of.template == "" {
		reply, err := s.router.Create(ctx, &message.Create{Caller: by, WorkflowID: of.workflow})
		if err != nil {
			return err
		}
		of.id = reply.InstanceID
	} else {
		bound := of.workflow
		if bound == formportal.PlainWorkflow {
			bound = ""
		}
		if of.id, err = s.portal.Create(ctx, &formportal.CreateRequest{Caller: by, Kind: of.kind, TemplateID: of.template, WorkflowID: bound}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[of.id] = of.supplier
	return nil
}

func submits(body string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		_, err := s.portal.Submit(ctx, &formportal.SubmitRequest{
			FormRequest: formportal.FormRequest{Caller: by, WorkflowID: of.workflow, InstanceID: of.id}, Data: data.Value(body),
		})
		return err
	}
}

func drafts(body string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		_, err := s.portal.SaveDraft(ctx, &formportal.DraftRequest{
			FormRequest: formportal.FormRequest{Caller: by, WorkflowID: of.workflow, InstanceID: of.id}, Data: data.Value(body),
		})
		return err
	}
}

func sends(event, body string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		_, err := s.router.Send(ctx, &message.Event{Caller: by, WorkflowID: of.workflow, InstanceID: of.id, Name: event, Data: data.Value(body)})
		return err
	}
}

func says(text string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		_, err := s.router.AddComment(ctx, &message.Comment{Load: message.Load{Caller: by, WorkflowID: of.workflow, InstanceID: of.id}, Text: text})
		return err
	}
}

// comesTo waits until the request stands at a node, where the supplier's answer leads it.
func comesTo(node string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		look := time.NewTicker(2 * time.Millisecond)
		defer look.Stop()
		for {
			reply, err := s.router.Load(ctx, &message.Load{Caller: by, WorkflowID: of.workflow, InstanceID: of.id})
			if err != nil || bytes.Contains(reply.States, []byte(`"nodeId":"`+node+`"`)) {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-look.C:
			}
		}
	}
}

type supplier int

const (
	supplierSilent  supplier = iota // cannot be reached
	supplierAccepts                 // takes the order
	supplierRefuses                 // and will not take it later
)

// Send implements outbox.Sender.
func (s *seeder) Send(_ context.Context, a outbox.Attempt) outbox.Answer {
	if a.Queue == outbox.MailQueue {
		return outbox.Answer{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.answers[ulid.ULID(a.Instance).String()] {
	case supplierAccepts:
		return outbox.Answer{Status: 200, Body: data.Value(`{"accepted":true}`)}
	case supplierRefuses:
		return outbox.Answer{Err: errors.New("the supplier answered 410 Gone"), Final: true, Status: 410}
	}
	return outbox.Answer{Err: errors.New("the supplier does not answer")}
}

// URL implements outbox.Sender.
func (s *seeder) URL(outbox.Attempt) string { return "" }

var _ outbox.Sender = (*seeder)(nil)

type wanted struct {
	workflow string
	kind     form.Kind
	template string // "" when it is made without a form
	by       identity.UserID
	ago      time.Duration
	supplier supplier
	steps    []step
}
