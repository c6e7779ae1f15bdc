package formportal

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine/data"
)

// TestWhoMaySeeAndWrite goes through the users and the kinds of forms.
func TestWhoMaySeeAndWrite(t *testing.T) {
	h := newHouse(t)
	plain := h.create("john", "feedback", "")
	check := h.create("mary", "safety", "")
	bound := h.create("john", "leave-form", "leave")
	// reads only has mod-form-portal, and can tick only checklists.
	reads := &identity.Principal{ID: "john", Privileges: []string{string(identity.FormPortal)}}
	ticks := &identity.Principal{ID: "john", Privileges: []string{string(identity.FormPortal), string(identity.Checklist)}}
	fills := &identity.Principal{ID: "mary", Privileges: []string{string(identity.FormPortal), string(identity.Form)}}
	for _, c := range []struct {
		name          string
		who           *identity.Principal
		workflow, id  string
		read, written error
	}{
		{"one's own", h.user("john"), "-", plain, nil, nil},
		{"one's own, without mod-form", reads, "-", plain, nil, failure.ErrForbidden},
		{"one's own, with mod-checklist in its place", ticks, "-", plain, nil, failure.ErrForbidden},
		{"one's own checklist", h.user("mary"), "-", check, nil, nil},
		{"one's own checklist, with mod-form alone", fills, "-", check, nil, failure.ErrForbidden},
		{"a workflow form", h.user("john"), "leave", bound, nil, nil},
		{"a workflow form, without mod-form", reads, "leave", bound, nil, failure.ErrForbidden},
		{"a manager reads a workflow form", h.user("mary"), "leave", bound, nil, nil},
		{"another's plain form", h.user("eve"), "-", plain, failure.ErrNotFound, failure.ErrNotFound},
		{"a manager and another's plain form", h.user("mary"), "-", plain, failure.ErrNotFound, failure.ErrNotFound},
		{"who manages workflows and another's plain form", h.user("root"), "-", plain, failure.ErrNotFound, failure.ErrNotFound},
		{"another's checklist", h.user("ivan"), "-", check, failure.ErrNotFound, failure.ErrNotFound},
		{"another's workflow form", h.user("eve"), "leave", bound, failure.ErrNotFound, failure.ErrNotFound},
		{"another's, without a privilege for it", h.user("ivan"), "leave", bound, failure.ErrNotFound, failure.ErrNotFound},
		{"a plain form under a workflow", h.user("john"), "leave", plain, failure.ErrNotFound, failure.ErrNotFound},
		{"a workflow form under no workflow", h.user("john"), "-", bound, failure.ErrNotFound, failure.ErrNotFound},
		{"an unknown workflow", h.user("john"), "nothing", bound, failure.ErrNotFound, failure.ErrNotFound},
		{"an unknown instance", h.user("john"), "-", "01ARZ3NDEKTSV4RRFFQ69G5FAV", failure.ErrNotFound, failure.ErrNotFound},
		{"what is no instance's id", h.user("john"), "-", "nothing", failure.ErrNotFound, failure.ErrNotFound},
	} {
		r := FormRequest{Caller: c.who, WorkflowID: c.workflow, InstanceID: c.id}
		view, err := h.Form(t.Context(), &r)
		if !errors.Is(err, c.read) {
			t.Errorf("%s: read: got %v, want %v", c.name, err, c.read)
		}
		if err == nil && view.Editable != (c.written == nil) {
			t.Errorf("%s: editable %v", c.name, view.Editable)
		}
		if _, err = h.SaveDraft(t.Context(), &DraftRequest{FormRequest: r}); !errors.Is(err, c.read) {
			t.Errorf("%s: dropped: got %v, want %v", c.name, err, c.read)
		}
		_, err = h.SaveDraft(t.Context(), &DraftRequest{FormRequest: r, Data: workflowtest.Value(`{}`)})
		if !errors.Is(err, c.written) {
			t.Errorf("%s: saved: got %v, want %v", c.name, err, c.written)
		}
		for _, key := range []string{"", c.name} {
			// NB: what does not fit, so that nothing is submitted by those who may.
			_, err = h.Submit(t.Context(), &SubmitRequest{FormRequest: r, Data: workflowtest.Value(`{"text":1}`), Retry: retry(key, "")})
			if want := c.written; want == nil && !errors.Is(err, failure.ErrInvalid) || want != nil && !errors.Is(err, want) {
				t.Errorf("%s: submitted with the key %q: got %v, want %v", c.name, key, err, want)
			}
		}
	}
	if got := h.view("mary", "leave", bound); got.Draft == nil || got.Summary.By != "john" {
		t.Errorf("mary sees %+v", got) // her own draft, of his form
	}
	if n := len(h.list("mary", form.KindForm, form.Current)); n != 0 {
		t.Errorf("a draft put the form into mary's list: %d", n)
	}
	plainInstance, err := h.Router.Create(t.Context(), &message.Create{Caller: h.user("john"), WorkflowID: "leave"})
	if err != nil {
		t.Fatal(err)
	}
	r := h.request("john", "leave", plainInstance.InstanceID)
	if _, err := h.Form(t.Context(), &r); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("an instance that is no form: got %v, want ErrNotFound", err)
	}
}

