package gateway_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestInterfaceRetry(t *testing.T) {
	runLines(t, []line{
		{`gateway/INTERFACE.md, "Retries"`, "the first answer comes again, byte for byte, whatever came between", repeats},
		{`gateway/INTERFACE.md, "Retries"`, "also when the workflow is not there any more", repeatsWhenGone},
		{`gateway/INTERFACE.md, "Retries"`, "the key may be bare or quoted, or event.id", keyForms},
		{`gateway/INTERFACE.md, "Retries"`, "1 to 255 visible ASCII characters, once", wrongKeys},
		{`gateway/INTERFACE.md, "Retries"`, "the same key with another body is 422", keyWithOtherBody},
		{`gateway/INTERFACE.md, "Retries"`, "also while the first is still running: 64 at once", repeatsAtOnce},
		{`gateway/INTERFACE.md, "Retries"`, "remembered for at least the last 64 keys of an instance", manyKeys},
		{`gateway/INTERFACE.md, "Retries"`, "a refused request does not use up its key", refusedLeavesKey},
		{`gateway/INTERFACE.md, "Retries"`, "the key of one caller is not the key of another", keyIsOfOneCaller},
	})
}

// key is the header line of an idempotency key.
func key(k string) string { return "Idempotency-Key: " + k }

// wantRepeat demands the first answer again: status, body and entity tag.
func wantRepeat(t testing.TB, what string, got, first answer) {
	t.Helper()
	wantStatus(t, first, 200)
	if got.status != first.status || got.body != first.body || got.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("%s: got %d %s %s, want the first answer %s %s", what,
			got.status, got.header.Get("ETag"), clip(got.body), first.header.Get("ETag"), clip(first.body))
	}
}

// wantInstances demands that a workflow has so many instances more than before.
func (s *scene) wantInstances(t testing.TB, workflow string, before, more int) {
	t.Helper()
	if got := len(s.instances(t, s.adm, workflow)); got != before+more {
		t.Errorf("%s: got %d instances, want %d", workflow, got, before+more)
	}
}

func repeats(t *testing.T, s *scene) {
	before := len(s.instances(t, s.adm, "order"))
	content := `{"svcPublic":` + torture + `}`
	created := s.ann.create(t, "order", content, key("create-1"))
	r := created.record(t)
	var sent []answer
	send := func(i int, headers ...string) answer { // moves, is recorded, is ignored
		return s.ann.event(t, "order", r.ID, []string{"pay", "pay", "ping", "submit"}[i], `{"n":9007199254740993}`, append(headers, key(fmt.Sprint("k", i)))...)
	}
	for i := range 4 {
		sent = append(sent, send(i))
	}
	for range 2 {
		wantRepeat(t, "create", s.ann.create(t, "order", content, key("create-1")), created)
		for i := range sent {
			wantRepeat(t, fmt.Sprint("event ", i), send(i), sent[i])
			wantRepeat(t, fmt.Sprint("event ", i), send(i, `If-Match: "1"`), sent[i])
		}
		s.ann.event(t, "order", r.ID, "note", `{"other":1}`).record(t)
	}
	minimal := send(0, "Prefer: return=minimal")
	if got := minimal.record(t); got.History != nil || minimal.header.Get("ETag") != `"2"` {
		t.Errorf("a minimal repeat: got %s %s", minimal.header.Get("ETag"), got.text)
	}
	if got := s.ann.load(t, "order", r.ID).record(t); len(got.History) != 6 {
		t.Errorf("history: got %d entries, want 6", len(got.History))
	}
	s.wantInstances(t, "order", before, 1)
}

func repeatsWhenGone(t *testing.T, s *scene) {
	created := s.ann.create(t, "guide", "", key("before-it-went"))
	r := created.record(t)
	sent := s.ann.event(t, "guide", r.ID, "leave", "", key("before-it-went"))
	s.Write("workflows/guide.yaml", "")
	defer s.Write("workflows/guide.yaml", guideFlow)
	wantFault(t, s.ann.create(t, "guide", ""), 404, "NotFound")
	wantRepeat(t, "create", s.ann.create(t, "guide", "", key("before-it-went")), created)
	wantRepeat(t, "event", s.ann.event(t, "guide", r.ID, "leave", "", key("before-it-went")), sent)
}

// withID is the body of an event go at plain with an id.
func withID(instance, id string) string {
	return strings.Replace(eventBody("plain", instance, "go", ""), `"name"`, `"id":`+id+`,"name"`, 1)
}

func keyForms(t *testing.T, s *scene) {
	longest := strings.Repeat("~", 254) + "!"
	for _, forms := range [][2]string{{"k1", `"k1"`}, {`a"b\c`, `"a\"b\\c"`}, {longest, `"` + longest + `"`}} {
		first := s.ann.create(t, "plain", "", key(forms[0]))
		wantRepeat(t, forms[1], s.ann.create(t, "plain", "", key(forms[1])), first)
		r := first.record(t)
		sent := s.ann.event(t, "plain", r.ID, "go", "", key(forms[1]))
		wantRepeat(t, forms[0], s.ann.event(t, "plain", r.ID, "go", "", key(forms[0])), sent)
	}
	r := s.ann.create(t, "plain", "").record(t)
	byID := s.ann.post(t, root+"/event", withID(r.ID, `"by-id"`))
	wantRepeat(t, "event.id", s.ann.post(t, root+"/event", withID(r.ID, `"by-id"`)), byID)
	wantRepeat(t, "event.id beside the header", s.ann.post(t, root+"/event", withID(r.ID, `"by-id"`), key(`"by-id"`)), byID)
}

