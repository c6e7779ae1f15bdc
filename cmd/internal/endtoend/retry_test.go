package endtoend

import (
	"fmt"
	"strings"
	"testing"
)

func TestInterfaceRetry(t *testing.T) { runLines(t, retryLines()) }

func retryLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Retries"`, "Idempotency-Key on create, repeats byte for byte", createRepeats},
		{`gateway/INTERFACE.md, "Retries"`, "Idempotency-Key on event, repeats byte for byte", eventRepeats},
		{`gateway/INTERFACE.md, "Retries"`, "the key may be bare or quoted, or event.id", keyForms},
		{`gateway/INTERFACE.md, "Retries"`, "1 to 255 visible ASCII characters", keyLimits},
		{`gateway/INTERFACE.md, "Retries"`, "the same key with another body is 422", keyWithOtherBody},
		{`gateway/INTERFACE.md, "Retries"`, "also while the first is still running: 64 at once", repeatsAtOnce},
		{`gateway/INTERFACE.md, "Retries"`, "remembered for at least the last 64 keys of an instance", manyKeys},
		{`gateway/INTERFACE.md, "Retries"`, "a refused request does not use up its key", refusedLeavesKey},
		{`gateway/INTERFACE.md, "Retries"`, "an ignored event is remembered too", ignoredRepeats},
		{`gateway/INTERFACE.md, "Retries"`, "the first answer comes also with another If-Match or Prefer", repeatBeforePrecondition},
		{`gateway/INTERFACE.md, "Retries"`, "two different keys in one request are 400", twoKeys},
	}
}

// wantRepeat demands the first answer again: status, body and entity tag.
func wantRepeat(t testing.TB, what string, got, first answer) {
	t.Helper()
	if got.status != first.status || got.body != first.body || got.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("%s: got %d %s %s, want the first answer %d %s %s", what,
			got.status, got.header.Get("ETag"), clip(got.body), first.status, first.header.Get("ETag"), clip(first.body))
	}
}

func createRepeats(t *testing.T, s *scene) {
	const key = "Idempotency-Key: create-1"
	content := `{"svcPublic":` + torture + `}`
	before := s.instances(t, s.adm, "plain")
	first := s.ann.create(t, "plain", content, key)
	r := first.record(t)
	wantRepeat(t, "at once", s.ann.create(t, "plain", content, key), first)
	for range 3 {
		s.ann.event(t, "plain", r.ID, "go", `{"later":true}`).record(t)
	}
	wantRepeat(t, "after events", s.ann.create(t, "plain", content, key), first)
	if got := s.instances(t, s.adm, "plain"); len(got) != len(before)+1 {
		t.Errorf("instances: got %d, want %d", len(got), len(before)+1)
	}
}

func eventRepeats(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	send := func(event, key string) answer {
		return s.ann.event(t, "order", r.ID, event, `{"n":9007199254740993}`, "Idempotency-Key: "+key)
	}
	submit, pay, recorded := send("submit", "k1"), send("pay", "k2"), send("pay", "k3")
	for range 2 {
		wantRepeat(t, "submit", send("submit", "k1"), submit)
		wantRepeat(t, "pay", send("pay", "k2"), pay)
		wantRepeat(t, "recorded", send("pay", "k3"), recorded)
		s.ann.event(t, "order", r.ID, "note", `{"other":1}`).record(t)
	}
	if got := s.ann.load(t, "order", r.ID).record(t); len(got.History) != 6 {
		t.Errorf("history: got %d entries, want 6", len(got.History))
	}
}

func keyForms(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	first := s.ann.event(t, "plain", r.ID, "go", "", `Idempotency-Key: form\1`)
	first.record(t)
	wantRepeat(t, "quoted", s.ann.event(t, "plain", r.ID, "go", "", `Idempotency-Key: "form\\1"`), first)
	withID := strings.Replace(eventBody("plain", r.ID, "go", ""), `"name"`, `"id":"by-id","name"`, 1)
	byID := s.ann.post(t, root+"/event", withID)
	byID.record(t)
	wantRepeat(t, "event.id", s.ann.post(t, root+"/event", withID), byID)
	wantRepeat(t, "event.id beside the header", s.ann.post(t, root+"/event", withID, `Idempotency-Key: "by-id"`), byID)
	if got := s.ann.load(t, "plain", r.ID).record(t); len(got.History) != 3 {
		t.Errorf("history: got %d entries, want 3", len(got.History))
	}
}

func keyLimits(t *testing.T, s *scene) {
	longest := strings.Repeat("~", 254) + "!"
	for _, key := range []string{"x", longest, `"` + longest + `"`} {
		r := s.ann.create(t, "plain", "", "Idempotency-Key: "+key).record(t)
		if got := s.ann.create(t, "plain", "", "Idempotency-Key: "+key).record(t); got.ID != r.ID {
			t.Errorf("a key of %d characters did not repeat", len(key))
		}
	}
	r := s.ann.create(t, "plain", "").record(t)
	for _, key := range []string{"", `""`, longest + "x", "a b", `"a b"`, "ä", `"open`, "a\tb", `"a"b`} {
		for name, a := range map[string]answer{
			"create": s.ann.create(t, "plain", "", "Idempotency-Key: "+key),
			"event":  s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: "+key),
		} {
			if reason := faultReason(a, 400, "InvalidContent"); reason != "" {
				t.Errorf("%s with the key %q: %s", name, clip(key), reason)
			}
		}
	}
	for _, id := range []string{``, `a b`, longest + "x"} {
		body := strings.Replace(eventBody("plain", r.ID, "go", ""), `"name"`, `"id":"`+id+`","name"`, 1)
		if reason := faultReason(s.ann.post(t, root+"/event", body), 400, "InvalidContent"); reason != "" {
			t.Errorf("event.id %q: %s", clip(id), reason)
		}
	}
	s.unchanged(t, r)
}

