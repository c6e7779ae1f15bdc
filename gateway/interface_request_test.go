package gateway_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// TestInterfaceRequests asks a service what its users have created.
func TestInterfaceRequests(t *testing.T) {
	at := newClock()
	o := portalOptions()
	o.Clock, o.Identity.SessionMax, o.Identity.SessionIdle = at.now, 1e4*time.Hour, 1e4*time.Hour
	o.Files = maps.Clone(o.Files)
	o.Files["workflows/shown.yaml"], o.Files["forms/shown.yaml"] = shownFlow, "{id: shown, access: {roles: [employee]}, workflows: [shown], submit: send, schema: {type: object}}\n"
	s := startService(t, o)
	for _, l := range []struct {
		says  string
		check func(*testing.T, *service, *clock)
	}{
		{"as people see them, while they may read them", requestsAreShown},
		{"in three categories", requestsMove},
		{"forms and others, each once", requestsAreMerged},
		{"refused when it is wrong", requestsAreChecked},
	} {
		t.Run(nameOf(`gateway/INTERFACE.md, "What a caller has created"`, l.says), func(t *testing.T) { l.check(t, s, at) })
	}
}

type requestItem struct {
	formItem
	WorkflowID, Category string
	Title                *string
}

type requestPage struct {
	Forms []requestItem
	Next  *string
	Count *int
}

func (u user) requestsPage(t testing.TB, parameters string) answer {
	t.Helper()
	return u.Get(t, "/workflow/api/v1/requests?"+parameters)
}

func (u user) requests(t testing.TB, parameters string) (ids []string, page requestPage) {
	t.Helper()
	a := u.requestsPage(t, parameters)
	a.WantStatus(t, 200)
	page = wiretest.Decode[requestPage](t, a.Body)
	for _, f := range page.Forms {
		ids = append(ids, f.ID)
	}
	return ids, page
}

// made creates an instance that is no form.
func (u user) made(t testing.TB, workflow string) string {
	t.Helper()
	return u.Create(t, workflow, "").Record(t).ID
}

func requestsAreShown(t *testing.T, s *service, _ *clock) {
	ann, bob := s.as("ann"), s.as("bob")
	id := ann.made(t, "shown")
	a := ann.with("Accept-Language: de").requestsPage(t, "workflowId=shown&count=true")
	want := `{"forms":[{"id":"` + id + `","formType":"Instance","formId":"","submissionId":"","name":"Trip","fullPath":"instances/shown/` + id + `","by":"ann","when":`
	rest := `,"status":"draft","role":"","title":"To Rome","states":[{"stateMachineId":"main","nodeId":"draft","label":"Entwurf","tone":"waiting"}],` +
		`"columns":[{"path":"svcPublic.to","label":"Wohin","value":"Rome"},{"path":"svcPublic.days","label":"days","value":null}],"workflowId":"shown","category":"current"}],"next":null,"count":1}`
	assert.True(t, a.Status == 200 && strings.HasPrefix(a.Body, want) && strings.HasSuffix(a.Body, rest) && strings.Contains(a.Header.Get("Vary"), "Accept-Language"),
		"got %d %s with Vary: %s\nwant %s… %s", a.Status, a.Body, a.Header.Get("Vary"), want, rest)
	for _, q := range []string{"q=TO+rom", "q=" + id[10:], "q=trip", "kind=instance", "category=current"} {
		ids, _ := s.desk("ann").requests(t, q)
		assert.Contains(t, ids, id, q)
	}
	lists, _ := s.desk("ann").where(t, id)
	assert.Empty(t, lists, "it is in the lists of forms")
	assert.False(t, slices.ContainsFunc(s.desk("ann").formPage(t, "").Forms, func(f formItem) bool { return f.ID == id }), "it is in the pages of forms")
	if ids, p := bob.requests(t, "workflowId=shown&count=true"); len(ids) != 0 || *p.Count != 0 {
		t.Errorf("somebody else has %v of %d", ids, *p.Count)
	}
	ann.Event(t, "shown", id, "send", "").WantStatus(t, 200)
	if ids, p := ann.requests(t, "workflowId=shown&count=true"); len(ids) != 0 || *p.Count != 0 {
		t.Errorf("what may not be read any more: got %v of %d", ids, *p.Count)
	}
}

