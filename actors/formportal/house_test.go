package formportal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/quota"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const staff = `
roles:
  - {id: employee, name: Employee, privileges: [mod-form-portal, mod-form]}
  - {id: manager, name: Manager, privileges: [mod-form-portal, mod-form]}
  - {id: inspector, name: Inspector, privileges: [mod-form-portal, mod-checklist]}
  - {id: guest, name: Guest}
users:
  - {id: john, roles: [employee]}
  - {id: mary, roles: [manager, employee, inspector]}
  - {id: ivan, roles: [inspector]}
  - {id: eve, roles: [employee]}
  - {id: gus, roles: [guest]}
  - {id: root, roles: [employee], privileges: [mod-workflows, mod-admin, mod-checklist]}
`

// leaveRequest is read by its creator and by managers; only managers create
// payroll; and approval has two machines.
const leaveRequest = `
id: leave
name: Leave
allow:
  create: {roles: [employee]}
  read: {when: 'user.id == svcPublic.by || "manager" in user.roles'}
events: {quiet: {unmatched: ignore}}
stateMachines:
  main:
    initial: draft
    states:
      draft: {entry: [{assign: {svcPublic.by: '${has(svcPublic.by) ? svcPublic.by : user.id}'}}], on: {submit: review, note: {}}}
      review: {on: {approve: {target: approved, allow: {roles: [manager]}}, back: draft}}
      approved: {type: final}
`

const payroll = `
id: payroll
allow: {create: {roles: [manager]}}
stateMachines: {m: {states: {a: {on: {submit: b}}, b: {type: final}}}}
`

const approval = `
id: approval
stateMachines:
  one: {initial: a, states: {a: {on: {sign: b}}, b: {on: {undo: a, end: c}}, c: {type: final}}}
  two: {initial: x, states: {x: {on: {sign: y}}, y: {type: final}}}