func keyWithOtherBody(t *testing.T, s *scene) {
	const key = "Idempotency-Key: other-body"
	r := s.ann.create(t, "plain", "", key).record(t)
	wantFault(t, s.ann.create(t, "plain", `{"svcPublic":{}}`, key), 422, "KeyReused")
	wantFault(t, s.ann.create(t, "codes", "", key), 422, "KeyReused")
	after := s.ann.event(t, "plain", r.ID, "go", "", key).record(t)
	wantFault(t, s.ann.event(t, "plain", r.ID, "go", `{}`, key), 422, "KeyReused")
	wantFault(t, s.ann.event(t, "plain", r.ID, "note", "", key), 422, "KeyReused")
	s.unchanged(t, after)
}

func repeatsAtOnce(t *testing.T, s *scene) {
	const copies = 64
	same := func(what string, answers []answer) answer {
		for i, a := range answers {
			wantStatus(t, a, 200)
			wantRepeat(t, fmt.Sprint(what, ", copy ", i), a, answers[0])
		}
		return answers[0]
	}
	before := s.instances(t, s.adm, "plain")
	const key = "Idempotency-Key: at-once"
	created := same("create", s.atOnce(t, copies, s.ann.posting(root+"/create", createBody("plain", ""), key))).record(t)
	if got := s.instances(t, s.adm, "plain"); len(got) != len(before)+1 {
		t.Errorf("instances: got %d, want %d", len(got), len(before)+1)
	}
	body := eventBody("plain", created.ID, "go", `{"a":1}`)
	sent := same("event", s.atOnce(t, copies, s.ann.posting(root+"/event", body, key))).record(t)
	if len(sent.History) != 2 {
		t.Errorf("history: got %d entries, want 2", len(sent.History))
	}
	s.unchanged(t, sent)
}

func manyKeys(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	send := func(i int) answer {
		return s.ann.event(t, "plain", r.ID, "go", fmt.Sprintf(`{"i":%d}`, i), fmt.Sprintf("Idempotency-Key: many-%d", i))
	}
	var first []answer
	for i := range 100 {
		first = append(first, send(i))
	}
	for i := range first {
		wantRepeat(t, fmt.Sprint("event ", i), send(i), first[i])
	}
}

func refusedLeavesKey(t *testing.T, s *scene) {
	r := s.ann.create(t, "rejecting", "").record(t)
	const key = "Idempotency-Key: refused-first"
	wantFault(t, s.ann.event(t, "rejecting", r.ID, "back", "", key), 409, "EventNotAllowed")
	s.ann.event(t, "rejecting", r.ID, "go", "").record(t)
	if got := s.ann.event(t, "rejecting", r.ID, "back", "", key).record(t); len(got.History) != 3 {
		t.Errorf("history: got %d entries, want 3", len(got.History))
	}
	wantFault(t, s.ann.create(t, "small", `{"svcPublic":{"size":10}}`, key), 403, "AccessDenied")
	s.ann.create(t, "small", `{"svcPublic":{"size":1}}`, key).record(t)
}

func ignoredRepeats(t *testing.T, s *scene) {
	r := s.ann.create(t, "ignoring", "").record(t)
	const key = "Idempotency-Key: ignored"
	first := s.ann.event(t, "ignoring", r.ID, "back", "", key)
	first.record(t)
	moved := s.ann.event(t, "ignoring", r.ID, "go", "").record(t)
	wantRepeat(t, "ignored", s.ann.event(t, "ignoring", r.ID, "back", "", key), first)
	s.unchanged(t, moved)
}

func repeatBeforePrecondition(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	const key = "Idempotency-Key: with-match"
	first := s.ann.event(t, "plain", r.ID, "go", "", key, `If-Match: "1"`)
	first.record(t)
	wantRepeat(t, "the same If-Match", s.ann.event(t, "plain", r.ID, "go", "", key, `If-Match: "1"`), first)
	minimal := s.ann.event(t, "plain", r.ID, "go", "", key, "Prefer: return=minimal")
	if got := minimal.record(t); got.History != nil || minimal.header.Get("ETag") != `"2"` {
		t.Errorf("a minimal repeat: got %s %s", minimal.header.Get("ETag"), got.text)
	}
}

func twoKeys(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	body := strings.Replace(eventBody("plain", r.ID, "go", ""), `"name"`, `"id":"one","name"`, 1)
	wantFault(t, s.ann.post(t, root+"/event", body, "Idempotency-Key: two"), 400, "InvalidContent")
	wantFault(t, s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: a", "Idempotency-Key: b"), 400, "InvalidContent")
	s.unchanged(t, r)
}