// TestAFormKeepsItsOwner: what is sent for a plain form is all data, and what
// looks like the parts of an instance is refused.
func TestAFormKeepsItsOwner(t *testing.T) {
	h := newHouse(t)
	for text, refused := range map[string]bool{
		`{"svcPrivate":{"owner":"eve"}}`: true, `{"svcPublic":{"a":1},"svcPrivate":{"owner":"eve"}}`: true,
		`{"owner":"eve","by":"eve"}`: false, `{}`: false,
	} {
		id := h.create("john", "feedback", "")
		want := workflowtest.Value(text)
		if _, err := h.submit("john", "-", id, text, ""); errors.Is(err, failure.ErrInvalid) != refused || !refused && err != nil {
			t.Errorf("%s: got %v, want a refusal: %v", text, err, refused)
		}
		if refused {
			want = workflowtest.Value(`{}`)
		}
		if v := h.view("john", "-", id); !data.Equal(v.Data, want) {
			t.Errorf("%s: got %s", text, v.Data)
		}
		r := h.request("eve", "-", id)
		if _, err := h.Form(t.Context(), &r); !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("%s: eve gets %v, want ErrNotFound", text, err)
		}
		if got := h.record("john", "-", id).Private; string(got) != `{"owner":"john"}` {
			t.Errorf("%s: svcPrivate is %s", text, got)
		}
	}
}

// TestAFormThatNamesNoWorkflowIsSubmittedThroughOne: with the usual event.
func TestAFormThatNamesNoWorkflowIsSubmittedThroughOne(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "feedback", "leave")
	if v := h.view("john", "leave", id); !v.Editable || v.Summary.FormType != "WorkflowForm" {
		t.Errorf("a %s, editable: %v", v.Summary.FormType, v.Editable)
	}
	h.mustSubmit("john", "leave", id, `{"text":"good"}`)
	if v := h.view("john", "leave", id); v.Category != form.Submitted || v.Summary.SubmissionID == "" || v.Summary.Status != "review" {
		t.Errorf("after it was submitted: %s, %+v", v.Category, v.Summary)
	}
}

