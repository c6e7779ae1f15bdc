package endtoend

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestInterfacePortal asks a program with templates.
func TestInterfacePortal(t *testing.T) {
	s := sceneOf(start(t, newHome(t, portalFiles())))
	for _, l := range portalLines() {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, s) })
	}
	s.stop()
}

func portalLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Workflows of the portal"`, "GET workflows answers what the caller may create", portalWorkflows},
		{`gateway/INTERFACE.md, "Categories"`, "a plain form", lifeOfAPlainForm},
		{`gateway/INTERFACE.md, "Categories"`, "a checklist", lifeOfAChecklist},
		{`gateway/INTERFACE.md, "Templates of a role"`, "forms and checklists alike; those of another role are 404", templatesOfARole},
		{`gateway/INTERFACE.md, "Templates of a role"`, "every field of an entry; lastModified follows the file", lastModifiedFollows},
		{`gateway/INTERFACE.md, "Which group takes which"`, "group A takes a session, never a token", sessionOnly},
		{`gateway/INTERFACE.md, "Privileges"`, "each route names its own", portalPrivileges},
		{`gateway/INTERFACE.md, "Errors"`, "group A, 400 Bad request and 404 Not found", failedCreate},
		{`gateway/INTERFACE.md, "Errors"`, "group A, 403 Access denied", portalPrivileges},
		{`gateway/INTERFACE.md, "Errors"`, "group A, 500 Server error", serverError},
		{`gateway/INTERFACE.md, "Versioning"`, "group A, the paths have no version", portalIsUnversioned},
		{`gateway/INTERFACE.md, "Roles of the portal"`, "formRoles and checklistRoles are the roles that carry the privilege", roleInfo},
		{`gateway/INTERFACE.md, "Categories"`, "Current: every machine is still in its initial node", twoMachines},
		{`gateway/INTERFACE.md, "Categories"`, "a form with a workflow", lifeOfAWorkflowForm},
		{`gateway/INTERFACE.md, "Categories"`, "archived, after longer than the retention", archivedInTime},
		{`gateway/INTERFACE.md, "Form types"`, "each kind has its own", lifeOfAChecklist},
		{`gateway/INTERFACE.md, "Creating forms"`, "a failed create; without workflowId 400 when the template needs one", failedCreate},
		{`gateway/INTERFACE.md, "Fields of a form"`, "status", twoMachines},
		{`gateway/INTERFACE.md, "Fields of a form"`, "role, the first of the template's that the caller has", roleOfAForm},
		{`gateway/INTERFACE.md, "Order of forms"`, "newest first", newestFirst},
		{`gateway/INTERFACE.md, "Fields of a form"`, "every field", lifeOfAWorkflowForm},
		{`gateway/INTERFACE.md, "Creating forms"`, "the answer is plain text: the id, which is the instance's _id", createAnswersText},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "group A", portalCSRF},
		{`gateway/INTERFACE.md, "Errors"`, "the words of group A", portalWords},
		{`gateway/INTERFACE.md, "HEAD"`, "group A", portalHead},
		{`gateway/INTERFACE.md, "Quotas"`, "rates are off, and never apply to group A", portalRates},
		{`gateway/INTERFACE.md, "Base path"`, "group A", portalBasePath},
		{`gateway/INTERFACE.md, "Drafts"`, "a draft is its user's, has revisions, and is no state", draftLife},
		{`gateway/INTERFACE.md, "Reading a form"`, "other users' plain forms are 404", othersForms},
		{`gateway/INTERFACE.md, "Submitting"`, "a submission is checked, taken once, and repeated with its key", submissions},
		{`gateway/INTERFACE.md, "Submitting"`, "the template that is loaded now counts", templateChanges},
		{`gateway/INTERFACE.md, "Reading a form"`, "what is shown agrees with group B", agreesWithGroupB},
	}
}

func roleInfo(t *testing.T, s *scene) {
	for name, want := range map[string]string{
		"ann": `{"formRoles":[{"id":"employee","name":"Employee"}],"checklistRoles":[]}`,
		"bob": `{"formRoles":[{"id":"employee","name":"Employee"},{"id":"boss","name":"The \"boss\""}],"checklistRoles":[{"id":"inspector","name":"Inspector"}]}`,
		"kim": `{"formRoles":[],"checklistRoles":[]}`,
	} {
		a := s.desk(name).get(t, "/form-portal/role-info")
		if reason := headersReason(a); a.status != 200 || a.body != want || reason != "" {
			t.Errorf("%s: got %d %s, want %s; %s", name, a.status, a.body, want, reason)
		}
	}
}

