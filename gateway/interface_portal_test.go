package gateway_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/gateway/wiretest"
)

// TestInterfacePortal asks a service with forms.
func TestInterfacePortal(t *testing.T) {
	s := startService(t, portalOptions())
	scene := &scene{service: s, ann: s.as("ann"), bob: s.as("bob")}
	for _, l := range []line{
		{`gateway/INTERFACE.md, "Roles of the portal"`, "and the workflows and templates", whatIsOffered},
		{`gateway/INTERFACE.md, "Workflows of the portal"`, "they are the choices of group B", choicesOfThePortal},
		{`gateway/INTERFACE.md, "Fields of a form"`, "from the creation to the archive", lifeOfForms},
		{`gateway/INTERFACE.md, "Creating forms"`, "the answer is plain text: the id", createAnswersText},
		{`gateway/INTERFACE.md, "Creating forms"`, "what is refused leaves no form", portalRefuses},
		{`gateway/INTERFACE.md, "Errors"`, "the words of group A", portalWords},
		{`gateway/INTERFACE.md, "Drafts"`, "revisions and their conditions", draftConditions},
		{`gateway/INTERFACE.md, "Reading a form"`, "other users' forms are 404", othersForms},
		{`gateway/INTERFACE.md, "Submitting"`, "checked, taken once, and repeated with its key", submissions},
	} {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, scene) })
	}
}

// whatIsOffered holds gateway/INTERFACE.md, "Templates of a role" and
// "Reading a template", as well.
func whatIsOffered(t *testing.T, s *scene) {
	for i, name := range []string{"forms/leave.yaml", "forms/broken.yaml", "forms/feedback.yaml", "checklists/safe.yaml"} {
		at := time.UnixMilli(int64(i + 1))
		require.NoError(t, os.Chtimes(filepath.Join(s.Dir, name), at, at))
	}
	s.Write("forms/off.yaml", filesOf("portal")["forms/off.yaml"])
	const (
		feedback  = `{"formId":"feedback","name":"Feedback","description":"","lastModified":3}`
		leave     = `{"formId":"leave-form","name":"Leave request","description":"Ask <for> days off","lastModified":1}`
		broken    = `{"formId":"broken-form","name":"broken-form","description":"","lastModified":2}`
		safety    = `{"formId":"safety","name":"Safety","description":"","lastModified":4}`
		leaveForm = `{"template":{"formId":"leave-form","name":"Leave request","description":"Ask <for> days off","schema":{"type":"object","properties":{"days":{"type":"integer","maximum":60}},"required":["days"]},` +
			`"ui":{"order":["days"]},"submit":"submit","digest":"e9fc3a061fb44a26f941af4c0318086e"},"workflows":[{"id":"leave","name":"Leave"}],"needsWorkflow":true}`
		safetyForm = `{"template":{"formId":"safety","name":"Safety","description":"","items":[{"id":"exits","label":"Exits","help":"Look.","required":true},` +
			`{"id":"light","label":"light","help":"","required":false}],"digest":"619d2ae4e3b4aa94db5e7352cc159769"},"workflows":[],"needsWorkflow":false}`
	)
	for _, c := range []struct{ who, path, want string }{
		{"ann", "role-info", `{"formRoles":[{"id":"employee","name":"Employee"}],"checklistRoles":[]}`},
		{"bob", "role-info", `{"formRoles":[{"id":"employee","name":"Employee"},{"id":"boss","name":"The \"boss\""}],"checklistRoles":[{"id":"inspector","name":"Inspector"}]}`},
		{"kim", "role-info", `{"formRoles":[],"checklistRoles":[]}`},
		{"ann", "forms/role/employee", "[" + feedback + "," + leave + "," + broken + "]"},
		{"ann", "form%73/role/%65mployee", "[" + feedback + "," + leave + "," + broken + "]"},
		{"bob", "forms/role/boss", "[" + feedback + "," + leave + "]"},
		{"bob", "forms/role/inspector", "[]"},
		{"bob", "checklists/role/inspector", "[" + safety + "]"},
		{"bob", "checklists/role/employee", "[]"},
		{"ann", "template/form/leave-form", leaveForm},
		{"bob", "template/checklist/safety", safetyForm},
	} {
		path := "/form-portal/" + c.path
		if strings.HasPrefix(c.path, "template/") {
			path = "/form-runtime/api/v1/" + c.path
		}
		a := s.desk(identity.UserID(c.who)).Get(t, path)
		a.WantStatus(t, 200)
		wantSameMeaning(t, a.Body, c.want)
	}
}

