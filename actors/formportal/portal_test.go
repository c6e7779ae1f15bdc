package formportal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/quota"
	"troupe/actors/workflow"
)

// TestCategories holds gateway/INTERFACE.md, "Categories", as a table.
func TestCategories(t *testing.T) {
	const start, other, end = `[{"nodeId":"a"}]`, `[{"nodeId":"b"}]`, `[{"nodeId":"c"}]`
	newID := func() string { return "id" }
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	begin := func(states string, done bool) form.Form {
		return form.Form{Kind: form.Plain}.Begin([]byte(states), done, at(1000), newID)
	}
	next := func(f form.Form, states string, done bool, ms int64) form.Form {
		return f.Next([]byte(states), done, at(ms), newID)
	}
	draft := begin(start, false)
	moved := next(draft, other, false, 2000)
	done := next(moved, end, true, 3000)
	back := next(moved, start, false, 3000)
	left := next(done, other, false, 4000)
	const keep = 500 * time.Millisecond
	for _, c := range []struct {
		name string
		form form.Form
		now  int64
		want Category
	}{
		{"just made", draft, 1000, Current},
		{"made long ago", draft, 1e9, Current},
		{"submitted", moved, 2000, Submitted},
		{"submitted long ago and not completed", moved, 1e9, Submitted},
		{"completed now", done, 3000, Submitted},
		{"completed, as long ago as the retention", done, 3500, Submitted},
		{"completed, a millisecond longer", done, 3501, Archived},
		{"completed, and the clock was set back", done, 1, Submitted},
		{"sent back to the start", back, 1e9, Current},
		{"sent back and submitted again", next(back, other, false, 4000), 1e9, Submitted},
		{"completed again, from then on", next(left, end, true, 5000), 5500, Submitted},
		{"completed again, longer ago", next(left, end, true, 5000), 5501, Archived},
		{"left its end", left, 1e9, Submitted},
		{"left its end for the start", next(done, start, false, 4000), 1e9, Current},
		{"made at its end", begin(end, true), 1500, Submitted},
		{"made at its end long ago", begin(end, true), 1501, Archived},
	} {
		if got := categoryOf(&c.form, at(c.now), keep); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestTheLifeOfAPlainForm goes from the template to the archive, and over
// restarts.
func TestTheLifeOfAPlainForm(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct{ who, template, formType, kind, name, role, data, bad string }{
		{"mary", "feedback", "Form", "form", "Feedback", "manager", `{"text":"good"}`, `{"text":1}`},
		{"mary", "safety", "Checklist", "checklist", "Safety", "inspector", `{"exits":true,"light":false}`, `{"exits":false}`},
	} {
		id := h.create(c.who, c.template, "")
		look := func(step, category, status string) {
			t.Helper()
			h.restart()
			if got := h.where(c.who, id); got != c.kind+" "+category {
				t.Errorf("%s: got it among %q, want %s", step, got, category)
			}
			v := h.view(c.who, PlainWorkflow, id)
			want := Summary{
				ID: id, FormType: c.formType, FormID: c.template, Name: c.name, FullPath: "form-runtime/" + c.template + "/-/" + id + "/index.html",
				By: c.who, When: v.Summary.When, Status: status, Role: c.role, SubmissionID: v.Summary.SubmissionID,
			}
			if *v.Summary != want || (status == "") != (v.Summary.SubmissionID == "") || v.Category.String() != category {
				t.Errorf("%s: got %+v and %s, want %+v", step, v.Summary, v.Category, want)
			}
			if editable := category == "current"; v.Editable != editable || (v.SubmittedAt == 0) != editable {
				t.Errorf("%s: editable %v, submitted at %d", step, v.Editable, v.SubmittedAt)
			}
		}
		look("made", "current", "")
		if v := h.view(c.who, PlainWorkflow, id); string(v.Data) != `{}` || v.Draft != nil || v.Template.ID != c.template || v.Sequence != 1 {
			t.Errorf("made: %+v", v)
		}
		first, err := h.save(c.who, PlainWorkflow, id, c.bad) // a draft need not fit yet
		if err != nil {
			t.Fatal(err)
		}
		look("with a draft", "current", "")
		if v := h.view(c.who, PlainWorkflow, id); string(v.Draft.Data) != c.bad || v.Draft.Revision != first.Revision || v.Draft.SavedAt != first.SavedAt {
			t.Errorf("the draft: %+v, want %+v", v.Draft, first)
		}
		if _, err := h.submit(c.who, PlainWorkflow, id, c.bad, "k"); !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), map[string]string{"feedback": "text", "safety": "exits"}[c.template]) {
			t.Errorf("what does not fit: got %v, want ErrInvalid with the place", err)
		}
		if v := h.view(c.who, PlainWorkflow, id); v.Sequence != 1 || v.Draft == nil {
			t.Errorf("what does not fit left a trace: %+v", v)
		}
		reply, err := h.submit(c.who, PlainWorkflow, id, c.data, "k")
		if err != nil || reply.Sequence != 2 {
			t.Fatalf("submitted: %v, %v", reply, err)
		}
		look("submitted", "submitted", "submitted")
		if v := h.view(c.who, PlainWorkflow, id); string(v.Data) != c.data || v.Draft != nil || v.Sequence != 2 {
			t.Errorf("submitted: %+v", v)
		}
		if _, err := h.submit(c.who, PlainWorkflow, id, c.data, ""); !errors.Is(err, failure.ErrNotAllowed) {
			t.Errorf("submitted again: got %v, want ErrNotAllowed", err)
		}
		if again, err := h.submit(c.who, PlainWorkflow, id, c.data, "k"); err != nil || string(again.AppendRecord(nil)) != string(reply.AppendRecord(nil)) {
			t.Errorf("submitted again with the key: %v, %v, want %s", again, err, reply.AppendRecord(nil))
		}
		if _, err := h.save(c.who, PlainWorkflow, id, `{}`); !errors.Is(err, failure.ErrNotAllowed) {
			t.Errorf("a draft of what is submitted: got %v, want ErrNotAllowed", err)
		}
		if v := h.view(c.who, PlainWorkflow, id); v.Sequence != 2 {
			t.Errorf("history has %d entries, want 2", v.Sequence)
		}
		h.wait(30*24*time.Hour - time.Minute)
		look("a minute before its time", "submitted", "submitted")
		h.wait(time.Minute)
		look("archived", "archived", "submitted")
	}
}

