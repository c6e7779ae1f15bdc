package gateway_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/gateway/wiretest"
)

// TestInterfaceForms asks a service with forms about what pages of forms do.
func TestInterfaceForms(t *testing.T) {
	o := portalOptions()
	o.Files = maps.Clone(o.Files)
	o.Files["workflows/leave.yaml"] = strings.Replace(o.Files["workflows/leave.yaml"], "allow:", "indexes: [svcPublic.by]\nallow:", 1)
	o.Files["forms/none.yaml"] = "{id: none, access: {roles: [employee]}, workflows: [], schema: {type: object}}\n"
	o.Files["forms/going.yaml"] = "{id: going, access: {roles: [employee]}, submit: fail, schema: {type: object}}\n"
	o.Files["forms/trip.yaml"] = tripTemplate
	o.Files["workflows/shown.yaml"], o.Files["forms/shown.yaml"] = shownFlow, "{id: shown, access: {roles: [employee]}, workflows: [shown], submit: send, schema: {type: object}}\n"
	s := startService(t, o)
	scene := &scene{service: s, ann: s.as("ann"), bob: s.as("bob")}
	for _, l := range []line{
		{`gateway/INTERFACE.md, "Creating forms"`, "which workflows a template takes", bindings},
		{`gateway/INTERFACE.md, "Drafts and changed templates"`, "what fits no more is said, and nothing is lost", changedTemplates},
		{`gateway/INTERFACE.md, "Starting a form"`, "once, at the first input", beginnings},
		{`gateway/INTERFACE.md, "Deleting a form"`, "its creator, before it was submitted, and nobody finds it again", deletions},
		{`gateway/INTERFACE.md, "Pages of forms"`, "each form once, in each order", pagesOfForms},
		{`gateway/INTERFACE.md, "Pages of forms"`, "as people see them, who may read them", pagesShowInstances},
		{`gateway/INTERFACE.md, "Pages of forms"`, "early at its end, where columns have much", pagesOfLargeColumns},
	} {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, scene) })
	}
}

const tripTemplate = `{id: trip, access: {roles: [employee]}, schema: {type: object, additionalProperties: false, properties: {
  to: {type: string}, days: {type: integer}, till: {type: string}, class: {enum: [first, second]}, list: {type: array, items: {properties: {x: {type: string}}}}}}}
`

// bindings: a template with the key workflows takes only those, one without it any that declares its event.
func bindings(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for _, c := range []struct {
		template, workflow string
		status             int
	}{
		{"leave-form", "leave", 200},
		{"leave-form", "broken", 400},
		{"leave-form", "", 400},
		{"none", "", 200},
		{"none", "leave", 400},
		{"feedback", "", 200},
		{"feedback", "leave", 200}, // it declares submit
		{"feedback", "broken", 400},
		{"feedback", "nothing", 404},
		{"going", "broken", 200}, // it declares fail
		{"going", "leave", 400},
		{"going", "", 200},
	} {
		a := bob.sends(t, "POST forms/create", fmt.Sprintf(`{"formId":%q,"workflowId":%q}`, c.template, c.workflow))
		assert.Equal(t, c.status, a.Status, "%s with the workflow %q, %s", c.template, c.workflow, a.Body)
	}
}

// fullDraft is a draft as the answer of the form has it.
type fullDraft struct {
	draft
	Template        string
	TemplateChanged bool
	Misfits         []struct{ Path, Reason string }
}