func choicesOfThePortal(t *testing.T, s *scene) {
	for name, want := range map[string]string{
		"ann": `[{"id":"broken","name":"broken"},{"id":"leave","name":"Leave"}]`, "kim": `[{"id":"broken","name":"broken"}]`,
		"bob": `[{"id":"broken","name":"broken"},{"id":"leave","name":"Leave"},{"id":"payroll","name":"payroll"}]`,
	} {
		u := s.desk(identity.UserID(name))
		a, choices := u.Get(t, "/form-portal/workflows"), u.Get(t, wiretest.Root+"/choices")
		assert.True(t, a.Body == want && choices.Body == `{"workflows":`+want+`}`, "%s: got %s and the choices %s, want %s", name, a.Body, choices.Body, want)
	}
}

// lifeOfForms goes from the template to the archive with each kind of form. It holds
// gateway/INTERFACE.md, "Form types" and "Categories", as well.
func lifeOfForms(t *testing.T, _ *scene) {
	clock := newClock()
	o := portalOptions()
	o.Clock, o.Identity.SessionMax, o.Identity.SessionIdle = clock.now, 1e4*time.Hour, 1e4*time.Hour
	s := startService(t, o)
	ann, bob := s.desk("ann"), s.desk("bob")
	for _, c := range []struct {
		workflow, kind, data, draft, submitted string
		want                                   formItem
	}{
		{"-", "forms", `{"text":"good"}`, "", "submitted", formItem{FormType: "Form", FormID: "feedback", Name: "Feedback", Role: "boss"}},
		{"-", "checklists", `{"exits":true,"light":false}`, "", "submitted", formItem{FormType: "Checklist", FormID: "safety", Name: "Safety", Role: "inspector"}},
		{"leave", "forms", `{"by":"bob","days":2}`, "draft", "review", formItem{FormType: "WorkflowForm", FormID: "leave-form", Name: "Leave request", Role: "employee"}},
	} {
		place := bob.form(t, c.want.FormID, c.workflow)
		_, c.want.ID, _ = strings.Cut(place, "/")
		c.want.By, c.want.FullPath = "bob", "form-runtime/"+c.want.FormID+"/"+place+"/index.html"
		look := func(list, status string) view {
			t.Helper()
			v := bob.view(t, place)
			c.want.Status, c.want.When = status, v.Form.When
			c.want.SubmissionID = cmp.Or(c.want.SubmissionID, v.Form.SubmissionID)
			lists, item := bob.where(t, c.want.ID)
			assert.True(t, lists == c.kind+"/my"+list && v.Category == list && item == c.want && v.Form == c.want, "%v %v %v %v %v", lists, item, v, list, c.want)
			open := list == "current"
			assert.True(t, v.Editable == open && (v.SubmittedAt == 0) == open && (c.want.SubmissionID == "") == open, "%s: %+v", list, v)
			return v
		}
		look("current", c.draft)
		bob.saved(t, place, c.data)
		if v := look("current", c.draft); string(wiretest.Decode[draft](t, v.Draft).Data) != c.data {
			t.Errorf("with a draft: %+v", v)
		}
		record := bob.submit(t, place, c.data).Record(t)
		v := look("submitted", c.submitted)
		at := func(e wiretest.Entry) int64 {
			ts, err := time.Parse(time.RFC3339, e.TS)
			require.NoError(t, err)
			return ts.UnixMilli()
		}
		if string(v.Draft) != "null" || string(v.Data) != c.data || record.Public != c.data || !slices.Equal(v.States, record.States) ||
			v.Form.When != at(record.History[0]) || v.SubmittedAt != at(record.History[1]) {
			t.Errorf("submitted: %+v, the record is %s", v, record.Text)
		}
		if c.workflow != "-" {
			bob.Event(t, c.workflow, c.want.ID, "approve", "").Record(t)
			c.submitted = "approved"
			lists, _ := ann.where(t, c.want.ID)
			assert.Empty(t, lists, "ann's lists show")
		}
		look("submitted", c.submitted)
		clock.wait(30 * 24 * time.Hour)
		look("archived", c.submitted)
	}
}

func createAnswersText(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for template, workflow := range map[string]string{"leave-form": "leave", "feedback": "-", "safety": "-"} {
		a := bob.Send(t, bob.making(template, workflow, "Accept: application/json"))
		a.WantStatus(t, 200)
		lists, _ := bob.where(t, a.Body)
		assert.True(t, a.Header.Get("Content-Type") == "text/plain; charset=utf-8" && strings.HasSuffix(lists, "/mycurrent"),
			"%s: %q is in %q; headers %v", template, a.Body, lists, a.Header)
		a.Header.Set("Content-Type", "application/json")
	}
}