func portalWorkflows(t *testing.T, s *scene) {
	for name, want := range map[string]string{
		"ann": `[{"id":"leave","name":"Leave"},{"id":"plain","name":"plain"},{"id":"twin","name":"twin"}]`,
		"bob": `[{"id":"leave","name":"Leave"},{"id":"payroll","name":"payroll"},{"id":"plain","name":"plain"},{"id":"twin","name":"twin"}]`,
		"kim": `[{"id":"plain","name":"plain"},{"id":"twin","name":"twin"}]`,
	} {
		u := s.desk(name)
		a := u.get(t, "/form-portal/workflows")
		if a.status != 200 || a.body != want {
			t.Errorf("%s: got %d %s, want %s", name, a.status, a.body, want)
		}
		if choices := u.get(t, root+"/choices"); choices.body != `{"workflows":`+want+`}` {
			t.Errorf("%s: choices are %s", name, choices.body)
		}
	}
}

func createAnswersText(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for template, workflow := range map[string]string{"leave-form": "leave", "feedback": "", "safety": ""} {
		a := bob.tryForm(t, template, workflow)
		if a.status != 200 || !ulid.MatchString(a.body) {
			t.Errorf("%s: got %d %q, want an id", template, a.status, a.body)
		}
		if got := a.header.Get("Content-Type"); got != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", template, a.header)
		}
		if got := bob.where(t, a.body); !strings.HasSuffix(got, "/mycurrent") {
			t.Errorf("%s: %s is in %q", template, a.body, got)
		}
		if workflow != "" {
			if r := s.bob.load(t, workflow, a.body).record(t); r.ID != a.body || r.History[0].User != "bob" {
				t.Errorf("the instance is %s", r.text)
			}
		}
	}
}