// TestTemplatesThatChange holds actors/formportal/DESIGN.md, "Forms", for templates
// that are switched off, gone, or changed.
func TestTemplatesThatChange(t *testing.T) {
	h := newHouse(t)
	first, second := h.create("john", "feedback", ""), h.create("john", "feedback", "")
	bound := h.create("john", "leave-form", "leave")
	h.offer(strings.Replace(feedbackTemplate, "id: feedback, name: Feedback", "id: feedback, name: Changed, enabled: false", 1), leaveTemplate, safetyTemplate)
	if _, err := h.Create(t.Context(), h.creating("john", "feedback", "", "")); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a new one of what is switched off: got %v, want ErrNotFound", err)
	}
	if _, err := h.save("john", "-", first, `{"text":"x"}`); err != nil {
		t.Errorf("a draft, switched off: %v", err)
	}
	h.mustSubmit("john", "-", first, `{"text":"x"}`)
	if v := h.view("john", "-", first); v.Summary.Name.For() != "Feedback" || v.Template.Name.For() != "Changed" {
		t.Errorf("got the name %q, want that of the creation; template %+v", v.Summary.Name, v.Template)
	}
	h.offer(strings.Replace(feedbackTemplate, "type: string", "type: integer", 1), strings.Replace(leaveTemplate, "submit: submit", "submit: note", 1))
	if _, err := h.submit("john", "-", second, `{"text":"x"}`, ""); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("against the changed schema: got %v, want ErrInvalid", err)
	}
	h.mustSubmit("john", "leave", bound, `{"days":1}`) // sends the event of now
	if v := h.view("john", "leave", bound); v.Summary.Status != "draft" || v.Sequence != 2 {
		t.Errorf("submitted with note: %+v", v.Summary)
	}
	if _, err := h.save("john", "-", second, `{"text":"kept"}`); err != nil {
		t.Fatal(err)
	}
	h.offer()
	for workflowID, id := range map[string]string{"-": second, "leave": bound} {
		v := h.view("john", workflowID, id)
		if v.Template != nil || v.Editable || v.Category != form.Current || h.where("john", id) != "form current" {
			t.Errorf("without its template: %+v", v)
		}
		if _, err := h.save("john", workflowID, id, `{}`); !errors.Is(err, failure.ErrNotAllowed) {
			t.Errorf("a draft without its template: got %v, want ErrNotAllowed", err)
		}
		if _, err := h.submit("john", workflowID, id, `{}`, ""); !errors.Is(err, failure.ErrNotAllowed) {
			t.Errorf("submitted without its template: got %v, want ErrNotAllowed", err)
		}
	}
	if v := h.view("john", "-", second); v.Draft == nil || string(v.Draft.Data) != `{"text":"kept"}` {
		t.Errorf("the draft: %+v", v.Draft)
	}
	h.mustSend("john", "leave", bound, "submit") // events go on
	if got := h.where("john", bound); got != "form submitted" {
		t.Errorf("got it among %q", got)
	}
}

// TestAWorkflowThatIsGone: its forms are still listed, read and submitted, but
// there are no new ones.
func TestAWorkflowThatIsGone(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	h.workflows(payroll)
	if _, err := h.Create(t.Context(), h.creating("john", "leave-form", "leave", "")); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a new one: got %v, want ErrNotFound", err)
	}
	h.restart()
	h.mustSubmit("john", "leave", id, `{"days":1}`)
	if got := h.where("john", id); got != "form submitted" {
		t.Errorf("got it among %q", got)
	}
}

