package endtoend

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceRights(t *testing.T) { runLines(t, rightLines()) }

func rightLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "create by role", createNeedsRole},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "create by user, privilege and when", createAsksWhen},
		{`gateway/INTERFACE.md, "Unknown instances"`, "read by role, 403 for every instance id", readNeedsRole},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "send by role, deny wins", sendNeedsRole},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "without rules every authenticated user", withoutRulesEverybody},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "without send whoever may read", sendFollowsRead},
		{`gateway/INTERFACE.md, "Unknown instances"`, "no right to this instance is 404, as if missing", otherInstanceIsMissing},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "choices lists what the caller may create", choicesByRight},
		{`gateway/INTERFACE.md, "Which instances a list has"`, "what the caller may read", queryByRight},
		{`gateway/INTERFACE.md, "Retries"`, "the key of one caller is not the key of another", keyIsOfOneCaller},
	}
}

const nowhere = "01JD0000000000000000000000" // an instance id that nobody has

func createNeedsRole(t *testing.T, s *scene) {
	s.ann.create(t, "vault", "").record(t)
	for name, u := range map[string]user{"bob": s.bob, "eve": s.eve} {
		before := s.instances(t, s.ann, "vault")
		wantFault(t, u.create(t, "vault", ""), 403, "AccessDenied")
		if got := s.instances(t, s.ann, "vault"); len(got) != len(before) {
			t.Errorf("%s: got %d instances, want %d as before", name, len(got), len(before))
		}
	}
}

func createAsksWhen(t *testing.T, s *scene) {
	s.ann.create(t, "small", `{"svcPublic":{"size":9}}`).record(t)
	s.adm.create(t, "small", `{"svcPublic":{"size":9}}`).record(t)
	wantFault(t, s.bob.create(t, "small", `{"svcPublic":{"size":9}}`), 403, "AccessDenied")
	wantFault(t, s.ann.create(t, "small", `{"svcPublic":{"size":10}}`), 403, "AccessDenied")
	wantFault(t, s.ann.create(t, "small", ``), 403, "AccessDenied") // the rule cannot be evaluated: closed
}

func readNeedsRole(t *testing.T, s *scene) {
	r := s.ann.create(t, "vault", "").record(t)
	s.bob.load(t, "vault", r.ID).record(t)
	s.bob.query(t, "vault", "").items(t)
	existing := s.eve.load(t, "vault", r.ID)
	wantFault(t, existing, 403, "AccessDenied")
	wantSameAnswer(t, s.eve.load(t, "vault", nowhere), existing)
	wantFault(t, s.eve.query(t, "vault", ""), 403, "AccessDenied")
	wantSameAnswer(t, s.eve.event(t, "vault", nowhere, "open", ""), s.eve.event(t, "vault", r.ID, "open", ""))
	wantFault(t, s.ann.load(t, "vault", nowhere), 404, "NotFound")
}

// wantSameAnswer demands two answers that nobody can tell apart.
func wantSameAnswer(t testing.TB, got, want answer) {
	t.Helper()
	got.header, want.header = got.header.Clone(), want.header.Clone()
	got.header.Del("Date")
	want.header.Del("Date")
	if got.status != want.status || got.body != want.body || headerText(got) != headerText(want) {
		t.Errorf("two answers can be told apart:\n%d %s %s\n%d %s %s",
			got.status, got.body, headerText(got), want.status, want.body, headerText(want))
	}
}

