package formportal

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		assert.ErrorIs(t, err, c.read, "%s: read", c.name)
		if err == nil && view.Editable != (c.written == nil) {
			t.Errorf("%s: editable %v", c.name, view.Editable)
		}
		_, err = h.SaveDraft(t.Context(), &DraftRequest{FormRequest: r})
		assert.ErrorIs(t, err, c.read, "%s: dropped", c.name)
		_, err = h.SaveDraft(t.Context(), &DraftRequest{FormRequest: r, Data: workflowtest.Value(`{}`)})
		assert.ErrorIs(t, err, c.written, "%s: saved", c.name)
		for _, key := range []string{"", c.name} {
			// NB: what does not fit, so that nothing is submitted by those who may.
			_, err = h.Submit(t.Context(), &SubmitRequest{FormRequest: r, Data: workflowtest.Value(`{"text":1}`), Retry: retry(key, "")})
			want := c.written
			assert.True(t, (want != nil || errors.Is(err, failure.ErrInvalid)) && (want == nil || errors.Is(err, want)), "%v %v %v %v", c.name, key, err, want)
		}
	}
	if got := h.view("mary", "leave", bound); got.Draft == nil || got.Summary.By != "john" {
		t.Errorf("mary sees %+v", got) // her own draft, of his form
	}
	assert.Empty(t, h.list("mary", form.KindForm, form.Current), "a draft put the form into mary's list")
	plainInstance, err := h.Router.Create(t.Context(), &message.Create{Caller: h.user("john"), WorkflowID: "leave"})
	require.NoError(t, err)
	r := h.request("john", "leave", plainInstance.InstanceID)
	_, err = h.Form(t.Context(), &r)
	assert.ErrorIs(t, err, failure.ErrNotFound, "an instance that is no form")
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
		_, err := h.submit("john", "-", id, text, "")
		assert.True(t, errors.Is(err, failure.ErrInvalid) == refused && (refused || err == nil), "%s: got %v, want a refusal: %v", text, err, refused)
		if refused {
			want = workflowtest.Value(`{}`)
		}
		v := h.view("john", "-", id)
		assert.True(t, data.Equal(v.Data, want), "%s: got %s", text, v.Data)
		r := h.request("eve", "-", id)
		_, err = h.Form(t.Context(), &r)
		assert.ErrorIs(t, err, failure.ErrNotFound, "%s: eve", text)
		assert.Equal(t, `{"owner":"john"}`, string(h.record("john", "-", id).Private), "%s: svcPrivate", text)
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
	v := h.view("john", "leave", id)
	assert.True(t, v.Category == form.Submitted && v.Summary.SubmissionID != "" && v.Summary.Status == "review", "after it was submitted: %s, %+v", v.Category, v.Summary)
}