func templatesOfARole(t *testing.T, s *scene) {
	bob := s.desk("bob")
	names := func(path string) string {
		t.Helper()
		var out []string
		for _, text := range arrayOf(t, bob.get(t, path)) {
			m := objectOf(t, string(text), "formId", "name", "description", "lastModified")
			file := map[string]string{"leave-form": "forms/leave.yaml", "feedback": "forms/feedback.yaml", "twin-form": "forms/twin.yaml", "safety": "checklists/safe.yaml"}[decode[string](t, m["formId"])]
			info, err := os.Stat(filepath.Join(s.home.dir, file))
			if err != nil || decode[int64](t, m["lastModified"]) != info.ModTime().UnixMilli() {
				t.Errorf("%s: lastModified is %s, the file's is %v (%v)", path, m["lastModified"], info.ModTime().UnixMilli(), err)
			}
			out = append(out, decode[string](t, m["formId"])+"/"+decode[string](t, m["name"])+"/"+decode[string](t, m["description"]))
		}
		return strings.Join(out, " ")
	}
	for path, want := range map[string]string{
		"/form-portal/forms/role/employee":       "feedback/Feedback/ leave-form/Leave request/Ask for days off twin-form/twin-form/",
		"/form-portal/forms/role/boss":           "feedback/Feedback/ leave-form/Leave request/Ask for days off",
		"/form-portal/forms/role/inspector":      "",
		"/form-portal/checklists/role/inspector": "safety/Safety/",
		"/form-portal/checklists/role/employee":  "",
	} {
		if got := names(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	missing := bob.get(t, "/form-portal/forms/role/nothing")
	wantFault(t, missing, 404, "Not found")
	for _, role := range []string{"boss", "inspector", "reader", "..", "%00", "%2e%2e", strings.Repeat("a", 5000), "a%20b"} {
		wantSameAnswer(t, s.desk("ann").get(t, "/form-portal/forms/role/"+role), missing)
	}
}

func lifeOfAPlainForm(t *testing.T, s *scene) {
	plainLife(t, s, "bob", "forms", formItem{FormType: "Form", FormID: "feedback", Name: "Feedback", Role: "boss"}, `{"text":"good"}`)
}

func lifeOfAChecklist(t *testing.T, s *scene) {
	plainLife(t, s, "bob", "checklists", formItem{FormType: "Checklist", FormID: "safety", Name: "Safety", Role: "inspector"}, `{"exits":true,"light":false}`)
}

// plainLife is the life of what is bound to no workflow.
func plainLife(t *testing.T, s *scene, name, lists string, want formItem, data string) {
	t.Helper()
	u := s.desk(name)
	before := time.Now().UnixMilli()
	want.ID, want.By = u.makeForm(t, want.FormID, ""), name
	want.FullPath = "form-runtime/" + want.FormID + "/-/" + want.ID + "/index.html"
	look := func(list string) formItem {
		t.Helper()
		if got := u.where(t, want.ID); got != lists+"/"+list {
			t.Fatalf("got it in %q, want %s", got, list)
		}
		all := u.forms(t, lists+"/"+list)
		got := all[slices.IndexFunc(all, func(f formItem) bool { return f.ID == want.ID })]
		if got.When < before || got.When > time.Now().UnixMilli() {
			t.Errorf("when: got %d, want about %d", got.When, before)
		}
		want.When = got.When
		if v := u.view(t, "-", want.ID); v.form != got || v.category != strings.TrimPrefix(list, "my") {
			t.Errorf("the form says %+v, the list %+v", v, got)
		}
		return got
	}
	if got := look("mycurrent"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if v := u.view(t, "-", want.ID); v.data != `{}` || v.draft != "null" || !v.editable || v.submittedAt != 0 || v.states[0].NodeID != "draft" {
		t.Errorf("new: %+v", v)
	}
	wantStatus(t, u.submit(t, "-", want.ID, data), 200)
	got := look("mysubmitted")
	want.Status, want.SubmissionID = "submitted", got.SubmissionID
	if got != want || !ulid.MatchString(got.SubmissionID) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if v := u.view(t, "-", want.ID); v.data != data || v.editable || v.submittedAt < want.When || v.states[0].NodeID != "submitted" {
		t.Errorf("submitted: %+v", v)
	}
}

func lifeOfAWorkflowForm(t *testing.T, s *scene) {
	ann, bob := s.desk("ann"), s.desk("bob")
	id := ann.makeForm(t, "leave-form", "leave")
	want := formItem{
		ID: id, FormType: "WorkflowForm", FormID: "leave-form", Name: "Leave request", By: "ann", Role: "employee",
		FullPath: "form-runtime/leave-form/leave/" + id + "/index.html",
	}
	look := func(step, list, status string) {
		t.Helper()
		if got := ann.where(t, id); got != "forms/"+list {
			t.Fatalf("%s: got it in %q, want %s", step, got, list)
		}
		v := ann.view(t, "leave", id)
		want.When, want.Status = v.form.When, status
		if want.SubmissionID == "" && list == "mysubmitted" {
			want.SubmissionID = v.form.SubmissionID
			if !ulid.MatchString(want.SubmissionID) {
				t.Errorf("%s: submissionId is %q", step, want.SubmissionID)
			}
		}
		if v.form != want {
			t.Errorf("%s: got %+v, want %+v", step, v.form, want)
		}
	}
	look("made", "mycurrent", "draft")
	s.ann.event(t, "leave", id, "note", "").record(t)
	look("an event that stays", "mycurrent", "draft")
	r := ann.submit(t, "leave", id, `{"days":2}`).record(t)
	if r.States[0].NodeID != "review" || r.History[2].TransitionEvent != "submit" || !strings.Contains(r.Public, `"days":2`) {
		t.Errorf("the answer of submit: %s", r.text)
	}
	look("submitted", "mysubmitted", "review")
	wantFault(t, ann.submit(t, "leave", id, `{"days":3}`), 409, "Conflict")
	s.bob.event(t, "leave", id, "back", "").record(t)
	look("sent back", "mycurrent", "draft")
	ann.submit(t, "leave", id, `{"days":4}`).record(t)
	look("submitted again", "mysubmitted", "review")
	s.bob.event(t, "leave", id, "approve", "").record(t)
	look("completed", "mysubmitted", "approved")
	if got := bob.where(t, id); got != "" {
		t.Errorf("bob's lists show it: %q", got)
	}
	if v := bob.view(t, "leave", id); v.form != want { // who may read the instance may see its form
		t.Errorf("bob sees %+v, want %+v", v.form, want)
	}
}

func twoMachines(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "twin-form", "twin")
	look := func(list, status string) {
		t.Helper()
		if got := ann.where(t, id); got != "forms/"+list || ann.view(t, "twin", id).form.Status != status {
			t.Errorf("got it in %q as %q, want %s and %q", got, ann.view(t, "twin", id).form.Status, list, status)
		}
	}
	look("mycurrent", "a, x")
	s.ann.event(t, "twin", id, "sign", "").record(t)
	look("mysubmitted", "b, x2")
	s.ann.event(t, "twin", id, "end", "").record(t)
	look("mysubmitted", "b, y")
}

func roleOfAForm(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for template, want := range map[string]string{"leave-form": "employee", "feedback": "boss", "safety": "inspector"} {
		workflow := map[string]string{"leave-form": "leave"}[template]
		id := bob.makeForm(t, template, workflow)
		if got := bob.view(t, cmp.Or(workflow, "-"), id).form.Role; got != want {
			t.Errorf("%s: got %q, want %q", template, got, want)
		}
	}
}

func newestFirst(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for range 10 {
		bob.makeForm(t, "feedback", "")
		bob.makeForm(t, "leave-form", "leave")
		bob.makeForm(t, "safety", "")
	}
	path, body := makeBody("feedback", "")
	bob.atOnce(t, 20, bob.sending("POST", path, body)) // some in the same millisecond
	for _, list := range []string{"forms/mycurrent", "checklists/mycurrent"} {
		items := bob.forms(t, list)
		if len(items) < 10 || !slices.IsSortedFunc(items, func(a, b formItem) int {
			return cmp.Or(cmp.Compare(b.When, a.When), cmp.Compare(a.ID, b.ID))
		}) {
			t.Errorf("%s: %d forms, or out of order: %+v", list, len(items), items)
		}
	}
}

func failedCreate(t *testing.T, s *scene) {
	count := func() int {
		n := 0
		for _, name := range []string{"ann", "bob"} {
			n += len(s.desk(name).forms(t, "forms/mycurrent")) + len(s.desk(name).forms(t, "checklists/mycurrent"))
		}
		return n
	}
	before := count()
	ann, bob := s.desk("ann"), s.desk("bob")
	for _, c := range []struct {
		why                string
		who                user
		template, workflow string
		status             int
	}{
		{"an unknown template", ann, "nothing", "", 404},
		{"an unknown template with a workflow", ann, "nothing", "leave", 404},
		{"what can be no template", ann, "../leave-form", "", 404},
		{"a template that is switched off", ann, "off", "", 404},
		{"a checklist for a form", ann, "safety!", "", 404},
		{"an unknown workflow", ann, "leave-form", "nothing", 404},
		{"a workflow that she may not create", ann, "leave-form", "payroll", 404},
		{"the workflow of plain forms", ann, "feedback", "-", 404},
		{"a workflow that does not belong to it", ann, "leave-form", "twin", 400},
		{"a workflow that does not know its event", ann, "feedback", "twin", 400},
		{"a form that needs a workflow, without", ann, "leave-form", "", 400},
		{"an invisible template", s.desk("lou"), "feedback", "", 404},
		{"an invisible checklist", s.desk("lou"), "safety", "", 404},
		{"no privilege", s.desk("kim"), "feedback", "", 403},
		{"no privilege for checklists", ann, "safety", "", 403},
	} {
		word := map[int]string{400: "Bad request", 403: "Access denied", 404: "Not found"}[c.status]
		if reason := faultReason(c.who.tryForm(t, c.template, c.workflow), c.status, word); reason != "" {
			t.Errorf("%s: %s", c.why, reason)
		}
	}
	for _, c := range []struct{ path, body string }{
		{"/form-portal/forms/create", ``},
		{"/form-portal/forms/create", `{}`},
		{"/form-portal/forms/create", `{"formId":1}`},
		{"/form-portal/forms/create", `{"formId":"feedback","formId":"feedback"}`},
		{"/form-portal/forms/create", `{"formId":"feedback","x":1}`},
		{"/form-portal/forms/create", `{"formId":"feedback","workflowId":null}`},
		{"/form-portal/forms/create", `["feedback"]`},
		{"/form-portal/checklists/create", `{"formId":"safety"}`},
		{"/form-portal/checklists/create", `{"checklistId":"safety","workflowId":"leave"}`},
		{"/form-portal/checklists/create", `{"checklistId":null}`},
		{"/form-portal/checklists/create", `checklistId=safety`},
	} {
		if reason := faultReason(bob.sendBody(t, "POST", c.path, c.body), 400, "Bad request"); reason != "" {
			t.Errorf("%s: %s", c.body, reason)
		}
	}
	if after := count(); after != before {
		t.Errorf("%d forms became %d", before, after)
	}
}

// portalAsks is one request to each route of group A and of the form runtime,
// with the privileges that it needs, of ann's forms.
func portalAsks(u user, id string) map[string]ask {
	asks := map[string]ask{}
	for _, path := range append([]string{"role-info", "workflows"}, portalLists...) {
		asks["mod-form-portal "+path] = ask{method: "GET", path: u.base + "/form-portal/" + path}
	}
	asks["mod-form forms/role"] = ask{method: "GET", path: u.base + "/form-portal/forms/role/employee"}
	asks["mod-checklist checklists/role"] = ask{method: "GET", path: u.base + "/form-portal/checklists/role/inspector"}
	asks["mod-form forms/create"] = ask{method: "POST", path: u.base + "/form-portal/forms/create", body: `{"formId":"feedback"}`}
	asks["mod-checklist checklists/create"] = ask{method: "POST", path: u.base + "/form-portal/checklists/create", body: `{"checklistId":"safety"}`}
	asks["mod-form-portal form"] = ask{method: "GET", path: u.base + runtimeRoot + "/form/-/" + id}
	asks["mod-form-portal,mod-form draft"] = ask{method: "PUT", path: u.base + runtimeRoot + "/draft/-/" + id, body: `{"data":{}}`}
	asks["mod-form-portal,mod-form drop"] = ask{method: "DELETE", path: u.base + runtimeRoot + "/draft/-/" + id}
	asks["mod-form-portal,mod-form submit"] = ask{method: "POST", path: u.base + runtimeRoot + "/submit", body: submitBody("-", id, `{"text":1}`)}
	for name, a := range asks {
		if a.body != "" {
			a.headers = []string{jsonType}
			asks[name] = a
		}
	}
	return asks
}

func sessionOnly(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "feedback", "")
	const refused = `{"error":"Unauthorized","message":"a session is needed"}`
	for name, a := range portalAsks(ann, id) {
		for _, headers := range [][]string{
			nil, s.ann.credential,
			{"Authorization: Bearer " + secretOf(s.ann)},
			{"Authentication: svc.token " + secretOf(s.ann)},
			{"Cookie: session=" + secretOf(s.ann)},
			{"Cookie: session=" + strings.Repeat("x", 60)},
			{"Authorization: " + strings.TrimPrefix(ann.credential[0], "Cookie: session=")},
		} {
			b := a
			b.headers = append(slices.Clone(a.headers), headers...)
			got := s.send(t, b)
			if got.status != 401 || got.body != refused || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %.30q: got %d %s, want %s", name, headers, got.status, got.body, refused)
			}
		}
		b := a
		b.headers = append(slices.Clone(a.headers), ann.credential...)
		b.headers = append(b.headers, s.bob.credential...) // a token beside the session is not looked at
		if got := s.send(t, b); got.status == 401 {
			t.Errorf("%s by session: got %d %s", name, got.status, got.body)
		}
	}
}