// TestTheLifeOfAWorkflowForm is the same for a form that is bound to a workflow.
func TestTheLifeOfAWorkflowForm(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	submission := ""
	look := func(step, category, status string, editable bool) {
		t.Helper()
		if got := h.where("john", id); got != "form "+category {
			t.Errorf("%s: got it among %q, want %s", step, got, category)
		}
		v := h.view("john", "leave", id)
		if v.Summary.FormType != "WorkflowForm" || v.Summary.FullPath != "form-runtime/leave-form/leave/"+id+"/index.html" ||
			v.Summary.Status != status || v.Category.String() != category || v.Editable != editable || v.Summary.Role != "employee" {
			t.Errorf("%s: got %+v, %s, editable %v", step, v.Summary, v.Category, v.Editable)
		}
		if submission == "" {
			submission = v.Summary.SubmissionID
		}
		if v.Summary.SubmissionID != submission {
			t.Errorf("%s: the submission's id became %q from %q", step, v.Summary.SubmissionID, submission)
		}
		listed := h.list("john", form.Plain, v.Category)
		if len(listed) != 1 || *listed[0] != *v.Summary {
			t.Errorf("%s: the list shows %+v, the form %+v", step, listed, v.Summary)
		}
	}
	look("made", "current", "draft", true)
	h.mustSend("john", "leave", id, "note")
	look("an event that stays", "current", "draft", true)
	if _, err := h.save("john", "leave", id, `{"days":1}`); err != nil {
		t.Fatal(err)
	}
	h.mustSubmit("john", "leave", id, `{"days":2}`)
	look("submitted", "submitted", "review", false)
	if submission == "" {
		t.Error("no submission id")
	}
	if v := h.view("john", "leave", id); v.Draft != nil || !strings.Contains(string(v.Data), `"days":2`) || string(v.States) != `[{"stateMachineId":"main","nodeId":"review"}]` {
		t.Errorf("submitted: %+v", v)
	}
	if _, err := h.submit("john", "leave", id, `{"days":3}`, ""); !errors.Is(err, failure.ErrNotAllowed) {
		t.Errorf("submitted twice: got %v, want ErrNotAllowed", err)
	}
	h.mustSend("mary", "leave", id, "back")
	look("sent back", "current", "draft", true)
	if v := h.view("john", "leave", id); v.Draft != nil {
		t.Error("the draft came back")
	}
	h.mustSubmit("mary", "leave", id, `{"days":4}`) // who may send may submit
	look("submitted by another", "submitted", "review", false)
	h.mustSend("mary", "leave", id, "approve")
	look("approved", "submitted", "approved", false)
	h.restart()
	h.wait(30*24*time.Hour + time.Second)
	look("archived", "archived", "approved", false)
	if len(h.list("mary", form.Plain, Archived))+len(h.list("mary", form.Plain, Submitted)) != 0 {
		t.Error("mary's lists show john's form")
	}
	record := h.record("john", "leave", id)
	var events []string
	for _, e := range record.History {
		events = append(events, e.User+" "+e.TransitionEvent)
	}
	if got := strings.Join(events, ", "); got != "john , john note, john submit, mary back, mary submit, mary approve" {
		t.Errorf("history: %s", got)
	}
}

