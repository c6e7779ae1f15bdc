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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/job"
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
		_, err := s.router.AddComment(&message.Comment{Load: message.Load{Caller: by, WorkflowID: of.workflow, InstanceID: of.id}, Text: text})
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

// pays does what a worker does with the job of an order that was delivered: completes it, or says why it has failed for good.
func pays(why string) act {
	return func(s *seeder, ctx context.Context, of *made, by *identity.Principal) error {
		leased, err := s.router.Jobs.Activate(ctx, &job.Activation{Caller: by, Types: []string{"pay-supplier"}, Worker: "payments-1", Max: 1, Wait: job.WaitMax})
		if err != nil {
			return err
		}
		if len(leased) == 0 || leased[0].InstanceID != of.id {
			return errors.New("another order waits to be paid")
		}
		item := job.Item{JobID: leased[0].JobID, Lease: leased[0].Lease, Output: data.Value(`{"receipt":"R-` + of.id[len(of.id)-4:] + `"}`)}
		action := job.Complete
		if why != "" {
			item.Output, item.Message, item.Final, action = nil, why, true, job.Fail
		}
		errs, err := s.router.Jobs.Change(ctx, &job.Request{Caller: by, Action: action, Items: []job.Item{item}})
		return errors.Join(append(errs, err)...)
	}
}

type supplier int

const (
	supplierSilent  supplier = iota // cannot be reached
	supplierAccepts                 // takes the order
	supplierRefuses                 // and will not take it later
)

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

// Greeting is what the server says of the example to the person who has started it.
type Greeting struct {
	// Home is its folder, as a shell takes it. The service is at Address, with BasePath behind it.
	Home, Address, BasePath string
	Troupe                  string                                         // how the program is called
	Link                    func(user identity.UserID, next string) string // Link makes a link that signs a user in, as login.Links.Add does
	Made                    int                                            // how many requests were made
}

// guests are the people whom links sign in, and where they begin.
var guests = []struct {
	user identity.UserID
	what string
	next string
}{
	{john, "John Doe, an employee", ""},
	{mary, "Mary Major, a manager", ""},
	{olivia, "Olivia Park, an operator", "/operations"},
}

// Text is what the person reads.
func (g *Greeting) Text() string {
	var b strings.Builder
	base := g.Address + g.BasePath
	if g.Made > 0 {
		fmt.Fprintf(&b, "%d example requests were created.\n", g.Made)
	}
	if g.Link != nil {
		b.WriteString("\nOpen a link to sign in. Each link works once, in a browser on this machine, for ten minutes:\n\n")
		for _, who := range guests {
			next := who.next
			if next != "" {
				next = g.BasePath + next
			}
			fmt.Fprintf(&b, "  %-25s %s%s\n", who.what, base, g.Link(who.user, next))
		}
	} else {
		b.WriteString("\nThere are no sign-in links, because other machines can reach this address.\n")
	}
	fmt.Fprintf(&b, "\nFor programs and passwords, in a second terminal:\n\n"+
		"  TOKEN=$(%s token create --home %s --user john.doe)\n"+
		"  curl -s -H \"Authorization: svc.token $TOKEN\" -H \"Content-Type: application/json\" -d '{\"workflowId\":\"leave-request\"}' %s/workflow/api/v1/create\n"+
		"  echo 'a password' | %s password set --home %[2]s --user john.doe\n", g.Troupe, g.Home, base, g.Troupe)
	return b.String()
}

const (
	leaves = "leave-request"
	orders = "purchase-order"
	counts = "stock-take"

	john  identity.UserID = "john.doe"
	mary  identity.UserID = "mary.major"
	paulo identity.UserID = "paulo.santos"

	olivia identity.UserID = "olivia.park" // who runs the service, and asks for nothing

	payments identity.UserID = "payment.worker" // a program
)

func after(days float64, by identity.UserID, do act) step {
	return step{ago: ago(days), by: by, do: do}
}

func ago(days float64) time.Duration { return time.Duration(days * float64(24*time.Hour)) }