func portalPrivileges(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "feedback", "")
	holds := map[string]string{
		"ann": "mod-form-portal mod-form", "bob": "mod-form-portal mod-form mod-checklist", "kim": "mod-form-portal",
		"lou": "mod-form mod-checklist", "eve": "", "adm": "mod-form-portal mod-form",
	}
	for name, has := range holds {
		u := s.desk(name)
		for what, a := range portalAsks(u, id) {
			needed, _, _ := strings.Cut(what, " ")
			allowed := true
			for _, p := range strings.Split(needed, ",") {
				allowed = allowed && slices.Contains(strings.Fields(has), p)
			}
			a.headers = append(a.headers, u.credential...)
			got := s.send(t, a)
			// Whoever has only the privilege of the route is told of no form.
			hidden := got.status == 404 && strings.Contains(needed, ",") && strings.Contains(has, "mod-form-portal")
			if (got.status == 403) == allowed && !hidden || got.status == 401 || got.status == 403 && faultReason(got, 403, "Access denied") != "" {
				t.Errorf("%s, %s: got %d %s, allowed %v", name, what, got.status, got.body, allowed)
			}
		}
	}
}

func portalCSRF(t *testing.T, s *scene) {
	bob := s.desk("bob")
	id := bob.makeForm(t, "feedback", "")
	for name, a := range portalAsks(bob, id) {
		if a.method == http.MethodGet {
			continue
		}
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
			b := a
			b.headers = append(append(slices.Clone(a.headers), header), bob.credential...)
			if reason := faultReason(s.send(t, b), 403, "Access denied"); reason != "" {
				t.Errorf("%s with %s: %s", name, header, reason)
			}
		}
		for _, header := range []string{"Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "X: y"} {
			if a.body == "" {
				continue
			}
			b := a
			b.headers = append([]string{header}, bob.credential...)
			if reason := faultReason(s.send(t, b), 415, "Unsupported media type"); reason != "" {
				t.Errorf("%s with %s: %s", name, header, reason)
			}
		}
	}
}