// TestTemplatesThatChange holds actors/formportal/DESIGN.md, "Forms", for templates
// that are switched off, gone, or changed.
func TestTemplatesThatChange(t *testing.T) {
	h := newHouse(t)
	first, second := h.create("john", "feedback", ""), h.create("john", "feedback", "")
	bound := h.create("john", "leave-form", "leave")
	h.offer(strings.Replace(feedbackTemplate, "id: feedback, name: Feedback", "id: feedback, name: Changed, enabled: false", 1), leaveTemplate, safetyTemplate)
	_, err := h.Create(t.Context(), h.creating("john", "feedback", "", ""))
	assert.ErrorIs(t, err, failure.ErrNotFound, "a new one of what is switched off")
	_, err = h.save("john", "-", first, `{"text":"x"}`)
	assert.NoError(t, err, "a draft, switched off")
	h.mustSubmit("john", "-", first, `{"text":"x"}`)
	v := h.view("john", "-", first)
	assert.True(t, v.Summary.Name.For() == "Feedback" && v.Template.Name.For() == "Changed", "%v %v", v.Summary.Name, v.Template)
	h.offer(strings.Replace(feedbackTemplate, "type: string", "type: integer", 1), strings.Replace(leaveTemplate, "submit: submit", "submit: note", 1))
	_, err = h.submit("john", "-", second, `{"text":"x"}`, "")
	assert.ErrorIs(t, err, failure.ErrInvalid, "against the changed schema")
	h.mustSubmit("john", "leave", bound, `{"days":1}`) // sends the event of now
	v = h.view("john", "leave", bound)
	assert.True(t, v.Summary.Status == "draft" && v.Sequence == 2, "submitted with note: %+v", v.Summary)
	_, err = h.save("john", "-", second, `{"text":"kept"}`)
	require.NoError(t, err)
	h.offer()
	for workflowID, id := range map[string]string{"-": second, "leave": bound} {
		v := h.view("john", workflowID, id)
		assert.True(t, v.Template == nil && !v.Editable && v.Category == form.Current && h.where("john", id) == "form current", "without its template: %+v", v)
		_, err := h.save("john", workflowID, id, `{}`)
		assert.ErrorIs(t, err, failure.ErrNotAllowed, "a draft without its template")
		_, err = h.submit("john", workflowID, id, `{}`, "")
		assert.ErrorIs(t, err, failure.ErrNotAllowed, "submitted without its template")
	}
	v = h.view("john", "-", second)
	assert.True(t, v.Draft != nil && string(v.Draft.Data) == `{"text":"kept"}`, "the draft: %+v", v.Draft)
	h.mustSend("john", "leave", bound, "submit") // events go on
	assert.Equal(t, "form submitted", h.where("john", bound), "got it among")
}

// TestAWorkflowThatIsGone: its forms are still listed, read and submitted, but
// there are no new ones.
func TestAWorkflowThatIsGone(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	h.workflows(payroll)
	_, err := h.Create(t.Context(), h.creating("john", "leave-form", "leave", ""))
	assert.ErrorIs(t, err, failure.ErrNotFound, "a new one")
	h.restart()
	h.mustSubmit("john", "leave", id, `{"days":1}`)
	assert.Equal(t, "form submitted", h.where("john", id), "got it among")
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
			_, err := h.submit("mary", "leave", forms[0].created, `{"days":1}`, "unused")
			assert.ErrorIs(t, err, failure.ErrNotFound, "a new key for a form out of sight")
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
			_, err = h.Create(t.Context(), &other)
			assert.ErrorIs(t, err, failure.ErrKeyReused, "%s: the key for another create", step.when)
			reply, err := h.submit("mary", f.workflow, id, f.data, "s")
			require.NoError(t, err, "%s: submit %s", step.when, f.data)
			record := string(reply.AppendRecord(nil))
			f.submitted = cmp.Or(f.submitted, record)
			assert.Equal(t, f.submitted, record, "%s: submit %s", step.when, f.data)
			_, err = h.submit("mary", f.workflow, id, `{}`, "s")
			assert.ErrorIs(t, err, failure.ErrKeyReused, "%s: the key for another submission", step.when)
		}
	}
	_, err := h.Create(t.Context(), h.creating("mary", "feedback", "", "new"))
	assert.ErrorIs(t, err, failure.ErrNotFound, "a new key without the template")
	_, err = h.submit("mary", "-", forms[1].created, `{"text":"x"}`, "new")
	assert.ErrorIs(t, err, failure.ErrNotAllowed, "a new key without the template")
	id, err := h.Create(t.Context(), h.creating("john", "leave-form", "leave", "k"))
	assert.True(t, errors.Is(err, failure.ErrNotFound) && id == "", "another user's key: got %q, %v, want ErrNotFound", id, err)
}

// TestOneOfTwoSubmissions: of many at the same time one is taken.
func TestOneOfTwoSubmissions(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	_, err := h.save("john", "leave", id, `{"days":1}`)
	require.NoError(t, err)
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
		assert.Equal(t, c.want, isForAnother(&c.draft, of), c.draft)
	}
}