func leave(days float64, by identity.UserID, steps ...step) *wanted {
	return &wanted{workflow: leaves, kind: form.KindForm, template: "leave-form", by: by, ago: ago(days), steps: steps}
}

func order(days float64, by identity.UserID, says supplier, steps ...step) *wanted {
	return &wanted{workflow: orders, kind: form.KindForm, template: "order-form", by: by, ago: ago(days), supplier: says, steps: steps}
}

func count(days float64, steps ...step) *wanted {
	return &wanted{workflow: counts, by: paulo, ago: ago(days), steps: steps}
}

func plain(kind form.Kind, template string, days float64, by identity.UserID, steps ...step) *wanted {
	return &wanted{workflow: formportal.PlainWorkflow, kind: kind, template: template, by: by, ago: ago(days), steps: steps}
}

const (
	none     = `{}`
	laptop   = `{"items":[{"name":"Laptop","quantity":2,"price":1200}]}`
	chairs   = `{"items":[{"name":"Office chair","quantity":6,"price":249.5},{"name":"Floor mat","quantity":6,"price":39.9}],"note":"For the new room on the second floor."}`
	desks    = `{"items":[{"name":"Standing desk","quantity":7,"price":438.76}]}`
	screens  = `{"items":[{"name":"Screen","quantity":5,"price":310}]}`
	server   = `{"items":[{"name":"Server","quantity":2,"price":5800},{"name":"Rack","quantity":1,"price":400}]}`
	paper    = `{"items":[{"name":"Paper, box of 5 reams","quantity":4,"price":22.5}]}`
	headsets = `{"items":[{"name":"Headset","quantity":4,"price":85}]}`
	toner    = `{"items":[{"name":"Toner","quantity":2,"price":64.95}],"note":"The printer on the first floor is nearly empty."}`
	printer  = `{"items":[{"name":"Printer","quantity":1,"price":760}]}`
	tablet   = `{"items":[{"name":"Tablet","quantity":3,"price":629}]}`
	goodLuck = `{"comment":"Enjoy!"}`
)