func changedTemplates(t *testing.T, s *scene) {
	const text = `{"to":"Rome","days":"three","till":"noon","class":"first","list":[{"x":"a"},{"x":1}],"more":true}`
	ann := s.desk("ann")
	place := ann.form(t, "trip", "-")
	digest := func() string {
		return wiretest.Decode[struct{ Template struct{ Digest string } }](t, ann.sends(t, "GET template/form/trip", "").Body).Template.Digest
	}
	look := func() fullDraft { return wiretest.Decode[fullDraft](t, ann.view(t, place).Draft) }
	before := digest()
	ann.saved(t, place, text)
	if d := look(); d.TemplateChanged || len(d.Misfits) > 0 || d.Template != before || string(d.Data) != text {
		t.Errorf("for the present template: got %+v", d)
	}
	s.Write("forms/trip.yaml", strings.NewReplacer("till: {type: string}, ", "", "[first, second]", "[second, third]").Replace(tripTemplate))
	var misfits []string
	d := look()
	for _, m := range d.Misfits {
		misfits = append(misfits, m.Path+" "+m.Reason)
	}
	want := []string{"/days type", "/till unknown", "/class choice", "/list/1/x type", "/more unknown"}
	assert.True(t, d.TemplateChanged && d.Template == before && string(d.Data) == text && slices.Equal(misfits, want), "%v %v", d, want)
	// A page that has the old template says so.
	a := ann.sends(t, "PUT draft/"+place, `{"data":{"till":"night"},"template":"`+before+`"}`)
	if a.Status != 200 || !look().TemplateChanged || len(look().Misfits) != 1 {
		t.Errorf("saved for the old template: got %d %s, then %+v", a.Status, a.Body, look())
	}
	ann.saved(t, place, `{"till":"night"}`)
	d = look()
	assert.True(t, !d.TemplateChanged && len(d.Misfits) <= 0 && d.Template == digest(), "saved for the new template: got %+v", d)
	for _, bad := range []string{`"x"`, `1`, `"` + strings.ToUpper(before) + `"`, `"` + before[2:] + `"`} {
		assert.Empty(t, ann.sends(t, "PUT draft/"+place, `{"data":{},"template":`+bad+`}`).FaultReason(400, "Bad request"), "template %s", bad)
	}
}

func beginnings(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for _, c := range []struct{ template, workflow string }{{"feedback", "-"}, {"leave-form", "leave"}, {"safety", "-"}} {
		making := bob.making(c.template, c.workflow, "Idempotency-Key: first-input-"+c.template)
		places := map[string]bool{}
		for _, a := range bob.AtOnce(t, 4, making) { // the first answers are lost, say
			a.WantStatus(t, 200)
			places[c.workflow+"/"+a.Body] = true
		}
		require.Len(t, places, 1, "%s: one first input made", c.template)
		place := slices.Collect(maps.Keys(places))[0]
		bob.saved(t, place, `{"a":1}`, "If-None-Match: *")
		bob.save(t, place, `{"a":1}`, "If-None-Match: *").WantFault(t, 412, "Precondition failed")
		bob.saved(t, place, `{"a":2}`, "If-Match: *")
		v := bob.view(t, place)
		assert.True(t, string(wiretest.Decode[draft](t, v.Draft).Data) == `{"a":2}` && v.Editable && v.Category == "current", "%s: %+v", c.template, v)
	}
}