func serverError(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "twin-form", "twin")
	wantStatus(t, ann.save(t, "twin", id, `{"kept":1}`), 200)
	wantFault(t, ann.submit(t, "twin", id, `{}`), 500, "Server error")
	if v := ann.view(t, "twin", id); v.category != "current" || v.draft != `{"kept":1}` {
		t.Errorf("a submission that failed left a trace: %+v", v)
	}
}

func portalIsUnversioned(t *testing.T, s *scene) {
	ann := s.desk("ann")
	wantStatus(t, ann.get(t, "/form-portal/role-info"), 200)
	for _, path := range []string{"/form-portal/api/v1/role-info", "/form-portal/v1/role-info", "/form-portal/role-info/", "/form-portal/forms"} {
		wantFault(t, ann.get(t, path), 404, "Not found")
	}
}

func portalWords(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "feedback", "")
	wantStatus(t, ann.tryForm(t, "feedback", "", "Idempotency-Key: portal-words"), 200)
	wantStatus(t, ann.save(t, "-", id, `{}`), 200)
	for _, c := range []struct {
		status int
		word   string
		answer answer
	}{
		{400, "Bad request", ann.sendBody(t, "POST", "/form-portal/forms/create", `{`)},
		{400, "Bad request", ann.submit(t, "-", id, `{"text":1}`)},
		{401, "Unauthorized", s.ann.get(t, "/form-portal/role-info")},
		{403, "Access denied", s.desk("eve").get(t, "/form-portal/role-info")},
		{404, "Not found", ann.get(t, runtimeRoot+"/form/-/"+nowhere)},
		{404, "Not found", ann.get(t, "/form-portal/nothing")},
		{405, "Method not allowed", ann.get(t, "/form-portal/forms/create")},
		{412, "Precondition failed", ann.save(t, "-", id, `{}`, `If-Match: "7"`)},
		{413, "Too large", ann.save(t, "-", id, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)},
		{415, "Unsupported media type", ann.save(t, "-", id, `{}`, "Content-Encoding: br")},
		{422, "Unprocessable", ann.tryForm(t, "leave-form", "leave", "Idempotency-Key: portal-words")},
	} {
		if reason := faultReason(c.answer, c.status, c.word); reason != "" {
			t.Error(reason)
		}
	}
	wantStatus(t, ann.submit(t, "-", id, `{}`), 200)
	wantFault(t, ann.submit(t, "-", id, `{}`), 409, "Conflict")
}