// TestSeveralMachines holds "every machine is still in its initial node" and
// "every machine in a final node".
func TestSeveralMachines(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "approval-form", "approval")
	for _, c := range []struct{ event, category, status string }{
		{"", "current", "a, x"}, {"sign", "submitted", "b, y"}, {"undo", "submitted", "a, y"}, {"sign", "submitted", "b, y"}, {"end", "submitted", "c, y"},
	} {
		if c.event != "" {
			h.mustSend("john", "approval", id, c.event)
		}
		if v := h.view("john", "approval", id); v.Category.String() != c.category || v.Summary.Status != c.status || v.Editable {
			t.Errorf("after %q: got %s, %q, editable %v; want %s, %q", c.event, v.Category, v.Summary.Status, v.Editable, c.category, c.status)
		}
	}
	h.wait(31 * 24 * time.Hour)
	if got := h.where("john", id); got != "form archived" {
		t.Errorf("got it among %q", got)
	}
	// The template names no event: nothing submits the form but group B.
	other := h.create("john", "approval-form", "approval")
	if _, err := h.submit("john", "approval", other, `{}`, ""); !errors.Is(err, failure.ErrNotAllowed) {
		t.Errorf("a form that nothing submits: got %v, want ErrNotAllowed", err)
	}
	if _, err := h.save("john", "approval", other, `{}`); !errors.Is(err, failure.ErrNotAllowed) {
		t.Errorf("a draft of it: got %v, want ErrNotAllowed", err)
	}
}