// deletions: actors/workflow has the tests of what is left in the store.
func deletions(t *testing.T, s *scene) {
	ann, bob := s.desk("ann"), s.desk("bob")
	missing := ann.sends(t, "GET form/-/01JD0000000000000000000000", "")
	for _, c := range []struct {
		who                      user
		template, workflow, data string
	}{{ann, "feedback", "-", `{"text":"x"}`}, {ann, "leave-form", "leave", `{"days":1}`}, {bob, "safety", "-", `{"exits":true}`}} {
		key := "Idempotency-Key: deleted-" + c.template
		making := c.who.making(c.template, c.workflow, key)
		place := c.workflow + "/" + c.who.Send(t, making).Body
		_, id, _ := strings.Cut(place, "/")
		c.who.saved(t, place, c.data)
		if c.workflow == "leave" {
			bob.saved(t, place, c.data) // who may read it and submit it
			wantSameAnswer(t, bob.sends(t, "DELETE form/"+place, ""), missing)
		}
		wantSameAnswer(t, s.desk("adm").sends(t, "DELETE form/"+place, ""), missing)
		a := c.who.sends(t, "DELETE form/"+place, "")
		require.True(t, a.Status == 200 && a.Body == `{}`, "%s: got %d %s", c.template, a.Status, a.Body)
		for _, a := range []answer{
			c.who.sends(t, "DELETE form/"+place, ""), c.who.sends(t, "GET form/"+place, ""), c.who.save(t, place, c.data),
			c.who.sends(t, "DELETE draft/"+place, ""), c.who.submit(t, place, c.data, "Idempotency-Key: late"), bob.sends(t, "GET form/"+place, ""),
			c.who.Send(t, making), c.who.Send(t, making),
		} {
			wantSameAnswer(t, a, missing)
		}
		lists, _ := c.who.where(t, id)
		assert.Empty(t, lists, "%s: it is still", c.template)
		if c.workflow == "leave" {
			s.ann.Load(t, "leave", id).WantFault(t, 404, "NotFound")
			s.ann.Event(t, "leave", id, "submit", `{}`).WantFault(t, 404, "NotFound")
			s.ann.Get(t, wiretest.Root+"/watch/leave/"+id).WantFault(t, 404, "NotFound")
			for _, filter := range []string{`{"_id":"` + id + `"}`, `{"states.nodeId":"draft"}`, `{"svcPublic.by":"ann"}`} {
				a := s.ann.Get(t, wiretest.Root+"/instances/leave?filter="+url.QueryEscape(filter))
				assert.True(t, a.Status == 200 && !strings.Contains(a.Body, id), "the filter %s: got %d %s", filter, a.Status, a.Body)
			}
		}
		// One that was submitted stays.
		kept := c.who.form(t, c.template, c.workflow)
		c.who.submit(t, kept, c.data).Record(t)
		refused := c.who.sends(t, "DELETE form/"+kept, "")
		refused.WantFault(t, 409, "Conflict")
		assert.Contains(t, refused.Message(), "has been submitted", "deleting what was submitted")
		assert.Equal(t, "submitted", c.who.view(t, kept).Category, "after a refused deletion")
	}
	for _, path := range []string{"form/-/x%00", "form/--/i", "form/leave/.."} {
		wantSameAnswer(t, ann.sends(t, "DELETE "+path, ""), missing)
	}
	s.desk("lou").sends(t, "DELETE form/-/01JD0000000000000000000000", "").WantFault(t, 403, "Access denied")
}

// formPage is what GET form-runtime/api/v1/forms answers.
type formPage struct {
	Forms []formItem
	Next  *string
	Count *int
}

func (u user) formsPage(t testing.TB, parameters string) answer {
	t.Helper()
	return u.Send(t, request{Method: "GET", Path: u.Base + "/form-runtime/api/v1/forms?" + parameters, Headers: u.Credential})
}

func (u user) formPage(t testing.TB, parameters string) formPage {
	t.Helper()
	a := u.formsPage(t, parameters)
	a.WantStatus(t, 200)
	return wiretest.Decode[formPage](t, a.Body)
}

