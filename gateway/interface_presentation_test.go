package gateway_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/gateway/wiretest"
)

// seenFlow says how people see it, in two languages; some of it is hostile.
const seenFlow = `
id: seen
name: Claim
allow: {create: {roles: [clerk]}, read: {roles: [clerk, approver]}, send: {roles: [clerk, approver]}}
title: 'Claim of ${svcPublic.customer}'
indexes: [svcPublic.customer, svcPrivate.note]
columns: [{path: svcPublic.customer, label: {en: Customer, de: Kundin}}, svcPublic.amount]
events:
  send: {label: {en: Send it off, de: Absenden}, done: {en: sent it off, de: hat abgesendet}, style: primary}
  drop: {label: '</title><script>alert(1)</script>', style: danger}
stateMachines:
  main:
    label: {en: Claim, de: Schadensfall}
    states:
      draft: {label: {en: A draft, de: Entwurf}, on: {send: review, drop: dropped, touch: {}}}
      review: {label: {en: Being looked at, de: In Prüfung}, tone: waiting, on: {drop: dropped}}
      dropped: {type: final, tone: bad, label: '<b>Dropped</b>'}
`

// untitledFlow says nothing of how people see it.
const untitledFlow = `
id: untitled
allow: {create: {roles: [clerk]}, read: {users: [nobody]}}
stateMachines: {main: {states: {open: {on: {close: closed}}, closed: {type: final}}}}
`

func TestInterfacePresentation(t *testing.T) {
	s := sceneOf(startService(t, serviceOptions{Options: actorstest.Options{Files: presentedFlows()}}))
	for _, l := range []line{
		{`gateway/INTERFACE.md, "How people see it"`, "a summary of an instance", summaryShows},
		{`gateway/INTERFACE.md, "How people see it"`, "a presentation of a workflow", presentationShows},
		{`gateway/INTERFACE.md, "Fields"`, "titles in a list", listHasTitles},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "with how people see them", eventsAreLabelled},
		{`gateway/INTERFACE.md, "Languages"`, "one string, and Vary", languageIsChosen},
		{`gateway/INTERFACE.md, "Pictures"`, "of an instance and of a definition", picturesAreDrawn},
	} {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, s) })
	}
}

func presentedFlows() map[string]string {
	files := flows()
	files["workflows/seen.yaml"], files["workflows/untitled.yaml"] = seenFlow, untitledFlow
	return files
}

type summary struct {
	WorkflowID, InstanceID, WorkflowName, Title, CreatedAt, UpdatedAt, Requester, RequesterName string
	Version                                                                                     int
	Status                                                                                      []struct{ StateMachineID, NodeID, Label, Tone string }
	Done                                                                                        bool
	Ended                                                                                       *string
	Form                                                                                        *struct{ FormID, Name, Kind string }
}

func summaryShows(t *testing.T, s *scene) {
	id := s.ann.Create(t, "seen", `{"svcPublic":{"customer":"\u202eAnn\n<i>","amount":5.50}}`).Record(t).ID
	s.ann.Event(t, "seen", id, "send", "")
	a := s.bob.with("Accept-Language: de-AT").Get(t, wiretest.Root+"/instance/seen/"+id+"/summary")
	got := wiretest.Decode[summary](t, a.Body)
	if got.Title != "Claim of Ann <i>" || got.WorkflowName != "Claim" || got.Version != 1 || got.Requester != "ann" || got.RequesterName != "Ann" || got.Done || got.Ended != nil || got.Form != nil {
		t.Errorf("got %s", a.Body)
	}
	for _, want := range []string{
		`"status":[{"stateMachineId":"main","nodeId":"review","label":"In Prüfung","tone":"waiting"}]`,
		`"columns":[{"path":"svcPublic.customer","label":"Kundin","value":"\u202eAnn\n<i>"},{"path":"svcPublic.amount","label":"amount","value":5.50}]`,
	} {
		assert.Contains(t, a.Body, want)
	}
	assert.True(t, a.Header.Get("Etag") == `"2"` && got.CreatedAt <= got.UpdatedAt && strings.HasSuffix(got.UpdatedAt, "Z"),
		"got the tag %s and the times %s and %s", a.Header.Get("Etag"), got.CreatedAt, got.UpdatedAt)
	s.ann.Event(t, "seen", id, "drop", "")
	got = wiretest.Decode[summary](t, s.ann.Get(t, wiretest.Root+"/instance/seen/"+id+"/summary").Body)
	assert.True(t, got.Done && got.Ended != nil && *got.Ended == "done" && got.Status[0].Label == "<b>Dropped</b>" && got.Status[0].Tone == "bad", got)
	bare := s.ann.Create(t, "seen", `{"svcPublic":{}}`).Record(t).ID
	b := s.ann.Get(t, wiretest.Root+"/instance/seen/"+bare+"/summary")
	assert.True(t, wiretest.Decode[summary](t, b.Body).Title == "Claim" && strings.Contains(b.Body, `"label":"amount","value":null}`), b.Body)
	s.ann.refuses(t, 404, "NotFound", wiretest.Root+"/instance/seen/01JD0000000000000000000001/summary", wiretest.Root+"/instance/none/"+id+"/summary")
	s.eve.refuses(t, 403, "AccessDenied", wiretest.Root+"/instance/seen/"+id+"/summary", wiretest.Root+"/instance/seen/"+id+"/diagram")
}