// TestFailedCreate holds gateway/INTERFACE.md, "Creating forms", for what is refused.
func TestFailedCreate(t *testing.T) {
	h := newHouse(t)
	h.offer(leaveTemplate, approvalTemplate, feedbackTemplate, offTemplate, safetyTemplate,
		`{id: alone, access: {roles: [employee]}, workflows: [], schema: {type: object}}`)
	h.workflows(leaveRequest, payroll, approval,
		"{id: strict, create: {svcPublic: {type: object, required: [x]}}, stateMachines: {m: {states: {a: {on: {submit: b}}, b: {type: final}}}}}")
	for _, c := range []struct {
		name, who, template, workflow string
		want                          error
	}{
		{"a form with its workflow", "john", "leave-form", "leave", nil},
		{"a form without a workflow", "john", "feedback", "", nil},
		{"a checklist", "ivan", "safety", "", nil},
		{"a workflow that only its caller may create", "mary", "leave-form", "payroll", nil},
		{"an unknown template", "john", "nothing", "", failure.ErrNotFound},
		{"an unknown template and a workflow", "john", "nothing", "leave", failure.ErrNotFound},
		{"a template that is switched off", "john", "off", "", failure.ErrNotFound},
		{"a template of another role", "ivan", "feedback", "", failure.ErrNotFound},
		{"a checklist of another role", "john", "safety", "", failure.ErrNotFound},
		{"a user without roles that count", "gus", "leave-form", "leave", failure.ErrNotFound},
		{"an unknown workflow", "john", "leave-form", "nothing", failure.ErrNotFound},
		{"a workflow that the caller may not create", "john", "leave-form", "payroll", failure.ErrNotFound},
		{"a workflow of another form", "john", "leave-form", "approval", failure.ErrInvalid},
		{"a form that names none, with a workflow that has its event", "john", "feedback", "leave", nil},
		{"the same with one that has not", "john", "feedback", "approval", failure.ErrInvalid},
		{"a workflow for a form that takes none", "john", "alone", "leave", failure.ErrInvalid},
		{"a form that takes none, without", "john", "alone", "", nil},
		{"data that the workflow's create block demands", "john", "feedback", "strict", failure.ErrInvalid},
		{"the workflow of plain forms by its name", "john", "feedback", PlainWorkflow, failure.ErrNotFound},
		{"a form that needs a workflow, without", "john", "leave-form", "", failure.ErrInvalid},
	} {
		id, err := h.Create(t.Context(), h.creating(c.who, c.template, c.workflow, ""))
		if !errors.Is(err, c.want) || (err == nil) != (id != "") {
			t.Errorf("%s: got %q, %v; want %v", c.name, id, err, c.want)
		}
		if again, err := h.Create(t.Context(), h.creating(c.who, c.template, c.workflow, "key of "+c.name)); !errors.Is(err, c.want) || (err == nil) != (again != "") {
			t.Errorf("%s, with a key: got %q, %v; want %v", c.name, again, err, c.want)
		}
	}
	wrong := h.creating("ivan", "safety", "", "")
	wrong.Kind = form.Plain
	if _, err := h.Create(t.Context(), wrong); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a checklist's id for a form: got %v, want ErrNotFound", err)
	}
	unknown, _ := h.Create(t.Context(), h.creating("john", "nothing", "", ""))
	if unknown != "" {
		t.Errorf("an id with an error: %q", unknown)
	}
	made := map[string]int{"john": 8, "ivan": 2, "mary": 2, "gus": 0, "eve": 0}
	for who, want := range made {
		got := 0
		for _, kind := range []form.Kind{form.Plain, form.Checklist} {
			got += len(h.list(who, kind, Current))
		}
		if got != want {
			t.Errorf("%s has %d forms, want %d: a refusal left something", who, got, want)
		}
	}
}