func requestsMove(t *testing.T, s *service, clock *clock) {
	ann, bob := s.as("ann"), s.as("bob")
	id := ann.made(t, "leave")
	for _, c := range []struct {
		who   user
		event string
		later time.Duration
		want  string
	}{
		{ann, "", 0, "current draft"},
		{ann, "submit", 0, "submitted review"},
		{bob, "approve", 0, "submitted approved"},
		{bob, "", 29 * 24 * time.Hour, "submitted approved"},
		{bob, "", 2 * 24 * time.Hour, "archived approved"},
	} {
		if c.event != "" {
			c.who.Event(t, "leave", id, c.event, "").WantStatus(t, 200)
		}
		clock.wait(c.later)
		var got []string
		for _, category := range []string{"current", "submitted", "archived", ""} {
			parameters := "count=true&workflowId=leave"
			if category != "" {
				parameters += "&category=" + category
			}
			_, p := ann.requests(t, parameters)
			for _, f := range p.Forms {
				if f.ID == id && (category == "" || category == f.Category) {
					got = append(got, f.Category+" "+f.Status)
				}
			}
			assert.Equal(t, len(p.Forms), *p.Count, "%s: the count", category)
		}
		assert.Equal(t, []string{c.want, c.want}, got, "after %q and %v, %s", c.event, c.later, c.want)
	}
}

func requestsAreMerged(t *testing.T, s *service, _ *clock) {
	bob := s.desk("bob")
	var want, forms []string
	for n := range 12 {
		id := ""
		switch n % 3 {
		case 0:
			_, id, _ = strings.Cut(bob.form(t, "leave-form", "leave"), "/")
			forms = append(forms, id)
		case 1:
			id = bob.made(t, "leave")
		case 2:
			_, id, _ = strings.Cut(bob.form(t, "feedback", "-"), "/")
			forms = append(forms, id)
		}
		want = append(want, id)
	}
	_, checklist, _ := strings.Cut(bob.form(t, "safety", "-"), "/")
	for sort, inOrder := range map[string][]string{"when": want, "-when": backward(want), "name": nil} {
		var got []string
		for next := ""; ; {
			ids, p := bob.requests(t, "limit=5&count=true&sort="+sort+next)
			got = append(got, ids...)
			assert.Equal(t, len(want), *p.Count, "by %s: the count", sort)
			for _, f := range p.Forms {
				assert.True(t, (f.FormType == "Instance") == !slices.Contains(forms, f.ID) && f.WorkflowID != "" && f.Category == "current", "by %s: got %+v", sort, f)
			}
			if p.Next == nil {
				break
			}
			next = "&cursor=" + *p.Next
		}
		if inOrder == nil {
			slices.Sort(got)
			inOrder = slices.Sorted(slices.Values(want))
		}
		assert.True(t, slices.Equal(got, inOrder), "by %s: got %v\nwant %v", sort, got, inOrder)
	}
	for kind, want := range map[string]int{"form": 8, "instance": 4, "checklist": 1} {
		ids, _ := bob.requests(t, "kind="+kind)
		assert.True(t, len(ids) == want && (kind != "checklist" || ids[0] == checklist), "of the kind %s: got %v, want %d", kind, ids, want)
	}
	ids, _ := bob.requests(t, "workflowId=-")
	assert.Len(t, ids, 4, "without a workflow")
}

func requestsAreChecked(t *testing.T, s *service, _ *clock) {
	bob := s.as("bob")
	_, p := bob.requests(t, "limit=2")
	for _, bad := range []string{"kind=x", "category=every", "category=mine", "sort=-name", "limit=0", "count=1", "q=", "q=" + strings.Repeat("x", 201), "x=1", "cursor=x", "kind=form&cursor=" + *p.Next, "category=current&cursor=" + *p.Next} {
		a := bob.requestsPage(t, bad)
		assert.Equal(t, 400, a.Status, "%v %v", bad, a.Body)
	}
	assert.Equal(t, 401, s.user().requestsPage(t, "").Status, "without a credential")
	if ids, _ := s.as("eve").requests(t, ""); len(ids) != 0 { // who has no privileges has a list, too
		t.Errorf("eve has %v", ids)
	}
}

func backward(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}