func presentationShows(t *testing.T, s *scene) {
	const want = `{"workflowId":"seen","name":"Claim","version":1,"titled":true,` +
		`"columns":[{"path":"svcPublic.customer","label":"Kundin"},{"path":"svcPublic.amount","label":"amount"}],` +
		`"stateMachines":[{"stateMachineId":"main","label":"Schadensfall"}],` +
		`"nodes":[{"stateMachineId":"main","nodeId":"draft","label":"Entwurf","tone":"neutral"},{"stateMachineId":"main","nodeId":"review","label":"In Prüfung","tone":"waiting"},` +
		`{"stateMachineId":"main","nodeId":"dropped","label":"<b>Dropped</b>","tone":"bad"}],"compounds":[{"stateMachineId":"main","nodeId":"main","label":"Schadensfall","tone":"neutral"}],` +
		`"events":[{"name":"drop","label":"</title><script>alert(1)</script>","done":null,"style":"danger"},{"name":"send","label":"Absenden","done":"hat abgesendet","style":"primary"},` +
		`{"name":"touch","label":"touch","done":null,"style":"default"}],"sorts":["svcPublic.customer"]}`
	for _, query := range []string{"", "?version=1"} {
		assert.Equal(t, want, s.bob.with("Accept-Language: de").Get(t, wiretest.Root+"/presentation/seen"+query).Body)
	}
	a := s.ann.Get(t, wiretest.Root+"/presentation/untitled")
	assert.True(t, a.Status == 200 && strings.Contains(a.Body, `"titled":false,"columns":[]`), "who may create it alone: got %d %s", a.Status, a.Body)
	s.eve.refuses(t, 403, "AccessDenied", wiretest.Root+"/presentation/seen")
	s.bob.refuses(t, 404, "NotFound", wiretest.Root+"/presentation/none", wiretest.Root+"/presentation/seen?version=7")
	s.bob.refuses(t, 400, "InvalidContent", wiretest.Root+"/presentation/seen?version=0", wiretest.Root+"/presentation/seen?version=01", wiretest.Root+"/presentation/seen?version=", wiretest.Root+"/presentation/seen?versions=1")
}

func listHasTitles(t *testing.T, s *scene) {
	id := s.ann.Create(t, "seen", `{"svcPublic":{"customer":"Titia"}}`).Record(t).ID
	bare := s.ann.Create(t, "seen", `{"svcPublic":{"amount":1,"who":"Titia"}}`).Record(t).ID
	filter := filterOf(`{"$or":[{"svcPublic.customer":"Titia"},{"svcPublic.who":"Titia"}]}`)
	for _, more := range []string{"", "&limit=10", "&limit=10&sort=-_id"} {
		a := s.bob.query(t, "seen", filter+"&fields=title,svcRedirect"+more)
		var titles []string
		for _, of := range wiretest.Decode[struct{ Instances []struct{ ID, Title string } }](t, strings.ReplaceAll(a.Body, `"_id"`, `"id"`)).Instances {
			titles = append(titles, of.ID+" "+of.Title)
		}
		slices.Sort(titles)
		want := []string{id + " Claim of Titia", bare + " Claim"}
		assert.True(t, slices.Equal(titles, want), "%s: got %q, want %q", more, titles, want)
		assert.Contains(t, a.Header.Get("Vary"), "Accept-Language", "Vary")
	}
	a := s.bob.query(t, "seen", filter)
	assert.True(t, !strings.Contains(a.Body, "title") && !strings.Contains(a.Header.Get("Vary"), "Language"), "without the field: got %s", a.Body)
	s.bob.refusesQuery(t, wiretest.Root+"/instances/seen", "fields=title,title", "fields=titles")
}