// TestRetries holds gateway/INTERFACE.md, "Retries", for creates and submissions:
// the same key gets the first answer, also after a restart, and when the template is
// gone. The tests of the interface have keys that are used at the same time.
func TestRetries(t *testing.T) {
	h := newHouse(t)
	forms := []struct {
		create             *CreateRequest
		workflow, data     string
		created, submitted string
	}{
		{create: h.creating("mary", "leave-form", "leave", "k"), workflow: "leave", data: `{"days":1}`},
		{create: h.creating("mary", "feedback", "", "l"), workflow: "-", data: `{"text":"x"}`},
		{create: h.creating("mary", "safety", "", "m"), workflow: "-", data: `{"exits":true}`},
	}
	for _, step := range []struct {
		when string
		do   func()
	}{
		{"first", func() {}},
		{"at once", func() {}},
		{"after a restart", h.restart},
		{"when it has moved on", func() { h.mustSend("mary", "leave", forms[0].created, "back") }},
		{"when it has gone out of sight", func() {
			h.workflows(strings.NewReplacer("id: leave\n", "id: leave\nversion: 2\n", ` || "manager" in user.roles`, "").Replace(workflowtest.Leave), payroll, approval)
			if _, err := h.submit("mary", "leave", forms[0].created, `{"days":1}`, "unused"); !errors.Is(err, failure.ErrNotFound) {
				t.Errorf("a new key for a form out of sight: got %v, want ErrNotFound", err)
			}
		}},
		{"when the schemas are others", func() {
			h.offer(strings.Replace(feedbackTemplate, "type: string", "type: integer", 1), leaveTemplate, strings.Replace(safetyTemplate, "exits", "doors", 1))
		}},
		{"when the templates are gone", func() { h.offer() }},
		{"when the workflow is gone", func() { h.workflows(payroll) }},
	} {
		step.do()
		for i := range forms {
			f := &forms[i]
			id, err := h.Create(t.Context(), f.create)
			if f.created = cmp.Or(f.created, id); err != nil || id != f.created {
				t.Errorf("%s: create %s: got %q, %v, want %s", step.when, f.create.TemplateID, id, err, f.created)
			}
			other := *f.create
			other.Retry.Fingerprint[0]++
			if _, err := h.Create(t.Context(), &other); !errors.Is(err, failure.ErrKeyReused) {
				t.Errorf("%s: the key for another create: got %v, want ErrKeyReused", step.when, err)
			}
			reply, err := h.submit("mary", f.workflow, id, f.data, "s")
			if err != nil {
				t.Fatalf("%s: submit %s: %v", step.when, f.data, err)
			}
			record := string(reply.AppendRecord(nil))
			if f.submitted = cmp.Or(f.submitted, record); record != f.submitted {
				t.Errorf("%s: submit %s: got %s, want %s", step.when, f.data, record, f.submitted)
			}
			if _, err := h.submit("mary", f.workflow, id, `{}`, "s"); !errors.Is(err, failure.ErrKeyReused) {
				t.Errorf("%s: the key for another submission: got %v, want ErrKeyReused", step.when, err)
			}
		}
	}
	if _, err := h.Create(t.Context(), h.creating("mary", "feedback", "", "new")); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a new key without the template: got %v, want ErrNotFound", err)
	}
	if _, err := h.submit("mary", "-", forms[1].created, `{"text":"x"}`, "new"); !errors.Is(err, failure.ErrNotAllowed) {
		t.Errorf("a new key without the template: got %v, want ErrNotAllowed", err)
	}
	if id, err := h.Create(t.Context(), h.creating("john", "leave-form", "leave", "k")); !errors.Is(err, failure.ErrNotFound) || id != "" {
		t.Errorf("another user's key: got %q, %v, want ErrNotFound", id, err)
	}
}

// TestOneOfTwoSubmissions: of many at the same time one is taken.
func TestOneOfTwoSubmissions(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	if _, err := h.save("john", "leave", id, `{"days":1}`); err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := h.submit("john", "leave", id, `{"days":1}`, ""); err == nil {
				taken.Add(1)
			} else if !errors.Is(err, failure.ErrNotAllowed) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if v := h.view("john", "leave", id); taken.Load() != 1 || v.Sequence != 2 || v.Draft != nil {
		t.Errorf("%d were taken, %+v", taken.Load(), v)
	}
}

// TestADraftThatKnowsNoTemplate: the times tell.
func TestADraftThatKnowsNoTemplate(t *testing.T) {
	of := &Template{Modified: time.UnixMilli(10), Digest: form.DigestOf([]byte("x"))}
	for _, c := range []struct {
		draft form.Draft
		want  bool
	}{
		{form.Draft{SavedAt: 9}, true},
		{form.Draft{SavedAt: 10}, false},
		{form.Draft{SavedAt: 9, Template: of.Digest}, false},
		{form.Draft{SavedAt: 11, Template: form.DigestOf([]byte("y"))}, true},
	} {
		if got := isForAnother(&c.draft, of); got != c.want {
			t.Errorf("%+v: got %t", c.draft, got)
		}
	}
}
