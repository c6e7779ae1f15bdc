package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/gateway/wiretest"
)

// Templates in two languages; the first of the file is German.
const (
	journeyFlow = `
id: trip
allow: {create: {roles: [employee]}, read: {roles: [employee]}}
stateMachines: {m: {states: {a: {task: {title: T, form: trip-form}, on: {submit: b}}, b: {type: final}}}}
`
	journeyTemplate = `{id: trip-form, name: {de: Reise, en: Journey}, description: {de: Wohin?, en: Where to?}, access: {roles: [employee]}, workflows: [trip], submit: submit,
schema: {type: object, properties: {to: {$ref: place.schema.json, description: {de: Ein Ort, en: A town}}}}, ui: {to: {"ui:placeholder": {de: Ulm, en: Bath}}}}
`
	remarkTemplate = "{id: note-form, name: {de: Anmerkung, en: Note}, access: {roles: [employee]}, workflows: [], schema: {type: object}}\n"
	walkTemplate   = "{id: walk, name: {de: Gang, en: Walk}, access: {roles: [inspector]}, items: [{id: a, label: {de: Licht, en: Light}, help: {de: Alle, en: All}}]}\n"
)

// TestFormTextsAreInTheReadersLanguage: each answer has one string of each, and says that it depends on the language; also of what was
// made in another one.
func TestFormTextsAreInTheReadersLanguage(t *testing.T) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: map[string]string{
		"identity.yaml": filesOf("portal")["identity.yaml"], "workflows/trip.yaml": journeyFlow, "forms/trip.yaml": journeyTemplate, "forms/note.yaml": remarkTemplate,
		"forms/place.schema.json": `{"type": "string", "title": {"de": "Ort", "en": "Place"}}`, "checklists/walk.yaml": walkTemplate,
	}}})
	ann, bob := s.desk("ann"), s.desk("bob")
	trip, note := ann.form(t, "trip-form", "trip"), ann.form(t, "note-form", "-")
	made := bob.sends(t, "POST checklists/create", `{"checklistId":"walk"}`, "Accept-Language: en")
	made.WantStatus(t, 200)
	tasks := ann.Get(t, "/workflow/api/v1/tasks")
	task := wiretest.Decode[struct{ Tasks []struct{ TaskID string } }](t, tasks.Body).Tasks[0].TaskID
	const german, english = "Reise|Wohin?|Ein Ort|Ulm|Ort|Anmerkung|Gang|Licht|Alle", "Journey|Where to?|A town|Bath|Place|Note|Walk|Light|All"
	de, en := strings.Split(german, "|"), strings.Split(english, "|")
	for _, c := range []struct {
		who  user
		path string
		has  []int // of the texts
	}{
		{ann, "/form-portal/forms/role/employee", []int{0, 1, 5}},
		{ann, "/form-portal/forms/mycurrent", []int{0, 5}},
		{ann, "/form-runtime/api/v1/forms", []int{0, 5}},
		{ann, "/form-runtime/api/v1/forms?sort=name&q=journey", []int{0}},
		{ann, "/form-runtime/api/v1/template/form/trip-form", []int{0, 1, 2, 3, 4}},
		{ann, "/form-runtime/api/v1/form/" + trip, []int{0, 1, 2, 3, 4}},
		{ann, "/form-runtime/api/v1/form/" + note, []int{5}},
		{ann, "/form-runtime/api/v1/task/" + task, []int{0, 1, 2, 3, 4}},
		{bob, "/form-portal/checklists/role/inspector", []int{6}},
		{bob, "/form-portal/checklists/mycurrent", []int{6}},
		{bob, "/form-runtime/api/v1/template/checklist/walk", []int{6, 7, 8}},
		{bob, "/form-runtime/api/v1/form/-/" + made.Body, []int{6, 7, 8}},
	} {
		for header, want := range map[string][]string{"": de, "fr": de, "de-AT, en;q=0.5": de, "en-GB, de;q=0.5": en} {
			u := c.who
			if header != "" {
				u = u.with("Accept-Language: " + header)
			}
			a := u.Get(t, c.path)
			assert.True(t, a.Status == 200 && strings.Contains(a.Header.Get("Vary"), "Accept-Language"), "%s: got %d, Vary: %s", c.path, a.Status, a.Header.Get("Vary"))
			for n := range de {
				has := strings.Contains(a.Body, `"`+want[n]+`"`)
				other := de[n]
				if want[n] == de[n] {
					other = en[n]
				}
				if wanted := slices.Contains(c.has, n); has != wanted || strings.Contains(a.Body, `"`+other+`"`) {
					t.Errorf("%s in %q: %q is there: %v, want %v, in\n%s", c.path, header, want[n], has, wanted, a.Body)
				}
			}
		}
	}
	for header, want := range map[string]string{"de": `"Anmerkung" "Reise"`, "en": `"Journey" "Note"`} { // in the order of the names that are shown
		for _, path := range []string{"/form-portal/forms/role/employee", "/form-runtime/api/v1/forms?sort=name"} {
			first, second, _ := strings.Cut(want, " ")
			body := ann.with("Accept-Language: "+header).Get(t, path).Body
			assert.LessOrEqual(t, strings.Index(body, first), strings.Index(body, second), "%s in %s: got %s", path, header, body)
		}
	}
}