func eventsAreLabelled(t *testing.T, s *scene) {
	id := s.ann.Create(t, "seen", "").Record(t).ID
	a := s.ann.with("Accept-Language: de").Get(t, wiretest.Root+"/instance/seen/"+id+"/events")
	for _, want := range []string{
		`{"name":"send","label":"Absenden","done":"hat abgesendet","style":"primary","guard":"true","transitions":[{"stateMachineId":"main","nodeId":"draft","targets":["review"],"targetLabels":["In Prüfung"],"guard":"true"}],"schema":null}`,
		`{"name":"touch","label":"touch","done":null,"style":"default","guard":"true","transitions":[{"stateMachineId":"main","nodeId":"draft","targets":[],"targetLabels":[],"guard":"true"}],"schema":null}`,
	} {
		assert.Contains(t, a.Body, want)
	}
}

func languageIsChosen(t *testing.T, s *scene) {
	for header, want := range map[string]string{
		"": "Send it off", "de": "Absenden", "fr, de;q=0.5, en;q=0.4": "Absenden", "fr": "Send it off", "EN-us": "Send it off", "%%": "Send it off", "de;q=0": "Send it off",
	} {
		a := s.ann.with("Accept-Language: "+header).Get(t, wiretest.Root+"/presentation/seen")
		assert.True(t, strings.Contains(a.Body, `"label":"`+want+`"`) && a.Header.Get("Vary") == "Cookie, Authorization, Authentication, Accept-Language",
			"%q: got %s with Vary %s", header, a.Body, a.Header.Get("Vary"))
	}
	assert.NotContains(t, s.ann.Get(t, wiretest.Root+"/choices").Header.Get("Vary"), "Language", "choices: got Vary")
}

func picturesAreDrawn(t *testing.T, s *scene) {
	id := s.ann.Create(t, "seen", "").Record(t).ID
	s.ann.Event(t, "seen", id, "send", "")
	of := wiretest.Root + "/instance/seen/" + id + "/diagram"
	a := s.bob.with("Accept-Language: de").Get(t, of)
	if a.Status != 200 || a.Header.Get("Content-Type") != "image/svg+xml" || a.Header.Get("Etag") == "" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") {
		t.Errorf("got %d with %v", a.Status, a.Header)
	}
	wantPicture(t, a.Body, "In Prüfung", `class="node leaf waiting visited now" data-machine="main" data-node="review"`, `class="transition visited" data-from="draft" data-event="send"`, "&lt;script&gt;")

	version := wiretest.Root + "/definitions/seen/1/diagram"
	for query, counted := range map[string]bool{"": false, "?counts=false": false, "?counts=true": true} {
		b := s.adm.Get(t, version+query)
		wantPicture(t, b.Body, "Being looked at")
		assert.Equal(t, counted, strings.Contains(b.Body, `class="count" data-machine="main" data-node="review"`), "%s: got %s", query, b.Body)
	}
	s.ann.refuses(t, 403, "AccessDenied", version)
	s.adm.refuses(t, 404, "NotFound", wiretest.Root+"/definitions/seen/2/diagram", wiretest.Root+"/definitions/seen/01/diagram", wiretest.Root+"/definitions/none/1/diagram")
	s.adm.refuses(t, 400, "InvalidContent", version+"?counts=1", of+"?counts=true")
}

// wantPicture holds that a picture is XML without scripts, and has some texts.
func wantPicture(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		assert.Contains(t, text, want, "the picture has no")
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "in\n%s", text)
		e, ok := token.(xml.StartElement)
		assert.False(t, ok && (e.Name.Local == "script" || e.Name.Local == "foreignObject"), "the picture has <%s>", e.Name.Local)
	}
}