// Anyone who reads what comes of it finds every state of every workflow.
func story() []*wanted {
	return []*wanted{
		// Leave requests: two days are approved at once, longer ones wait for Mary and are overdue after four days.
		leave(45, john, after(45, john, submits(`{"days":2}`))),
		leave(25, john, after(25, john, submits(`{"days":5,"reason":"Skiing"}`)), after(24, mary, sends("approve", goodLuck))),
		leave(20, john, after(20, john, submits(`{"days":1}`))),
		leave(18, paulo, after(18, paulo, submits(`{"days":10}`)), after(16.5, mary, sends("approve", none))),
		leave(15, paulo, after(15, paulo, submits(`{"days":20}`)), after(14, mary, sends("reject", `{"comment":"Not during the stock-take, please."}`))),
		leave(12, john, after(12, john, submits(`{"days":2}`))),
		leave(11, john, after(11, john, submits(`{"days":3}`)), after(10, john, sends("withdraw", none))),
		leave(10, john, after(10, john, submits(`{"days":4,"reason":"Moving house"}`)), after(9.5, mary, says("Do you need a van?")), after(9.2, john, says("No, thanks, I have one.")), after(9, mary, sends("approve", none))),
		leave(9, john, after(9, john, submits(`{"days":12,"reason":"A long trip"}`))),
		leave(8, paulo, after(8, paulo, submits(`{"days":2}`))),
		leave(7, john, after(7, john, submits(`{"days":30}`)), after(6, mary, sends("reject", `{"comment":"Half of it would be fine."}`))),
		leave(6, paulo, after(6, paulo, submits(`{"days":8}`))),
		leave(5, mary, after(5, mary, submits(`{"days":1}`))),
		leave(4, paulo, after(3.9, paulo, sends("withdraw", none))),
		leave(3, paulo),
		leave(1.5, mary, after(1.5, mary, submits(`{"days":4}`))),
		leave(1, john, after(1, john, submits(`{"days":6,"reason":"Hiking"}`))),
		leave(0.5, paulo, after(0.5, paulo, submits(`{"days":10,"reason":"Family"}`)), after(0.3, mary, says("Who takes the orders meanwhile?"))),
		leave(0.1, john, after(0.1, john, submits(`{"days":3}`))),
		leave(0.05, john, after(0.05, john, drafts(`{"days":7,"reason":"Perhaps in spring"}`))),

		// Purchase orders: above 1,000 somebody is asked; then the supplier takes the order, refuses it or does not
		// answer. A program pays what was delivered.
		order(40, john, supplierAccepts, after(40, john, submits(paper)), after(39, paulo, comesTo("ordered")), after(38, paulo, sends("receive", none)), after(37.9, payments, pays(""))),
		order(30, john, supplierAccepts, after(30, john, submits(laptop)), after(29, mary, sends("approve", none)), after(28, paulo, comesTo("ordered")), after(26, paulo, sends("receive", none)), after(25.9, payments, pays(""))),
		order(21, paulo, supplierRefuses, after(21, paulo, submits(printer)), after(20.5, paulo, comesTo("byHand")), after(20, paulo, sends("order", none)), after(15, paulo, sends("receive", none)), after(14.9, payments, pays(""))),
		order(17, paulo, supplierSilent, after(17, paulo, submits(tablet)), after(16, mary, sends("reject", `{"comment":"Two would do."}`))),
		order(14, john, supplierAccepts, after(14, john, submits(headsets)), after(13, paulo, comesTo("ordered")), after(11, paulo, sends("receive", none)), after(10.9, payments, pays("the bank refuses the account number"))),
		order(10, mary, supplierAccepts, after(10, mary, submits(toner)), after(9, paulo, comesTo("ordered")), after(8, paulo, sends("receive", none)), after(7.9, payments, pays(""))),
		order(9, john, supplierSilent, after(9, john, submits(server)), after(8.5, mary, says("The budget for servers is used up until January.")), after(8, mary, sends("reject", `{"comment":"Please ask again in January."}`))),
		order(6, john, supplierRefuses, after(6, john, submits(headsets)), after(5.9, paulo, comesTo("byHand"))),
		order(5, john, supplierSilent, after(5, john, submits(chairs))),
		order(4, john, supplierAccepts, after(4, john, submits(paper)), after(3.9, paulo, comesTo("ordered")), after(3.5, paulo, sends("receive", none))),
		order(3, paulo, supplierRefuses, after(3, paulo, submits(screens)), after(2.5, mary, sends("approve", none)), after(2.4, paulo, comesTo("byHand"))),
		order(2.2, mary, supplierAccepts, after(2.2, mary, submits(printer)), after(2.1, paulo, comesTo("ordered"))),
		order(2, paulo, supplierSilent, after(2, paulo, submits(tablet))),
		order(1.8, mary, supplierSilent),
		order(1, john, supplierSilent, after(1, john, submits(laptop)), after(0.9, paulo, says("They are on offer until Friday."))),
		order(0.2, john, supplierSilent, after(0.2, john, submits(desks))),
		order(0.08, john, supplierSilent, after(0.08, john, drafts(`{"items":[{"name":"Desk lamp","quantity":2,"price":49}]}`))),
		order(0.02, john, supplierSilent, after(0.02, john, submits(toner))),

		// Stock-takes, which people begin without a form. After a week they are overdue.
		count(20, after(19, paulo, sends("count", `{"counted":1204,"missing":3}`))),
		count(9),
		count(1),

		plain(form.KindForm, "feedback", 13, mary, after(13, mary, submits(`{"topic":"Workplace","message":"The new chairs are good.","answer":false}`))),
		plain(form.KindForm, "feedback", 2.5, john, after(2.5, john, submits(`{"topic":"Tools","message":"The printer jams every day.","answer":true}`))),
		plain(form.KindChecklist, "workplace-safety", 28, john, after(28, john, submits(`{"exits":true,"extinguishers":true,"first-aid":true,"cables":true,"lighting":false}`))),
		plain(form.KindChecklist, "workplace-safety", 0.3, john, after(0.3, john, drafts(`{"exits":true}`))),
	}
}
