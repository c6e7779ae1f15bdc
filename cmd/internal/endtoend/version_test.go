package endtoend

import (
	"slices"
	"strings"
	"testing"
)

// TestInterfaceVersion changes files under a running program; each row has a
// program of its own.
func TestInterfaceVersion(t *testing.T) {
	for _, l := range versionLines() {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) { l.check(t, nil) })
	}
}

func versionLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Versions of a definition"`, "new instances take the newest version, others stay on theirs", newestForNew},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "others stay even when the file has gone", fileGone},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "changed content under an old version without instances replaces it", replacedWithoutInstances},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "changed content under an old version with instances is refused", refusedWithInstances},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "a faulty set is refused as a whole and the old one stays", faultySetIsRefused},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "a set with a faulty template is refused as a whole", faultyTemplateIsRefused},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "what was published is kept over a restart", publishedIsKept},
		{`gateway/INTERFACE.md, "Versions of a definition"`, "a restart on a faulty set goes on with the old one", restartOnFaults},
		{`gateway/INTERFACE.md, "Retries"`, "the first answer comes also after a restart", repeatsAfterRestart},
		{`gateway/INTERFACE.md, "Retries"`, "the first answer comes also when the file has gone", repeatsWhenGone},
	}
}

// flow is a definition in which a version shows by the initial node.
func flow(version, initial string) string {
	return "id: flow\nname: Flow " + version + "\nversion: " + version +
		"\nstateMachines: {main: {initial: " + initial + ", states: {" + initial + ": {on: {go: end, only" + version + ": {}}}, end: {type: final}}}}\n"
}

// newFlowScene starts a program that has only flow, version 1, with node a.
func newFlowScene(t *testing.T) *scene {
	t.Helper()
	return sceneOf(start(t, newHome(t, map[string]string{"workflows/flow.yaml": flow("1", "a")})))
}

// awaitInitial creates until an instance begins in the node, and returns it.
func (s *scene) awaitInitial(t *testing.T, node string) record {
	t.Helper()
	var r record
	s.await("new instances to begin in "+node, reloadMax, func() bool {
		r = s.ann.create(t, "flow", "").record(t)
		return r.States[0].NodeID == node
	})
	return r
}

func newestForNew(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	old := s.ann.create(t, "flow", "").record(t)
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	young := s.awaitInitial(t, "b")
	if a := s.ann.get(t, root+"/choices"); !strings.Contains(a.body, "Flow 2") || strings.Contains(a.body, "Flow 1") {
		t.Errorf("choices: got %s, want the newest version's name only", a.body)
	}
	wantFault(t, s.ann.event(t, "flow", old.ID, "only2", ""), 400, "InvalidContent")
	wantFault(t, s.ann.event(t, "flow", young.ID, "only1", ""), 400, "InvalidContent")
	s.ann.event(t, "flow", old.ID, "only1", "").record(t)
	s.ann.event(t, "flow", young.ID, "only2", "").record(t)
	r := s.ann.event(t, "flow", old.ID, "go", "").record(t)
	if want := []string{"a"}; !slices.Equal(r.History[2].StartState, want) {
		t.Errorf("startState of the old instance: got %v, want %v", r.History[2].StartState, want)
	}
	if got := s.instances(t, s.ann, "flow"); !slices.Contains(got, old.ID) || !slices.Contains(got, young.ID) {
		t.Errorf("instances: got %v, want those of both versions", got)
	}
	// An older version beside a newer one changes nothing for new instances.
	s.home.write("workflows/again.yaml", flow("1", "a"))
	s.home.write("workflows/third.yaml", strings.Replace(flow("1", "x"), "id: flow", "id: third", 1))
	s.awaitStatus(t, "the third file", 200, func() answer { return s.ann.create(t, "third", "") })
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "b" {
		t.Errorf("with both versions in files: got %v, want b", r.States)
	}
}

func fileGone(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	old := s.ann.create(t, "flow", "").record(t)
	s.home.remove("workflows/flow.yaml")
	a := s.awaitStatus(t, "the workflow to go", 404, func() answer { return s.ann.create(t, "flow", "") })
	wantFault(t, a, 404, "NotFound")
	if a := s.ann.get(t, root+"/choices"); a.body != `{"workflows":[]}` {
		t.Errorf("choices: got %s, want none", a.body)
	}
	r := s.ann.event(t, "flow", old.ID, "only1", "").record(t)
	s = sceneOf(s.restart())
	if got := s.ann.load(t, "flow", old.ID).record(t); got.text != r.text {
		t.Errorf("after a restart: got %s, want %s", got.text, r.text)
	}
	s.ann.event(t, "flow", old.ID, "go", "").record(t)
}

func replacedWithoutInstances(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	s.home.write("workflows/flow.yaml", strings.Replace(flow("1", "z"), "Flow 1", "Flow one", 1))
	s.await("the replaced content", reloadMax, func() bool {
		return strings.Contains(s.ann.get(t, root+"/choices").body, "Flow one")
	})
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "z" {
		t.Errorf("states: got %v, want z", r.States)
	}
}

func refusedWithInstances(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	s.ann.create(t, "flow", "").record(t)
	s.home.write("workflows/flow.yaml", flow("1", "z"))
	s.await("the refusal with advice", reloadMax, func() bool {
		return s.log.has("workflows/flow.yaml", "raise version to 2")
	})
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "a" {
		t.Errorf("states: got %v, want a: the old content", r.States)
	}
	// The advice helps.
	s.home.write("workflows/flow.yaml", flow("2", "z"))
	s.awaitInitial(t, "z")
}