// pagesOfForms compares pages with the lists of the portal. It holds gateway/INTERFACE.md, "Order of forms", for them.
func pagesOfForms(t *testing.T, _ *scene) {
	clock := newClock()
	o := portalOptions()
	o.Clock, o.Identity.SessionMax, o.Identity.SessionIdle = clock.now, 1e4*time.Hour, 1e4*time.Hour
	bob := startService(t, o).desk("bob")
	fill := func(n int) {
		for i := range n {
			place := bob.form(t, []string{"leave-form", "feedback"}[i%2], []string{"leave", "-"}[i%2])
			if i%3 > 0 {
				bob.submit(t, place, []string{`{"days":1}`, `{"text":"x"}`}[i%2]).Record(t)
			}
			if _, id, _ := strings.Cut(place, "/"); i%12 == 4 || i%12 == 8 {
				bob.Event(t, "leave", id, "approve", "").Record(t)
			}
		}
	}
	fill(30)
	clock.wait(29 * 24 * time.Hour)
	late := bob.form(t, "leave-form", "leave")
	bob.submit(t, late, `{"days":1}`).Record(t)
	clock.wait(2 * 24 * time.Hour)
	_, id, _ := strings.Cut(late, "/")
	bob.Event(t, "leave", id, "approve", "").Record(t)
	fill(12)
	for _, category := range []string{"current", "submitted", "archived"} {
		all := wiretest.Decode[[]formItem](t, bob.Get(t, "/form-portal/forms/my"+category).Body)
		require.GreaterOrEqual(t, len(all), 5, category)
		for sort, want := range ordersOf(all) {
			for _, filter := range []string{"", "&workflowId=leave", "&workflowId=-", "&q=LEAVE+re", "&q=" + all[2].ID[10:]} {
				wanted := slices.DeleteFunc(slices.Clone(want), func(f formItem) bool { return !matchesForm(f, filter) })
				parameters, got := "category="+category+"&sort="+sort+filter+"&limit=4&count=true", []formItem(nil)
				for next := ""; ; {
					p := bob.formPage(t, parameters+next)
					got = append(got, p.Forms...)
					assert.True(t, p.Count != nil && *p.Count == len(wanted), "%s: the count is %v, want %d", parameters, p.Count, len(wanted))
					if p.Next == nil {
						break
					}
					next = "&cursor=" + *p.Next
				}
				assert.True(t, slices.Equal(got, wanted), "%s: got\n%+v\nwant\n%+v", parameters, got, wanted)
			}
		}
	}
	p := bob.formPage(t, "kind=checklist")
	assert.True(t, len(p.Forms) == 0 && p.Next == nil && p.Count == nil, "checklists: %+v", p)
	first := bob.formsPage(t, "category=submitted&limit=2")
	cursor := *wiretest.Decode[formPage](t, first.Body).Next
	assert.True(t, strings.Contains(first.Header.Get("Link"), `limit=2`) && strings.Contains(first.Header.Get("Link"), cursor), "Link: got %s", first.Header.Get("Link"))
	for _, bad := range []string{
		"kind=x", "category=mine", "sort=-name", "sort=", "limit=0", "limit=1001", "count=1", "q=", "q=" + strings.Repeat("x", 201), "x=1", "cursor=x",
		"category=current&cursor=" + cursor, "category=submitted&sort=when&cursor=" + cursor, "category=submitted&sort=name&cursor=" + cursor, "category=submitted&q=a&cursor=" + cursor,
	} {
		bob.formsPage(t, bad).WantFault(t, 400, "Bad request")
	}
	a := bob.formsPage(t, "category=submitted&sort=-when&cursor="+cursor)
	assert.Equal(t, 200, a.Status, "the cursor with the usual sort named, %s", a.Body)
	a = startService(t, portalOptions()).desk(identity.UserID("lou")).formsPage(t, "limit=1")
	assert.Equal(t, 403, a.Status, "without the privilege, %s", a.Body)
}

// shownFlow is seen by its creator as a draft only.
const shownFlow = `
id: shown
name: Trip
title: 'To ${svcPublic.to}'
columns: [{path: svcPublic.to, label: {en: Where, de: Wohin}}, svcPublic.days]
allow: {read: {when: '!has(svcPublic.closed)'}}
stateMachines:
  main:
    states:
      draft:
        label: {en: A draft, de: Entwurf}
        tone: waiting
        entry: [{assign: {svcPublic.to: Rome}}]
        on: {fill: {}, send: {target: gone, actions: [{assign: {svcPublic.closed: true}}]}}
      gone: {type: final}
`