// TestRoles holds gateway/INTERFACE.md, "Roles of the portal", and
// gateway/INTERFACE.md, "Templates of a role".
func TestRoles(t *testing.T) {
	h := newHouse(t)
	for who, want := range map[string]string{
		"john": "employee | ", "mary": "employee manager | inspector", "ivan": " | inspector", "gus": " | ",
	} {
		info, err := h.RoleInfo(t.Context(), h.user(who))
		if err != nil {
			t.Fatal(err)
		}
		names := func(roles []identity.Role) string {
			var out []string
			for _, r := range roles {
				out = append(out, string(r.ID))
			}
			return strings.Join(out, " ")
		}
		if got := names(info.Forms) + " | " + names(info.Checklists); got != want {
			t.Errorf("roles of %s: got %q, want %q", who, got, want)
		}
	}
	for _, c := range []struct {
		who  string
		kind form.Kind
		role string
		want string
		err  error
	}{
		{"john", form.Plain, "employee", "feedback leave-form approval-form", nil}, // by name, capitals first
		{"mary", form.Plain, "manager", "feedback leave-form", nil},
		{"mary", form.Plain, "inspector", "", nil},
		{"ivan", form.Checklist, "inspector", "safety", nil},
		{"john", form.Checklist, "employee", "", nil},
		{"gus", form.Plain, "guest", "", nil},
		{"john", form.Plain, "manager", "", failure.ErrNotFound},
		{"john", form.Plain, "nothing", "", failure.ErrNotFound},
		{"john", form.Plain, "", "", failure.ErrNotFound},
	} {
		got, err := h.OfRole(t.Context(), h.user(c.who), c.kind, c.role)
		if !errors.Is(err, c.err) || ids(got) != c.want {
			t.Errorf("templates of %s for %s: got %q, %v; want %q, %v", c.role, c.who, ids(got), err, c.want, c.err)
		}
	}
	for who, want := range map[string]string{"john": "approval leave", "mary": "approval leave payroll", "gus": "approval"} {
		choices, err := h.Workflows(t.Context(), h.user(who))
		var got []string
		for _, c := range choices {
			got = append(got, c.ID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("workflows of %s: got %v, %v; want %s", who, got, err, want)
		}
	}
	// The first role of the template that the caller has, not of the caller.
	if v := h.view("mary", "leave", h.create("mary", "leave-form", "leave")); v.Summary.Role != "employee" {
		t.Errorf("got the role %q, want employee", v.Summary.Role)
	}
	if v := h.view("mary", PlainWorkflow, h.create("mary", "feedback", "")); v.Summary.Role != "manager" {
		t.Errorf("got the role %q, want manager", v.Summary.Role)
	}
}

// TestTheOrderOfAList holds gateway/INTERFACE.md, "Order of forms", for both kinds
// of forms.
func TestTheOrderOfAList(t *testing.T) {
	h := newHouse(t)
	for range 20 {
		h.create("john", "feedback", "")
		h.create("john", "leave-form", "leave")
		h.create("eve", "feedback", "")
	}
	list := h.list("john", form.Plain, Current)
	if len(list) != 40 || !slices.IsSortedFunc(list, func(a, b *Summary) int {
		if a.When != b.When {
			return int(b.When - a.When)
		}
		return strings.Compare(a.ID, b.ID)
	}) {
		t.Errorf("%d forms, or out of order", len(list))
	}
	stop := errors.New("stop")
	seen := 0
	err := h.List(t.Context(), &ListRequest{Caller: h.user("john"), Kind: form.Plain}, func(*Summary) error { seen++; return stop })
	if !errors.Is(err, stop) || seen != 1 {
		t.Errorf("got %v after %d", err, seen)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.List(ended, &ListRequest{Caller: h.user("john"), Kind: form.Plain}, func(*Summary) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: got %v", err)
	}
}

// TestListsAgreeWithInstances: after any events, the lists of everybody say what
// the instances say, and nobody is shown what is not theirs.
func TestListsAgreeWithInstances(t *testing.T) {
	h := newHouse(t)
	type made struct{ who, workflow, id string }
	var all []made
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if len(all) == 0 || rapid.IntRange(0, 3).Draw(t, "create") == 0 {
				who := rapid.SampledFrom([]string{"john", "mary", "root"}).Draw(t, "who")
				template := rapid.SampledFrom([]string{"leave-form", "approval-form", "feedback"}).Draw(t, "template")
				workflowID := map[string]string{"leave-form": "leave", "approval-form": "approval"}[template]
				id := h.create(who, template, workflowID)
				if workflowID == "" {
					workflowID = PlainWorkflow
				}
				all = append(all, made{who, workflowID, id})
				continue
			}
			f := rapid.SampledFrom(all[max(0, len(all)-5):]).Draw(t, "form")
			event := rapid.SampledFrom([]string{"submit", "note", "back", "approve", "sign", "undo", "end", "(submit)", "(draft)", "(restart)", "(time)"}).Draw(t, "event")
			switch event {
			case "(submit)":
				_, _ = h.submit(f.who, f.workflow, f.id, `{"days":1}`, "")
			case "(draft)":
				_, _ = h.save(f.who, f.workflow, f.id, `{}`)
			case "(restart)":
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					h.restart()
				}
			case "(time)":
				h.wait(16 * 24 * time.Hour)
			default:
				_ = h.send("mary", f.workflow, f.id, event) // many are refused
			}
		}
		shown := map[string]*Summary{}
		category := map[string]Category{}
		for _, who := range []string{"john", "mary", "root", "eve"} {
			for c := Current; c <= Archived; c++ {
				for _, s := range h.list(who, form.Plain, c) {
					if s.By != who || shown[s.ID] != nil {
						t.Fatalf("%s is shown %+v", who, s)
					}
					shown[s.ID], category[s.ID] = s, c
				}
			}
		}
		if len(shown) != len(all) {
			t.Fatalf("%d forms are shown, %d were made", len(shown), len(all))
		}
		for _, f := range all[max(0, len(all)-5):] {
			s, record := shown[f.id], h.record(f.who, f.workflow, f.id)
			var nodes []string
			for _, state := range record.States {
				nodes = append(nodes, state.NodeID)
			}
			status := strings.Join(nodes, ", ")
			current := map[string]bool{"draft": true, "a, x": true}[status]
			if f.workflow == PlainWorkflow && status == "draft" {
				status = ""
			}
			created, err := time.Parse(time.RFC3339Nano, record.History[0].TS)
			if err != nil || created.UnixMilli() != s.When || record.History[0].User != s.By || s.By != f.who {
				t.Fatalf("%s: made by %s at %d, history %+v", f.id, s.By, s.When, record.History[0])
			}
			if s.Status != status || (category[f.id] == Current) != current {
				t.Fatalf("%s: listed as %q among %s, the instance is in %v", f.id, s.Status, category[f.id], nodes)
			}
			if category[f.id] == Archived && !map[string]bool{"approved": true, "submitted": true, "c, y": true}[status] {
				t.Fatalf("%s: archived in %q", f.id, status)
			}
		}
	})
	if len(all) < 20 {
		t.Errorf("only %d forms were made", len(all))
	}
}