// portalRefuses goes through requests that are refused, of bob unless there is
// another user. What the message must hold is that of Allow with a 405.
func portalRefuses(t *testing.T, s *scene) {
	const nobodys, draft = "-/01JD0000000000000000000000", "PUT draft/-/i"
	deep := strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)
	count := func() (n int) {
		for _, list := range portalLists {
			n += len(wiretest.Decode[[]formItem](t, s.desk("bob").Get(t, "/form-portal/"+list).Body))
		}
		return n
	}
	before, missing := count(), s.desk("bob").sends(t, "GET form/"+nobodys, "")
	for _, c := range []struct {
		who, way, body string
		status         int
		says           string
	}{
		{"", "POST forms/create", `{"formId":"nothing"}`, 404, ""},
		{"", "POST forms/create", `{"formId":"off"}`, 404, ""},
		{"", "POST forms/create", `{"formId":"safety"}`, 404, ""},
		{"", "POST forms/create", `{"formId":"leave-form","workflowId":"nothing"}`, 404, ""},
		{"", "POST forms/create", `{"formId":"feedback","workflowId":"-"}`, 404, ""},
		{"ann", "POST forms/create", `{"formId":"leave-form","workflowId":"payroll"}`, 404, ""},
		{"lou", "POST forms/create", `{"formId":"feedback"}`, 404, ""},
		{"lou", "POST checklists/create", `{"checklistId":"safety"}`, 404, ""},
		{"kim", "POST forms/create", `{"formId":1`, 403, ""},
		{"ann", "POST checklists/create", `{"checklistId":"safety"}`, 403, ""},
		{"", "POST forms/create", `{"formId":"leave-form"}`, 400, ""},
		{"", "POST forms/create", `{"formId":"leave-form","workflowId":""}`, 400, ""},
		{"", "POST forms/create", `{"formId":"leave-form","workflowId":"broken"}`, 400, ""},
		{"", "POST forms/create", `{"formId":"feedback","workflowId":"broken"}`, 400, ""},

		{"", "POST forms/create", `{}`, 400, `"formId" is missing`},
		{"", "POST forms/create", `{"formId":null}`, 400, `"formId" must be a string, not null`},
		{"", "POST forms/create", `{"formId":"f","workflowId":["leave"]}`, 400, `"workflowId" must be a string, not an array`},
		{"", "POST forms/create", `{"formId":"..","workflowId":1}`, 400, `"workflowId" must be`},
		{"", "POST forms/create", `{"formId":"f","role":"boss"}`, 400, `unknown member "role"; allowed are formId, workflowId`},
		{"", "POST forms/create", `{"formID":"f"}`, 400, `it is written "formId"`},
		{"", "POST forms/create", `{"formId":"a","form\u0049d":"b"}`, 400, "formId"},
		{"", "POST forms/create", `["f"]`, 400, "must be a JSON object"},
		{"", "POST checklists/create", `{"checklistId":"c","workflowId":"leave"}`, 400, `unknown member "workflowId"; allowed are checklistId`},
		{"", "POST checklists/create", `{"checklistId":"c","":"leave"}`, 400, `unknown member ""`},
		{"", "POST checklists/create", `{}`, 400, `"checklistId" is missing`},
		{"", draft, `{}`, 400, `"data" is missing`},
		{"", draft, `{"data":null}`, 400, `"data" must be an object, not null`},
		{"", draft, `{"data":{},"revision":3}`, 400, `unknown member "revision"`},
		{"", draft, `{"data":` + deep + `}`, 400, "deeper than 64"},
		{"", draft, `{"data":`, 400, "unexpected end"},
		{"", draft, `{"data":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, "1048576"},
		{"", "POST submit", `{"instanceId":"i","data":{}}`, 400, `"workflowId" is missing`},
		{"", "POST submit", `{"workflowId":"-","data":{}}`, 400, `"instanceId" is missing`},
		{"", "POST submit", `{"workflowId":"-","instanceId":"i"}`, 400, `"data" is missing`},
		{"", "POST submit", `{"workflowId":"-","instanceId":"i","data":"{}"}`, 400, `"data" must be an object, not a string`},
		{"", "POST submit", `{"workflowId":1,"instanceId":"i","data":{}}`, 400, `"workflowId" must be a string, not a number`},
		{"", "POST submit", `{"workflowId":"w","instanceId":"i","data":{},"event":{}}`, 400, `unknown member "event"`},
		{"", "POST submit", `{"workflowId":"--","instanceId":"i","data":{}}`, 404, ""},
		{"", "POST submit", `{"workflowId":"-","instanceId":"..","data":{}}`, 404, ""},

		{"", "GET form/" + nobodys, "", 404, ""},
		{"", "GET form/-/%2e%2e", "", 404, ""},
		{"", "GET form//i", "", 404, ""},
		{"", "PUT draft/-/%00", `{"data":{}}`, 404, ""},
		{"", "DELETE draft/-/-", "", 404, ""},
		{"", "GET template/other/leave-form", "", 404, ""},
		{"", "GET template/form/-", "", 404, ""},
		{"", "GET template/form/off", "", 404, ""},
		{"ann", "GET template/checklist/safety", "", 403, ""},
		{"ann", "GET forms/role/boss", "", 404, ""},
		{"ann", "GET forms/role/nothing", "", 404, ""},
		{"ann", "GET forms/role/%2e%2e", "", 404, ""},
		{"ann", "GET forms/role/%00", "", 404, ""},
		{"ann", "GET forms/role/", "", 404, ""},
		{"kim", "GET forms/role/a%20b", "", 403, ""},
		{"ann", "GET forms/mydeleted", "", 404, ""},
		{"ann", "GET Role-Info", "", 404, ""},
		{"eve", "GET role-info?x=1", "", 403, ""},
		{"ann", "GET role-info?x=1", "", 400, "unknown query parameter"},
		{"", "POST forms/mycurrent", "{}", 405, "GET, HEAD"},
		{"", "GET forms/create", "", 405, "POST"},
		{"", "PATCH draft/-/i1", "{}", 405, "DELETE, PUT"},
		{"", "OPTIONS role-info", "", 405, "GET, HEAD"},
	} {
		u := s.desk(identity.UserID(cmp.Or(c.who, "bob")))
		a := u.sends(t, c.way, c.body)
		word := map[int]string{400: "Bad request", 403: "Access denied", 404: "Not found", 405: "Method not allowed", 413: "Too large"}[c.status]
		assert.Empty(t, a.FaultReason(c.status, word), "%v %v", c.way, c.body)
		switch said := a.Message(); {
		case c.status == 405 && a.Header.Get("Allow") != c.says, c.status != 405 && !strings.Contains(said, c.says):
			t.Errorf("%s %.80s: got %s and %v, want %s", c.way, c.body, a.Body, a.Header, c.says)
		case c.status == 404:
			wantSameAnswer(t, a, missing)
		}
	}
	assert.Equal(t, before, count(), "forms became")
}

func portalWords(t *testing.T, s *scene) {
	ann := s.desk("ann")
	place, broken := ann.form(t, "feedback", "-"), ann.form(t, "broken-form", "broken")
	ann.saved(t, place, `{}`)
	ann.saved(t, broken, `{"kept":1}`)
	for _, c := range []struct {
		status int
		word   string
		answer answer
	}{
		{401, "Unauthorized", s.ann.Get(t, "/form-portal/role-info")},
		{412, "Precondition failed", ann.save(t, place, `{}`, `If-Match: "7"`)},
		{415, "Unsupported media type", ann.save(t, place, `{}`, "Content-Encoding: br")},
		{500, "Server error", ann.submit(t, broken, `{}`)},
	} {
		c.answer.WantFault(t, c.status, c.word)
	}
	v := ann.view(t, broken)
	assert.True(t, v.Category == "current" && string(wiretest.Decode[draft](t, v.Draft).Data) == `{"kept":1}`, "a submission that failed left a trace: %+v", v)
}

func draftConditions(t *testing.T, s *scene) {
	ann, bob := s.desk("ann"), s.desk("bob")
	place := ann.form(t, "leave-form", "leave")
	ann.save(t, place, `{"days":1}`, "If-Match: *").WantFault(t, 412, "Precondition failed")
	first := ann.saved(t, place, `{"days":"what does not fit yet"}`, "If-None-Match: *")
	last := ann.saved(t, place, `{"days":2}`, "If-Match: "+first)
	bob.saved(t, place, `{"days":40}`)
	for header, status := range map[string]int{
		"If-None-Match: *": 412, `If-None-Match: "5"`: 400, "If-None-Match: x": 400,
		"If-Match: " + first: 412, "If-Match: W/" + last: 412, `If-Match: "03"`: 412, "If-Match: 3": 400, "If-Match: *, " + last: 400,
	} {
		word := map[int]string{400: "Bad request", 412: "Precondition failed"}[status]
		ann.save(t, place, `{"days":3}`, header).WantFault(t, status, word)
		if strings.HasPrefix(header, "If-Match") {
			ann.sends(t, "DELETE draft/"+place, "", header).WantFault(t, status, word)
		}
	}
	for u, want := range map[*user]string{&ann: `{"days":2}`, &bob: `{"days":40}`} {
		assert.Equal(t, want, string(wiretest.Decode[draft](t, u.view(t, place).Draft).Data))
	}
	_, id, _ := strings.Cut(place, "/")
	r := s.ann.Load(t, "leave", id).Record(t)
	assert.True(t, len(r.History) == 1 && !strings.Contains(r.Public, "days"), "drafts are in the instance: %s", r.Text)
	ann.saved(t, place, `{"days":3}`, `If-Match: "3", `+last)
	a := ann.sends(t, "DELETE draft/"+place, "", "If-Match: *")
	assert.True(t, a.Status == 200 && a.Body == `{}` && string(ann.view(t, place).Draft) == "null", "dropped: got %d %s", a.Status, a.Body)
	ann.submit(t, place, `{"days":5}`, `If-Match: "7"`).Record(t) // ignored
	late := bob.save(t, place, `{}`)
	late.WantFault(t, 409, "Conflict")
	assert.Equal(t, "the form does not accept a draft or submission now, or not with this data", late.Message())
	bob.sends(t, "DELETE draft/"+place, "no JSON").WantStatus(t, 200)
}

// othersForms: the tests of actors/formportal go through users and kinds of forms.
func othersForms(t *testing.T, s *scene) {
	ann, adm := s.desk("ann"), s.desk("adm")
	plain, bound := ann.form(t, "feedback", "-"), ann.form(t, "leave-form", "leave")
	missing := ann.sends(t, "GET form/-/01JD0000000000000000000000", "")
	for _, a := range []answer{
		adm.sends(t, "GET form/"+plain, ""), adm.save(t, plain, `{}`), adm.sends(t, "DELETE draft/"+bound, ""), adm.submit(t, bound, `{"days":1}`),
		ann.sends(t, "GET form/leave/"+plain[2:], ""), ann.save(t, "-/"+bound[6:], `{}`),
	} {
		wantSameAnswer(t, a, missing)
	}
	if v := s.desk("bob").view(t, bound); v.Form.By != "ann" || v.Data == nil { // who may read the instance
		t.Errorf("bob sees %+v", v)
	}
	// Group B has no name for what is bound to no workflow.
	for _, path := range []string{"/instance/" + plain, "/instances/-", "/instance/" + plain + "/events", "/watch/" + plain} {
		s.ann.Get(t, wiretest.Root+path).WantFault(t, 404, "NotFound")
	}
	s.ann.Event(t, "-", plain[2:], "submit", "").WantFault(t, 404, "NotFound")
	s.ann.Create(t, "-", "").WantFault(t, 404, "NotFound")
}

// submissions holds gateway/INTERFACE.md, "Retries", for group A.
func submissions(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for _, c := range []struct{ template, workflow, good, bad, place string }{
		{"feedback", "-", `{"text":"x"}`, `{"text":1}`, "text"},
		{"safety", "-", `{"exits":true}`, `{"exits":false}`, "exits"},
		{"leave-form", "leave", `{"days":1}`, `{"days":61}`, "days"},
	} {
		place := bob.form(t, c.template, c.workflow)
		key := "Idempotency-Key: " + place[len(place)-26:]
		a := bob.submit(t, place, c.bad)
		reason := a.FaultReason(400, "Bad request")
		assert.True(t, reason == "" && strings.Contains(a.Body, c.place), "%s: got %s, want 400 with the place; %s", c.template, a.Body, reason)
		bob.submit(t, place, c.good, "Idempotency-Key: a b").WantFault(t, 400, "Bad request")
		first := bob.submit(t, place, c.good, key)
		r := first.Record(t)
		assert.True(t, r.WorkflowID+"/"+r.ID == place && len(r.History) == 2 && first.Header.Get("ETag") == `"2"`,
			"%s: got %s and the ETag %s", c.template, r.Text, first.Header.Get("ETag"))
		for _, again := range bob.AtOnce(t, 5, bob.sending("POST submit", " "+submission(place, c.good), key)) {
			wantSameAnswer(t, again, first)
		}
		bob.submit(t, place, c.good).WantFault(t, 409, "Conflict")
		bob.submit(t, place, c.bad, key).WantFault(t, 422, "Unprocessable")
		ids := map[string]bool{}
		for _, a := range bob.AtOnce(t, 5, bob.making(c.template, c.workflow, key)) {
			a.WantStatus(t, 200)
			ids[a.Body] = true
		}
		assert.Len(t, ids, 1, "%s: one key made", c.template)
	}
}