`

// The templates, by the folders that they are in.
const (
	leaveTemplate = `{id: leave-form, name: Leave request, access: {roles: [employee, manager]}, workflows: [leave, payroll], submit: submit,
schema: {type: object, properties: {days: {type: integer, minimum: 1, maximum: 60}}, required: [days]}}`
	approvalTemplate = `{id: approval-form, access: {roles: [employee]}, workflows: [approval], schema: {type: object}}`
	feedbackTemplate = `{id: feedback, name: Feedback, access: {roles: [manager, employee]}, schema: {type: object, properties: {text: {type: string}}}}`
	offTemplate      = `{id: off, enabled: false, access: {roles: [employee]}, schema: {type: object}}`
	safetyTemplate   = `{id: safety, name: Safety, access: {roles: [inspector]}, items: [{id: exits, required: true}, {id: light}]}`
)

// house is a portal over a router and a store in a temporary folder. It can be
// stopped and started again on the same store.
type house struct {
	t         testing.TB
	dir       string
	store     *persistence.Store
	system    *actors.System
	catalog   *catalog.Catalog
	published []catalog.Source // the newest set
	parser    *statemachine.Parser
	templates *Templates
	router    *workflow.Router
	directory *identity.Directory
	quotas    quota.Limits
	*Portal

	mu  sync.Mutex
	now time.Time // guarded by mu; moves on by 1 ms with each look
}

func newHouse(t testing.TB) *house {
	h := &house{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	if h.directory, err = identity.ParseDirectory("identity.yaml", []byte(staff)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	h.start()
	h.workflows(leaveRequest, payroll, approval)
	h.offer(leaveTemplate, approvalTemplate, feedbackTemplate, offTemplate, safetyTemplate)
	return h
}

func (h *house) start() {
	h.t.Helper()
	ok := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	var err error
	h.store, err = persistence.Open(h.dir, persistence.Options{Log: zerolog.Nop(), CommitWaitMax: time.Minute})
	ok(err)
	h.parser, err = statemachine.NewParser(statemachine.ParserOptions{})
	ok(err)
	h.catalog, err = catalog.Open(h.store, h.parser, zerolog.Nop())
	ok(err)
	ok(AddPlainWorkflow(h.catalog, h.parser))
	h.templates, err = OpenTemplates(h.store, zerolog.Nop())
	ok(err)
	h.system = actors.NewSystem(zerolog.Nop())
	h.router, err = workflow.Start(workflow.Options{
		Store: h.store, System: h.system, Catalog: h.catalog, Quotas: h.quotas, Clock: h.clock, Log: zerolog.Nop(),
	})
	ok(err)
	h.Portal = Start(Options{
		System: h.system, Workflows: h.router, Templates: h.templates, Directory: func() *identity.Directory { return h.directory }, Clock: h.clock, Log: zerolog.Nop(),
	})
}

func (h *house) stop() {
	if h.Portal == nil {
		return
	}
	for _, stop := range []func(context.Context) error{h.Portal.Stop, h.router.Stop, h.system.Stop} {
		if err := stop(context.Background()); err != nil {
			h.t.Error(err)
		}
	}
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
	h.Portal = nil
}

func (h *house) restart() { h.t.Helper(); h.stop(); h.start() }

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

func (h *house) wait(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// workflows makes these the workflows that there are.
func (h *house) workflows(texts ...string) {
	h.t.Helper()
	var set []catalog.Source
	for i, text := range texts {
		file := fmt.Sprintf("workflows/%d.yaml", i)
		parsed, err := h.parser.Parse(statemachine.Source{File: file, Text: []byte(text)})
		if err != nil {
			h.t.Fatal(err)
		}
		set = append(set, catalog.Source{File: file, Text: []byte(text), Parsed: parsed.Definition})
	}
	if err := h.catalog.Publish(set); err != nil {
		h.t.Fatal(err)
	}
	h.published = set
}

// offer makes these the templates that there are. What has items is a checklist.
func (h *house) offer(texts ...string) {
	h.t.Helper()
	var set []TemplateSource
	for i, text := range texts {
		src := TemplateText{Kind: form.Plain, File: fmt.Sprintf("%d.yaml", i), Text: []byte(text), Modified: time.UnixMilli(1)}
		if strings.Contains(text, "items:") {
			src.Kind = form.Checklist
		}
		parsed, err := ParseTemplate(src, Known{})
		if err != nil {
			h.t.Fatal(err)
		}
		set = append(set, TemplateSource{File: src.File, Text: src.Text, Parsed: parsed})
	}
	change, err := h.templates.Prepare(set)
	if err == nil {
		err = h.catalog.Publish(h.published, change)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) user(id string) *identity.Principal {
	p := h.directory.Principal(identity.UserID(id))
	if p == nil {
		h.t.Fatalf("no user %s", id)
	}
	return p
}

// creating is a request to make a form; the templates with items are checklists.
func (h *house) creating(who, template, workflowID, key string) *CreateRequest {
	r := &CreateRequest{Caller: h.user(who), Kind: form.Plain, TemplateID: template, WorkflowID: workflowID, Retry: retry(key, template+" "+workflowID)}
	if template == "safety" {
		r.Kind = form.Checklist
	}
	return r
}

func retry(key, body string) workflow.Retry {
	if key == "" {
		return workflow.Retry{}
	}
	return workflow.Retry{Key: key, Fingerprint: sha256.Sum256([]byte(body))}
}

func (h *house) create(who, template, workflowID string) string {
	h.t.Helper()
	id, err := h.Create(h.t.Context(), h.creating(who, template, workflowID, ""))
	if err != nil {
		h.t.Fatalf("create %s: %v", template, err)
	}
	return id
}

func (h *house) request(who, workflowID, id string) FormRequest {
	return FormRequest{Caller: h.user(who), WorkflowID: workflowID, InstanceID: id}
}

func (h *house) view(who, workflowID, id string) *View {
	h.t.Helper()
	r := h.request(who, workflowID, id)
	v, err := h.Form(h.t.Context(), &r)
	if err != nil {
		h.t.Fatalf("form %s of %s: %v", id, who, err)
	}
	return v
}

func (h *house) save(who, workflowID, id, text string, ifMatch ...uint64) (form.Draft, error) {
	return h.SaveDraft(h.t.Context(), &DraftRequest{FormRequest: h.request(who, workflowID, id), Data: value(h.t, text), DraftCondition: form.DraftCondition{IfMatch: ifMatch}})
}

func (h *house) submit(who, workflowID, id, text, key string) (*workflow.Reply, error) {
	return h.Submit(h.t.Context(), &SubmitRequest{FormRequest: h.request(who, workflowID, id), Data: value(h.t, text), Retry: retry(key, text)})
}

func (h *house) mustSubmit(who, workflowID, id, text string) {
	h.t.Helper()
	if _, err := h.submit(who, workflowID, id, text, ""); err != nil {
		h.t.Fatalf("submit %s: %v", id, err)
	}
}

// send is an event through group B.
func (h *house) send(who, workflowID, id, event string) error {
	_, err := h.router.Send(h.t.Context(), &workflow.EventRequest{Caller: h.user(who), WorkflowID: workflowID, InstanceID: id, Name: event, WithHistory: true})
	return err
}

func (h *house) mustSend(who, workflowID, id, event string) {
	h.t.Helper()
	if err := h.send(who, workflowID, id, event); err != nil {
		h.t.Fatalf("%s to %s: %v", event, id, err)
	}
}

// list returns one of the six lists of a user.
func (h *house) list(who string, kind form.Kind, category Category) (all []*Summary) {
	h.t.Helper()
	err := h.List(h.t.Context(), &ListRequest{Caller: h.user(who), Kind: kind, Category: category}, func(s *Summary) error {
		all = append(all, s)
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// where says in which lists of the user a form stands: "current", say.
func (h *house) where(who, id string) string {
	h.t.Helper()
	var found []string
	for _, kind := range []form.Kind{form.Plain, form.Checklist} {
		for _, category := range []Category{Current, Submitted, Archived} {
			if slices.ContainsFunc(h.list(who, kind, category), func(s *Summary) bool { return s.ID == id }) {
				found = append(found, kind.String()+" "+category.String())
			}
		}
	}
	return strings.Join(found, ", ")
}

// record is the instance as group B shows it.
func (h *house) record(who, workflowID, id string) (r struct {
	Public  json.RawMessage                              `json:"svcPublic"`
	Private json.RawMessage                              `json:"svcPrivate"`
	History []struct{ User, TransitionEvent, TS string } `json:"svcHistory"`
	States  []struct{ NodeID string }                    `json:"states"`
},
) {
	h.t.Helper()
	reply, err := h.router.Load(h.t.Context(), &workflow.LoadRequest{Caller: h.user(who), WorkflowID: workflowID, InstanceID: id, WithHistory: true})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(reply.AppendRecord(nil), &r); err != nil {
		h.t.Fatal(err)
	}
	return r
}

func value(t testing.TB, text string) data.Value {
	t.Helper()
	if text == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// createMany makes many forms of a user, and puts them to sleep.
func (h *house) createMany(who string, n int) {
	h.t.Helper()
	var wg sync.WaitGroup
	const makers = 200
	for range makers {
		wg.Go(func() {
			for range n / makers {
				if _, err := h.Create(h.t.Context(), h.creating(who, "feedback", "", "")); err != nil {
					h.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.restart()
}

// readAll reads a user's current forms and calls each with them. It returns the
// most by which the live heap was larger in between than before, and how many
// there were.
func (h *house) readAll(who string, each func(*Summary)) (grown uint64, count int) {
	h.t.Helper()
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	err := h.List(h.t.Context(), &ListRequest{Caller: h.user(who), Kind: form.Plain, Category: Current}, func(s *Summary) error {
		each(s)
		if count++; count%1_250 == 0 {
			if now := live(); now > before {
				grown = max(grown, now-before)
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return grown, count
}