func faultySetIsRefused(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	s.home.write("workflows/other.yaml", strings.Replace(flow("1", "x"), "id: flow", "id: other", 1))
	s.awaitStatus(t, "the other workflow", 200, func() answer { return s.ann.create(t, "other", "") })
	s.home.write("workflows/broken.yaml", "id: broken\nstateMachines: {main: {initial: a, states: {a: {on: {go: nowhere}}}}}\n")
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	s.await("the refusal with file, line and reason", reloadMax, func() bool {
		return s.log.has("workflows/broken.yaml", `"line":2`, "nowhere")
	})
	for _, workflow := range []string{"flow", "other"} {
		if r := s.ann.create(t, workflow, "").record(t); r.States[0].NodeID == "b" {
			t.Errorf("%s: a part of a refused set is in use", workflow)
		}
	}
	wantFault(t, s.ann.create(t, "broken", ""), 404, "NotFound")
	s.home.remove("workflows/broken.yaml")
	s.awaitInitial(t, "b")
}

// faultyTemplateIsRefused: definitions and templates are one set. The folder of
// the templates comes while the server runs.
func faultyTemplateIsRefused(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	form := "id: ask\naccess: {roles: [clerk]}\nworkflows: [flow]\nsubmit: only2\nschema: {type: object}\n"
	s.home.write("forms/ask.yaml", form)
	s.await("the refusal of an event that the old version does not have", reloadMax, func() bool {
		return s.log.has("forms/ask.yaml", `"line":4`, "only2", "only1")
	})
	s.home.write("forms/ask.yaml", strings.Replace(form, "clerk", "clark", 1))
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	s.await("the refusal of an unknown role", reloadMax, func() bool {
		return s.log.has("forms/ask.yaml", `"line":2`, "clark", "clerk")
	})
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "a" {
		t.Errorf("states: got %v, want a: the definition beside a faulty template", r.States)
	}
	s.home.write("forms/ask.yaml", form)
	s.awaitInitial(t, "b")
	s.await("the log to tell of the template", reloadMax, func() bool { return s.log.has("changed workflows and templates are in use", `"templates":1`) })
}

func publishedIsKept(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	old := s.ann.create(t, "flow", "").record(t)
	s.stop()
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	s = sceneOf(start(t, s.home))
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "b" {
		t.Errorf("states of a new instance: got %v, want b", r.States)
	}
	wantFault(t, s.ann.event(t, "flow", old.ID, "only2", ""), 400, "InvalidContent")
	s.ann.event(t, "flow", old.ID, "only1", "").record(t)
}

func repeatsAfterRestart(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	const key = "Idempotency-Key: over-restart"
	content := `{"svcPublic":` + torture + `}`
	created := s.ann.create(t, "flow", content, key)
	r := created.record(t)
	first := s.ann.event(t, "flow", r.ID, "only1", `{"a":1}`, key)
	last := s.ann.event(t, "flow", r.ID, "go", "", "Idempotency-Key: another")
	before := s.instances(t, s.ann, "flow")
	stopped := s.ann
	s = sceneOf(s.restart())
	again := user{s.program, stopped.credential} // the token is kept, too
	wantRepeat(t, "create", again.create(t, "flow", content, key), created)
	wantRepeat(t, "event", again.event(t, "flow", r.ID, "only1", `{"a":1}`, key), first)
	wantRepeat(t, "last event", again.event(t, "flow", r.ID, "go", "", "Idempotency-Key: another"), last)
	wantFault(t, again.event(t, "flow", r.ID, "go", "", key), 422, "KeyReused")
	if got := s.instances(t, s.ann, "flow"); !slices.Equal(got, before) {
		t.Errorf("instances: got %v, want %v", got, before)
	}
}

func restartOnFaults(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	old := s.ann.create(t, "flow", "").record(t)
	s.stop()
	s.home.write("workflows/flow.yaml", "id: flow\nversion: 2\n")
	s = sceneOf(start(t, s.home))
	s.ann.event(t, "flow", old.ID, "only1", "").record(t)
	if r := s.ann.create(t, "flow", "").record(t); r.States[0].NodeID != "a" {
		t.Errorf("states of a new instance: got %v, want a", r.States)
	}
	s.wantLine("workflows/flow.yaml", "stateMachines")
	// A faulty identity.yaml is refused as well, and the users stay.
	s.home.write("identity.yaml", "users: [{id: ann, role: [x]}]\n")
	s.home.write("workflows/flow.yaml", flow("2", "b"))
	s.await("the refusal of identity.yaml", reloadMax, func() bool { return s.log.has("identity.yaml", "role") })
	wantStatus(t, s.bob.get(t, root+"/choices"), 200)
	s.home.write("identity.yaml", people)
	s.awaitInitial(t, "b")
}

func repeatsWhenGone(t *testing.T, _ *scene) {
	s := newFlowScene(t)
	const key = "Idempotency-Key: before-it-went"
	created := s.ann.create(t, "flow", "", key)
	r := created.record(t)
	sent := s.ann.event(t, "flow", r.ID, "only1", "", key)
	s.home.remove("workflows/flow.yaml")
	s.awaitStatus(t, "the workflow to go", 404, func() answer { return s.ann.create(t, "flow", "") })
	wantRepeat(t, "event", s.ann.event(t, "flow", r.ID, "only1", "", key), sent)
	wantRepeat(t, "create", s.ann.create(t, "flow", "", key), created)
}