func wrongKeys(t *testing.T, s *scene) {
	long := strings.Repeat("k", 256)
	r := s.ann.create(t, "plain", "").record(t)
	before := len(s.instances(t, s.adm, "plain"))
	refused := func(what string, a answer) {
		if reason := faultReason(a, 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", clip(what), reason)
		}
	}
	for _, k := range []string{"", `""`, long, "a b", `"a b"`, "ä", `"open`, `"`, "a\tb", `"a"b`, `"k1";a=1`, `"k1\"`, `"k\1"`, `"a"b"`} {
		refused("create with the key "+k, s.ann.create(t, "plain", "", key(k)))
		refused("event with the key "+k, s.ann.event(t, "plain", r.ID, "go", "", key(k)))
	}
	refused("the header twice", s.ann.event(t, "plain", r.ID, "go", "", key("k1"), key("k1")))
	refused("event.id and another key", s.ann.post(t, root+"/event", withID(r.ID, `"one"`), key("two")))
	for _, id := range []string{`""`, `"a b"`, `"` + long + `"`, `7`, `null`} {
		refused("event.id "+id, s.ann.post(t, root+"/event", withID(r.ID, id)))
	}
	s.unchanged(t, r)
	s.wantInstances(t, "plain", before, 0)
}

func keyWithOtherBody(t *testing.T, s *scene) {
	k := key("other-body")
	created := s.ann.create(t, "plain", `{"svcPublic":{"a":1}}`, k)
	r := created.record(t)
	wantRepeat(t, "other white space", s.ann.create(t, "plain", ` { "svcPublic" : {"a" : 1} } `, k), created)
	wantFault(t, s.ann.create(t, "plain", `{"svcPublic":{"a":2}}`, k), 422, "KeyReused")
	wantFault(t, s.ann.create(t, "codes", `{"svcPublic":{"a":1}}`, k), 422, "KeyReused")
	after := s.ann.event(t, "plain", r.ID, "go", "", k).record(t)
	wantFault(t, s.ann.event(t, "plain", r.ID, "go", `{}`, k), 422, "KeyReused")
	wantFault(t, s.ann.event(t, "plain", r.ID, "note", "", k), 422, "KeyReused")
	s.unchanged(t, after)
}

func repeatsAtOnce(t *testing.T, s *scene) {
	same := func(path, body string) record {
		answers := s.atOnce(t, 64, s.ann.posting(root+path, body, key("at-once")))
		for i, a := range answers {
			wantRepeat(t, fmt.Sprint(path, ", copy ", i), a, answers[0])
		}
		return answers[0].record(t)
	}
	before := len(s.instances(t, s.adm, "plain"))
	created := same("/create", createBody("plain", ""))
	s.wantInstances(t, "plain", before, 1)
	sent := same("/event", eventBody("plain", created.ID, "go", `{"a":1}`))
	if len(sent.History) != 2 {
		t.Errorf("history: got %d entries, want 2", len(sent.History))
	}
	s.unchanged(t, sent)
}

func manyKeys(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	var first []answer
	for i := range 128 {
		a := s.ann.event(t, "plain", r.ID, "go", fmt.Sprintf(`{"i":%d}`, i%64), key(fmt.Sprint("many-", i%64)))
		if first = append(first, a); i >= 64 {
			wantRepeat(t, fmt.Sprint("event ", i-64), a, first[i-64])
		}
	}
}

func refusedLeavesKey(t *testing.T, s *scene) {
	r := s.ann.create(t, "rejecting", "").record(t)
	wantFault(t, s.ann.event(t, "rejecting", r.ID, "back", "", key("refused-first")), 409, "EventNotAllowed")
	s.ann.event(t, "rejecting", r.ID, "go", "").record(t)
	if got := s.ann.event(t, "rejecting", r.ID, "back", "", key("refused-first")).record(t); len(got.History) != 3 {
		t.Errorf("history: got %d entries, want 3", len(got.History))
	}
	wantFault(t, s.ann.create(t, "small", `{"svcPublic":{"size":10}}`, key("refused-first")), 403, "AccessDenied")
	s.ann.create(t, "small", `{"svcPublic":{"size":1}}`, key("refused-first")).record(t)
}

func keyIsOfOneCaller(t *testing.T, s *scene) {
	first := s.ann.create(t, "plain", "", key("shared-by-two")).record(t)
	if second := s.bob.create(t, "plain", "", key("shared-by-two")).record(t); first.ID == second.ID {
		t.Errorf("two callers got the same instance %s", first.ID)
	}
	s.ann.event(t, "plain", first.ID, "go", "", key("shared-by-two")).record(t)
	if got := s.bob.event(t, "plain", first.ID, "go", "", key("shared-by-two")).record(t); len(got.History) != 3 {
		t.Errorf("history: got %d entries, want 3: each caller's event", len(got.History))
	}
}
