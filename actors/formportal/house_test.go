package formportal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/actors/workflow/workflowtest"
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

// Only managers create payroll, and approval has two machines.
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

// house is a portal over a router. It can be stopped and started again.
type house struct {
	*workflowtest.Router
	*Portal
	t         testing.TB
	published []catalog.Source // the newest set
	templates *Templates
	directory *identity.Directory
}

func newHouse(t testing.TB, limits ...quota.Limits) *house {
	h := emptyHouse(t, limits...)
	h.workflows(workflowtest.Leave, payroll, approval)
	h.offer(leaveTemplate, approvalTemplate, feedbackTemplate, offTemplate, safetyTemplate)
	return h
}

func emptyHouse(t testing.TB, limits ...quota.Limits) *house {
	h := &house{t: t}
	var err error
	h.directory, err = identity.ParseDirectory("identity.yaml", []byte(staff))
	require.NoError(t, err)
	o := workflowtest.Options{}
	for _, l := range limits {
		o.Workflow.Quotas = l
	}
	h.Router = workflowtest.Start(t, o)
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *house) start() {
	h.t.Helper()
	err := AddPlainWorkflow(h.Catalog, h.Parser)
	if err == nil {
		h.templates, err = OpenTemplates(h.Store, zerolog.New(&h.Log))
	}
	require.NoError(h.t, err)
	h.Portal = Start(Options{
		System: h.System, Workflows: h.Router.Router, Templates: h.templates, Directory: func() *identity.Directory { return h.directory }, Clock: h.Clock, Log: zerolog.Nop(),
	})
}

func (h *house) stop() {
	assert.NoError(h.t, h.Portal.Stop(context.Background()))
}

func (h *house) restart() { h.t.Helper(); h.stop(); h.Restart(); h.start() }

func (h *house) workflows(texts ...string) {
	h.t.Helper()
	h.published = h.Sources(texts...)
	h.Publish(texts...)
}

// source makes a template as home.Load does. Its file is named by its id; what has
// items is a checklist.
func source(t testing.TB, text string) TemplateSource {
	t.Helper()
	src := TemplateText{Kind: form.KindForm, Text: []byte(text), Read: readSample, Modified: time.UnixMilli(1_002)}
	if strings.Contains(text, "items:") {
		src.Kind = form.KindChecklist
	}
	parsed, err := ParseTemplate(src, Known{})
	require.NoError(t, err)
	s := TemplateSource{File: src.Kind.String() + "s/" + parsed.ID + ".yaml", Text: src.Text, Refs: map[string][]byte{}, Parsed: parsed}
	for name := range sampleFiles {
		if strings.Contains(string(parsed.Schema), strings.ReplaceAll(name, "/", "~1")) {
			s.Refs[name] = []byte(sampleFiles[name])
		}
	}
	return s
}

func (h *house) publish(set ...TemplateSource) error {
	change, err := h.templates.Prepare(set)
	if err != nil {
		return err
	}
	return h.Catalog.Publish(h.published, change)
}

func (h *house) mustPublish(set ...TemplateSource) {
	h.t.Helper()
	require.NoError(h.t, h.publish(set...))
}

func (h *house) offer(texts ...string) {
	h.t.Helper()
	var set []TemplateSource
	for _, text := range texts {
		set = append(set, source(h.t, text))
	}
	h.mustPublish(set...)
}

func (h *house) user(id string) *identity.Principal {
	p := h.directory.Principal(identity.UserID(id))
	require.NotNil(h.t, p, "no user %s", id)
	return p
}

// creating is a request to make a form; the templates with items are checklists.
func (h *house) creating(who, template, workflowID, key string) *CreateRequest {
	r := &CreateRequest{Caller: h.user(who), Kind: form.KindForm, TemplateID: template, WorkflowID: workflowID, Retry: retry(key, template+" "+workflowID)}
	if template == "safety" {
		r.Kind = form.KindChecklist
	}
	return r
}

func retry(key, body string) message.Retry {
	if key == "" {
		return message.Retry{}
	}
	return message.Retry{Key: key, Fingerprint: sha256.Sum256([]byte(body))}
}

func (h *house) create(who, template, workflowID string) string {
	h.t.Helper()
	id, err := h.Create(h.t.Context(), h.creating(who, template, workflowID, ""))
	require.NoError(h.t, err, "create %s", template)
	return id
}

func (h *house) request(who, workflowID, id string) FormRequest {
	return FormRequest{Caller: h.user(who), WorkflowID: workflowID, InstanceID: id}
}

func (h *house) view(who, workflowID, id string) *View {
	h.t.Helper()
	r := h.request(who, workflowID, id)
	v, err := h.Form(h.t.Context(), &r)
	require.NoError(h.t, err, "form %s of %s", id, who)
	return v
}

func (h *house) save(who, workflowID, id, text string, ifMatch ...uint64) (form.Draft, error) {
	return h.SaveDraft(h.t.Context(), &DraftRequest{FormRequest: h.request(who, workflowID, id), Data: workflowtest.Value(text), DraftCondition: form.DraftCondition{IfMatch: ifMatch}})
}

func (h *house) submit(who, workflowID, id, text, key string) (*message.Reply, error) {
	return h.Submit(h.t.Context(), &SubmitRequest{FormRequest: h.request(who, workflowID, id), Data: workflowtest.Value(text), Retry: retry(key, text)})
}

func (h *house) send(who, workflowID, id, event string) error {
	_, err := h.Try(h.user(who), workflowID, id, event, "", "")
	return err
}

func (h *house) list(who string, kind form.Kind, category form.Category) (all []*Summary) {
	h.t.Helper()
	err := h.List(h.t.Context(), &ListRequest{Caller: h.user(who), Kind: kind, Category: category}, func(s *Summary) error {
		all = append(all, s)
		return nil
	})
	require.NoError(h.t, err)
	return all
}

// where says in which lists of the user a form stands: "current", say.
func (h *house) where(who, id string) string {
	h.t.Helper()
	var found []string
	for _, kind := range []form.Kind{form.KindForm, form.KindChecklist} {
		for _, category := range []form.Category{form.Current, form.Submitted, form.Archived} {
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
	require.NoError(h.t, json.Unmarshal(h.MustLook(h.user(who), workflowID, id).AppendRecord(nil), &r))
	return r
}
