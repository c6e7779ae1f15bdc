package endtoend

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// flow is a definition in which a version shows by the initial node.
func flow(version, initial string) string {
	return "id: flow\nname: Flow " + version + "\nversion: " + version +
		"\nstateMachines: {main: {initial: " + initial + ", states: {" + initial + ": {on: {go: end, only" + version + ": {}}}, end: {type: final}}}}\n"
}

// initial is the node in which a new instance of flow begins.
func (s *scene) initial(t *testing.T) string {
	t.Helper()
	return s.ann.Create(t, "flow", "").Record(t).States[0].NodeID
}

// TestReload changes files under a running program (gateway/INTERFACE.md, "Versions of
// a definition"). Definitions, templates and users are one set each, which is taken or
// refused as a whole.
func TestReload(t *testing.T) {
	s := sceneOf(start(t, newHome(t, map[string]string{"workflows/flow.yaml": flow("1", "a")})))
	old := s.ann.Create(t, "flow", "").Record(t)
	refused := func(file, text string, says ...string) {
		t.Helper()
		s.home.write(file, text)
		s.await("the refusal of "+file, func() bool { return s.log.has(append(says, file)...) })
		assert.Equal(t, "a", s.initial(t), "%s: a new instance begins", file)
	}
	refused("workflows/flow.yaml", flow("1", "z"), "raise version to 2")
	broken := func(to string) string {
		return "id: broken\nstateMachines: {main: {initial: a, states: {a: {on: {go: " + to + "}}}}}\n"
	}
	refused("workflows/broken.yaml", broken("nowhere"), `"line":2`, "nowhere")
	// NB: the files are read at any time, so a fault must be there before the good file comes, and another one behind it.
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	refused("workflows/broken.yaml", broken("elsewhere"), "elsewhere")
	s.ann.Create(t, "broken", "").WantFault(t, 404, "NotFound")
	s.home.remove("workflows/broken.yaml")
	s.await("version 2", func() bool { return s.initial(t) == "b" })
	s.ann.Event(t, "flow", old.ID, "only1", "").Record(t)

	form := "id: ask\naccess: {roles: [clerk]}\nworkflows: [flow]\nsubmit: only1\nschema: {type: object}\n"
	s.home.write("forms/ask.yaml", form)
	s.await("the refusal of an event that is not there any more", func() bool { return s.log.has("forms/ask.yaml", `"line":4`, "only1", "only2") })
	s.home.write("workflows/flow.yaml", strings.Replace(flow("2", "b"), "go: end", "go: b", 1)) // faulty as well: version 2 is in use
	s.home.write("identity.yaml", "users: [{id: ann, role: [x]}]\n")
	s.await("the refusal of the users", func() bool { return s.log.has("identity.yaml", "role") })
	s.bob.Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
	s.home.write("identity.yaml", wiretest.People)
	s.home.write("forms/ask.yaml", strings.Replace(form, "only1", "only2", 1))
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	s.await("the log to tell of the template", func() bool { return s.log.has("changed workflows and templates are in use", `"templates":1`) })
}

// TestRestart stops a program, and starts it on a home with a faulty definition: the
// old one stays in use, and everything that was acknowledged is there, retries
// included (gateway/INTERFACE.md, "Retries").
func TestRestart(t *testing.T) {
	s := sceneOf(start(t, newHome(t, map[string]string{"workflows/flow.yaml": flow("1", "a")})))
	const key, another = "Idempotency-Key: over-restart", "Idempotency-Key: another"
	content := `{"svcPublic":{"a":9007199254740993,"\u0000":[1e400]}}`
	requests := func(u user, id string) []answer {
		return []answer{
			u.Event(t, "flow", id, "only1", `{"a":1}`, key), u.Event(t, "flow", id, "go", "", another), u.Load(t, "flow", id),
			u.Get(t, wiretest.Root+"/instances/flow"), u.Create(t, "flow", content, key),
		}
	}
	created := s.ann.Create(t, "flow", content, key)
	id := created.Record(t).ID
	before := requests(s.ann, id)
	s.stop()
	s.home.write("workflows/flow.yaml", "id: flow\nversion: 2\n")
	p := start(t, s.home)
	again := p.user(s.ann.Credential...) // the token is kept, too
	for i, a := range requests(again, id) {
		want := before[i]
		assert.True(t, want.Status == 200 && a.Status == 200 && a.Body == want.Body && a.Header.Get("ETag") == want.Header.Get("ETag"),
			"answer %d: got %d %s %s, want %s %s", i, a.Status, a.Header.Get("ETag"), a.Body, want.Header.Get("ETag"), want.Body)
	}
	again.Event(t, "flow", id, "go", "", key).WantFault(t, 422, "KeyReused")
	p.wantLine("workflows/flow.yaml", "stateMachines")
	got := again.Create(t, "flow", "").Record(t)
	assert.Equal(t, "a", got.States[0].NodeID, "a new instance: got %s, want it to begin in a", got.Text)
	p.home.remove("workflows/flow.yaml")
	p = p.restart()
	again.Client = p.Client
	again.Create(t, "flow", "").WantFault(t, 404, "NotFound")
	got = again.Load(t, "flow", id).Record(t)
	assert.Equal(t, []string{"end"}, got.Nodes(), "without its file: got %s", got.Text)
}

// TestNoSpace starts the program with more free space demanded than there can be. It
// refuses to write, says so, and goes on reading (gateway/INTERFACE.md, "Refusals under
// load").
func TestNoSpace(t *testing.T) {
	h := newHome(t, flows())
	p := start(t, h)
	u := p.as(h.token("ann"))
	r := u.Create(t, "plain", "").Record(t)
	p.stop()
	p = launch(t, h, binary(), "--free-bytes-min", "1000000GiB")
	p.await("readiness", func() bool { return p.log.has(`"message":"ready"`) })
	u.Client = p.Client
	for name, a := range map[string]answer{
		"create": u.Create(t, "plain", ""), "event": u.Event(t, "plain", r.ID, "go", ""), "readyz": u.Get(t, "/readyz"),
	} {
		if reason := a.FaultReason(503, "Unavailable"); reason != "" { // and Retry-After
			t.Errorf("%s: %s", name, reason)
		}
	}
	for _, path := range []string{"/livez", wiretest.Root + "/choices", wiretest.Root + "/instances/plain"} {
		u.Get(t, path).WantStatus(t, 200)
	}
	assert.Equal(t, r.Text, u.Load(t, "plain", r.ID).Record(t).Text, "after a refused event")
}