// TestALongListInLittleMemory reads a list of many forms, and measures what the
// heap grows by meanwhile.
func TestALongListInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	h := newHouse(t)
	const forms, limit = 5_000, 1 << 20
	h.createMany("john", forms)
	h.readAll("john", func(*Summary) {}) // the store's caches fill up, once
	grown, count := h.readAll("john", func(*Summary) {})
	if count != forms || grown > limit {
		t.Errorf("%d forms, and the heap grew by %d KiB; want %d and at most %d", count, grown>>10, forms, limit>>10)
	}
	t.Logf("%d forms: the heap grew by %d KiB", count, grown>>10)
	var kept []*Summary // the control: who keeps them all is found out
	if grown, _ = h.readAll("john", func(s *Summary) { kept = append(kept, s) }); grown < limit {
		t.Errorf("%d forms were kept, and the heap grew only by %d KiB", len(kept), grown>>10)
	}
	t.Logf("with all %d kept, by %d KiB", len(kept), grown>>10)
}

// BenchmarkLongList reads a list of 100,000 forms.
func BenchmarkLongList(b *testing.B) {
	h := newHouse(b)
	const forms = 100_000
	h.createMany("john", forms)
	var worst uint64
	for b.Loop() {
		grown, count := h.readAll("john", func(*Summary) {})
		if count != forms {
			b.Fatal(fmt.Sprint(count, " forms"))
		}
		worst = max(worst, grown)
	}
	b.ReportMetric(float64(worst>>10), "KiB-heap")
}

// TestFormsPassQuotas holds gateway/INTERFACE.md, "Quotas": group A has none. The
// control sends the same through group B.
func TestFormsPassQuotas(t *testing.T) {
	h := newHouse(t)
	h.quotas = quota.Limits{EventsPerSecond: 0.001, CreatesPerSecond: 0.001, HistoryEntries: 1}
	h.restart()
	h.workflows(leaveRequest, payroll, approval)
	for range 3 {
		id := h.create("john", "leave-form", "leave")
		h.mustSubmit("john", "leave", id, `{"days":1}`)
		h.create("john", "feedback", "")
	}
	for n := range 2 {
		_, err := h.router.Create(t.Context(), &workflow.CreateRequest{Caller: h.user("john"), WorkflowID: "leave"})
		if (err == nil) != (n == 0) || err != nil && !errors.Is(err, failure.ErrQuota) {
			t.Errorf("create %d of group B: got %v", n+1, err)
		}
	}
	if err := h.send("john", "leave", h.create("john", "leave-form", "leave"), "submit"); !errors.Is(err, failure.ErrQuota) {
		t.Errorf("an event of group B that adds an entry: got %v, want ErrQuota", err)
	}
}

// TestOneUserDoesNotTakeThePortal: unread lists of one user leave room for those
// of others, and nothing is refused.
func TestOneUserDoesNotTakeThePortal(t *testing.T) {
	h := newHouse(t)
	h.create("john", "feedback", "")
	h.create("mary", "feedback", "")
	const lists = 300 // more than there are workers
	release := make(chan struct{})
	answers := make(chan error, lists)
	for range lists {
		go func() {
			answers <- h.List(t.Context(), &ListRequest{Caller: h.user("john"), Kind: form.Plain, Category: Current}, func(*Summary) error { <-release; return nil })
		}()
	}
	for h.Metrics().Open < lists {
		runtime.Gosched()
	}
	if got := h.list("mary", form.Plain, Current); len(got) != 1 {
		t.Errorf("mary's list: got %v", got)
	}
	close(release)
	for range lists {
		if err := <-answers; err != nil {
			t.Fatalf("a list of john's: %v", err)
		}
	}
}