func headerText(a answer) string {
	var lines []string
	for name, values := range a.header {
		lines = append(lines, name+": "+strings.Join(values, "|"))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func sendNeedsRole(t *testing.T, s *scene) {
	r := s.ann.create(t, "vault", "").record(t)
	wantFault(t, s.bob.event(t, "vault", r.ID, "open", ""), 403, "AccessDenied")
	wantFault(t, s.adm.event(t, "vault", r.ID, "open", ""), 403, "AccessDenied")
	s.unchanged(t, r)
	s.ann.event(t, "vault", r.ID, "open", "").record(t)
}

func withoutRulesEverybody(t *testing.T, s *scene) {
	r := s.eve.create(t, "plain", "").record(t)
	s.eve.event(t, "plain", r.ID, "go", "").record(t)
	s.bob.load(t, "plain", r.ID).record(t)
	s.bob.query(t, "plain", "").items(t)
}

func sendFollowsRead(t *testing.T, s *scene) {
	r := s.ann.create(t, "mine", `{"svcPublic":{"owner":"bob"}}`).record(t)
	s.bob.event(t, "mine", r.ID, "give", "").record(t)
	wantFault(t, s.ann.event(t, "mine", r.ID, "give", ""), 404, "NotFound")
	if got := s.bob.load(t, "mine", r.ID).record(t); len(got.History) != 2 {
		t.Errorf("history: got %d entries, want 2", len(got.History))
	}
}

func otherInstanceIsMissing(t *testing.T, s *scene) {
	r := s.ann.create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).record(t)
	s.ann.load(t, "mine", r.ID).record(t)
	wantFault(t, s.bob.load(t, "mine", r.ID), 404, "NotFound")
	wantSameAnswer(t, s.bob.load(t, "mine", r.ID), s.bob.load(t, "mine", nowhere))
	wantSameAnswer(t, s.bob.event(t, "mine", r.ID, "give", ""), s.bob.event(t, "mine", nowhere, "give", ""))
	wantSameAnswer(t, s.bob.event(t, "mine", r.ID, "unknown", ""), s.bob.event(t, "mine", nowhere, "unknown", ""))
	// Whoever gives the instance away loses it with the same event.
	s.ann.event(t, "mine", r.ID, "give", `{"owner":"bob"}`).record(t)
	wantFault(t, s.ann.load(t, "mine", r.ID), 404, "NotFound")
	s.bob.load(t, "mine", r.ID).record(t)
}

func choicesByRight(t *testing.T, s *scene) {
	has := func(u user, workflow string) bool {
		var body struct{ Workflows []struct{ ID string } }
		a := u.get(t, root+"/choices")
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		for _, w := range body.Workflows {
			if w.ID == workflow {
				return true
			}
		}
		return false
	}
	for _, c := range []struct {
		who      string
		user     user
		workflow string
		want     bool
	}{
		{"ann", s.ann, "vault", true},
		{"bob", s.bob, "vault", false},
		{"eve", s.eve, "vault", false},
		{"eve", s.eve, "plain", true},
		{"bob", s.bob, "small", false},
		{"adm", s.adm, "small", true},
	} {
		if got := has(c.user, c.workflow); got != c.want {
			t.Errorf("choices of %s hold %s: got %v, want %v", c.who, c.workflow, got, c.want)
		}
	}
}

func queryByRight(t *testing.T, s *scene) {
	of := map[string][]string{}
	for _, owner := range []string{"ann", "bob", "ann", "nobody", "bob"} {
		r := s.adm.create(t, "mine", `{"svcPublic":{"owner":"`+owner+`","batch":1}}`).record(t)
		of[owner] = append(of[owner], r.ID)
	}
	batch := "filter=" + escape(`{"svcPublic.batch":1}`)
	for owner, u := range map[string]user{"ann": s.ann, "bob": s.bob, "eve": s.eve} {
		if got := ids(u.query(t, "mine", batch).items(t)); !slices.Equal(got, append([]string{}, of[owner]...)) {
			t.Errorf("%s sees %v, want %v", owner, got, of[owner])
		}
	}
}

func keyIsOfOneCaller(t *testing.T, s *scene) {
	const key = "Idempotency-Key: shared-by-two"
	first := s.ann.create(t, "plain", "", key).record(t)
	second := s.bob.create(t, "plain", "", key).record(t)
	if first.ID == second.ID {
		t.Errorf("two callers got the same instance %s", first.ID)
	}
	s.ann.event(t, "plain", first.ID, "go", "", key).record(t)
	if got := s.bob.event(t, "plain", first.ID, "go", "", key).record(t); len(got.History) != 3 {
		t.Errorf("history: got %d entries, want 3: each caller's event", len(got.History))
	}
}