func pagesShowInstances(t *testing.T, s *scene) {
	ann := s.desk("ann")
	page := func(query string) (string, answer) {
		t.Helper()
		a := ann.with("Accept-Language: xq-XX, de").formsPage(t, query)
		a.WantStatus(t, 200)
		_, rest, _ := strings.Cut(a.Body, `"role":"employee",`)
		return rest, a
	}
	place := ann.form(t, "shown", "shown")
	shown := `"title":"To Rome","states":[{"stateMachineId":"main","nodeId":"draft","label":"Entwurf","tone":"waiting"}],` +
		`"columns":[{"path":"svcPublic.to","label":"Wohin","value":"Rome"},{"path":"svcPublic.days","label":"days","value":null}]}`
	got, a := page("workflowId=shown")
	assert.True(t, strings.HasPrefix(got, shown) && strings.Contains(a.Body, `"status":"draft"`) && strings.Contains(a.Header.Get("Vary"), "Accept-Language"),
		"got %s with Vary: %s", a.Body, a.Header.Get("Vary"))
	_, a = page("q=TO+rom")
	assert.True(t, strings.Contains(a.Body, `"title":"To Rome"`) && strings.Count(a.Body, `"title"`) == 1, "found by its title: got %s", a.Body)
	const nothing = `"title":null,"states":null,"columns":null}`
	ann.submit(t, place, `{}`).WantStatus(t, 200)
	_, a = page("q=TO+rom&category=submitted")
	assert.NotContains(t, a.Body, `"id"`, "a title that may not be read any more is found")
	got, a = page("workflowId=shown&category=submitted")
	assert.True(t, strings.HasPrefix(got, nothing), "what may not be read any more: got %s", a.Body)
	ann.form(t, "feedback", "-")
	got, a = page("workflowId=-&limit=1")
	assert.True(t, strings.HasPrefix(got, nothing), "a form without a workflow: got %s", a.Body)
	assert.NotContains(t, ann.Get(t, "/form-portal/forms/mycurrent").Body, `"title"`, "the published list has more members")
}

func pagesOfLargeColumns(t *testing.T, s *scene) {
	bob := s.desk("bob")
	var want []string
	for n := range 14 {
		place := bob.form(t, []string{"shown", "feedback"}[n%2], []string{"shown", "-"}[n%2])
		flow, id, _ := strings.Cut(place, "/")
		if flow != "-" {
			bob.Event(t, flow, id, "fill", `{"days":"`+strings.Repeat("x", 900<<10)+`"}`).Record(t)
		}
		want = append(want, id)
	}
	for _, sort := range []string{"when", "-when", "name"} {
		var got []string
		for parameters := "limit=1000&sort=" + sort; ; {
			a := bob.formsPage(t, parameters)
			a.WantStatus(t, 200)
			assert.LessOrEqual(t, len(a.Body), 6<<20, "by %s: a page", sort)
			p := wiretest.Decode[formPage](t, a.Body)
			for _, f := range p.Forms {
				if slices.Contains(want, f.ID) {
					got = append(got, f.ID)
				}
			}
			if p.Next == nil {
				break
			}
			parameters = "limit=1000&sort=" + sort + "&cursor=" + *p.Next
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("by %s: got\n%q\nwant\n%q", sort, got, want)
		}
	}
}

func matchesForm(f formItem, filter string) bool {
	name, value, _ := strings.Cut(strings.TrimPrefix(filter, "&"), "=")
	switch name {
	case "workflowId":
		return strings.Contains(f.FullPath, "/"+value+"/")
	case "q":
		return !strings.HasPrefix(value, "LEAVE") && strings.Contains(f.ID, value) || strings.HasPrefix(value, "LEAVE") && f.Name == "Leave request"
	}
	return true
}

// ordersOf are the forms in each order; they come newest first.
func ordersOf(all []formItem) map[string][]formItem {
	oldest, byName := slices.Clone(all), slices.Clone(all)
	slices.Reverse(oldest)
	slices.SortFunc(byName, func(a, b formItem) int {
		if a.Name != b.Name {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return map[string][]formItem{"-when": all, "when": oldest, "name": byName}
}