func portalHead(t *testing.T, s *scene) {
	ann := s.desk("ann")
	id := ann.makeForm(t, "feedback", "")
	for name, a := range portalAsks(ann, id) {
		if a.method != http.MethodGet {
			continue
		}
		a.headers = ann.credential
		full := s.send(t, a)
		a.method = http.MethodHead
		if head := s.send(t, a); head.status != full.status || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(full.body)) {
			t.Errorf("HEAD of %s: got %d %q and %v, want %d and the length %d", name, head.status, head.body, head.header, full.status, len(full.body))
		}
	}
}

func portalRates(t *testing.T, s *scene) {
	ann := s.desk("ann")
	one := link{credential: ann.credential[0]}
	defer one.close()
	address, err := s.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		a, err := one.do(address, ask{method: "GET", path: s.base + "/form-portal/role-info", headers: ann.credential})
		if err != nil || a.status != 200 {
			t.Fatalf("request %d: got %d %s, %v", i, a.status, a.body, err)
		}
	}
}

func portalBasePath(t *testing.T, _ *scene) {
	files := portalFiles()
	files["troupe.yaml"] = "basePath: /platform\n"
	h := newHome(t, files)
	h.basePath = "/platform"
	ann := start(t, h).desk("ann")
	id := ann.makeForm(t, "leave-form", "leave")
	if v := ann.view(t, "leave", id); v.form.FullPath != "form-runtime/leave-form/leave/"+id+"/index.html" {
		t.Errorf("fullPath: got %q, want it behind the base path", v.form.FullPath)
	}
	wantStatus(t, ann.save(t, "leave", id, `{}`), 200)
	ann.base = ""
	wantFault(t, ann.get(t, "/form-portal/role-info"), 404, "NotFound")
	ann.stop()
}
