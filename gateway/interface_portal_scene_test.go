package gateway_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/gateway/wiretest"
)

// portalOptions are those of a service with forms.
func portalOptions() serviceOptions {
	return serviceOptions{Options: actorstest.Options{Files: filesOf("portal")}}
}

// formItem is an item of the lists (gateway/INTERFACE.md, "Fields of a form").
type formItem struct {
	ID, FormType, FormID, SubmissionID, Name, FullPath, By, Status, Role string
	When                                                                 int64
}

var portalLists = []string{
	"forms/mycurrent", "forms/mysubmitted", "forms/myarchived", "checklists/mycurrent", "checklists/mysubmitted", "checklists/myarchived",
}

// where returns the lists of the user that show a form, and how.
func (u user) where(t testing.TB, id string) (lists string, shown formItem) {
	t.Helper()
	for _, list := range portalLists {
		a := u.Get(t, "/form-portal/"+list)
		a.WantStatus(t, 200)
		items := wiretest.Decode[[]formItem](t, a.Body)
		if i := slices.IndexFunc(items, func(f formItem) bool { return f.ID == id }); i >= 0 {
			lists, shown = lists+list, items[i]
		}
	}
	return lists, shown
}

// sending is a request of the portal: the way is method and path, its root left out.
func (u user) sending(way, body string, headers ...string) request {
	method, path, _ := strings.Cut(way, " ")
	root := "/form-runtime/api/v1/"
	if strings.HasPrefix(path, "forms/") || strings.HasPrefix(path, "checklists/") || !strings.Contains(path, "/") && path != "submit" {
		root = "/form-portal/"
	}
	if body != "" {
		headers = append(headers, wiretest.JSONType)
	}
	return request{Method: method, Path: u.Base + root + path, Headers: append(headers, u.Credential...), Body: body}
}

func (u user) sends(t testing.TB, way, body string, headers ...string) answer {
	t.Helper()
	return u.Send(t, u.sending(way, body, headers...))
}

// making is a request for a form, a checklist for safety.
func (u user) making(template, workflow string, headers ...string) request {
	switch {
	case template == "safety":
		return u.sending("POST checklists/create", `{"checklistId":"safety"}`, headers...)
	case workflow == "-":
		return u.sending("POST forms/create", `{"formId":"`+template+`"}`, headers...)
	}
	return u.sending("POST forms/create", `{"formId":"`+template+`","workflowId":"`+workflow+`"}`, headers...)
}

// form creates a form and returns its place: "workflow/id".
func (u user) form(t testing.TB, template, workflow string) string {
	t.Helper()
	a := u.Send(t, u.making(template, workflow))
	a.WantStatus(t, 200)
	return workflow + "/" + a.Body
}

func submission(place, data string) string {
	workflow, id, _ := strings.Cut(place, "/")
	return `{"workflowId":"` + workflow + `","instanceId":"` + id + `","data":` + data + `}`
}

func (u user) submit(t testing.TB, place, data string, headers ...string) answer {
	t.Helper()
	return u.sends(t, "POST submit", submission(place, data), headers...)
}

func (u user) save(t testing.TB, place, data string, headers ...string) answer {
	t.Helper()
	return u.sends(t, "PUT draft/"+place, `{"data":`+data+`}`, headers...)
}

// draft is a draft as it is shown.
type draft struct {
	Revision uint64
	SavedAt  int64
	Data     json.RawMessage
}

// saved keeps a draft and returns its tag.
func (u user) saved(t testing.TB, place, data string, headers ...string) string {
	t.Helper()
	a := u.save(t, place, data, headers...)
	a.WantStatus(t, 200)
	tag := strconv.Quote(strconv.FormatUint(wiretest.Decode[draft](t, a.Body).Revision, 10))
	assert.Equal(t, tag, a.Header.Get("ETag"), "ETag")
	return tag
}

// view is a form as its page gets it.
type view struct {
	Form                  formItem
	Category              string
	Template, Data, Draft json.RawMessage
	States                []position
	SubmittedAt           int64
	Editable              bool
}

func (u user) view(t testing.TB, place string) view {
	t.Helper()
	a := u.sends(t, "GET form/"+place, "")
	a.WantStatus(t, 200)
	return wiretest.Decode[view](t, a.Body)
}
