package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
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

// retryKey is the header line of an idempotency key.
func retryKey(k string) string { return "Idempotency-Key: " + k }

// wantRepeat demands the first answer again: status, body and entity tag.
func wantRepeat(t testing.TB, what string, got, first answer) {
	t.Helper()
	first.WantStatus(t, 200)
	assert.True(t, got.Status == first.Status && got.Body == first.Body && got.Header.Get("ETag") == first.Header.Get("ETag"),
		"%s: got %d %s %s, want the first answer %s %s", what, got.Status, got.Header.Get("ETag"), got.Body, first.Header.Get("ETag"), first.Body)
}

// wantInstances demands that a workflow has so many instances more than before.
func (s *scene) wantInstances(t testing.TB, workflow string, before, more int) {
	t.Helper()
	assert.Len(t, s.instances(t, workflow), before+more, workflow)
}

func repeats(t *testing.T, s *scene) {
	before := len(s.instances(t, "order"))
	content := `{"svcPublic":` + torture + `}`
	created := s.ann.Create(t, "order", content, retryKey("create-1"))
	r := created.Record(t)
	var sent []answer
	send := func(i int, headers ...string) answer { // moves, is recorded, is ignored
		return s.ann.Event(t, "order", r.ID, []string{"pay", "pay", "ping", "submit"}[i], `{"n":9007199254740993}`, append(headers, retryKey(fmt.Sprint("k", i)))...)
	}
	for i := range 4 {
		sent = append(sent, send(i))
	}
	for range 2 {
		wantRepeat(t, "create", s.ann.Create(t, "order", content, retryKey("create-1")), created)
		for i := range sent {
			wantRepeat(t, fmt.Sprint("event ", i), send(i), sent[i])
			wantRepeat(t, fmt.Sprint("event ", i), send(i, `If-Match: "1"`), sent[i])
		}
		s.ann.Event(t, "order", r.ID, "note", `{"other":1}`).Record(t)
	}
	minimal := send(0, "Prefer: return=minimal")
	got := minimal.Record(t)
	assert.True(t, got.History == nil && minimal.Header.Get("ETag") == `"2"`, "a minimal repeat: got %s %s", minimal.Header.Get("ETag"), got.Text)
	assert.Len(t, s.ann.Load(t, "order", r.ID).Record(t).History, 6, "history")
	s.wantInstances(t, "order", before, 1)
}

func repeatsWhenGone(t *testing.T, s *scene) {
	created := s.ann.Create(t, "guide", "", retryKey("before-it-went"))
	r := created.Record(t)
	sent := s.ann.Event(t, "guide", r.ID, "leave", "", retryKey("before-it-went"))
	s.Write("workflows/guide.yaml", "")
	defer s.Write("workflows/guide.yaml", flows()["workflows/guide.yaml"])
	s.ann.Create(t, "guide", "").WantFault(t, 404, "NotFound")
	wantRepeat(t, "create", s.ann.Create(t, "guide", "", retryKey("before-it-went")), created)
	wantRepeat(t, "event", s.ann.Event(t, "guide", r.ID, "leave", "", retryKey("before-it-went")), sent)
}

// withID is the body of an event go at plain with an id.
func withID(instance, id string) string {
	return strings.Replace(wiretest.EventBody("plain", instance, "go", ""), `"name"`, `"id":`+id+`,"name"`, 1)
}

func keyForms(t *testing.T, s *scene) {
	longest := strings.Repeat("~", 254) + "!"
	for _, forms := range [][2]string{{"k1", `"k1"`}, {`a"b\c`, `"a\"b\\c"`}, {longest, `"` + longest + `"`}} {
		first := s.ann.Create(t, "plain", "", retryKey(forms[0]))
		wantRepeat(t, forms[1], s.ann.Create(t, "plain", "", retryKey(forms[1])), first)
		r := first.Record(t)
		sent := s.ann.Event(t, "plain", r.ID, "go", "", retryKey(forms[1]))
		wantRepeat(t, forms[0], s.ann.Event(t, "plain", r.ID, "go", "", retryKey(forms[0])), sent)
	}
	r := s.ann.Create(t, "plain", "").Record(t)
	byID := s.ann.Post(t, wiretest.Root+"/event", withID(r.ID, `"by-id"`))
	wantRepeat(t, "event.id", s.ann.Post(t, wiretest.Root+"/event", withID(r.ID, `"by-id"`)), byID)
	wantRepeat(t, "event.id beside the header", s.ann.Post(t, wiretest.Root+"/event", withID(r.ID, `"by-id"`), retryKey(`"by-id"`)), byID)
}

func wrongKeys(t *testing.T, s *scene) {
	long := strings.Repeat("k", 256)
	r := s.ann.Create(t, "plain", "").Record(t)
	before := len(s.instances(t, "plain"))
	refused := func(what string, a answer) {
		assert.Empty(t, a.FaultReason(400, "InvalidContent"), what)
	}
	for _, k := range []string{"", `""`, long, "a b", `"a b"`, "ä", `"open`, `"`, "a\tb", `"a"b`, `"k1";a=1`, `"k1\"`, `"k\1"`, `"a"b"`} {
		refused("create with the key "+k, s.ann.Create(t, "plain", "", retryKey(k)))
		refused("event with the key "+k, s.ann.Event(t, "plain", r.ID, "go", "", retryKey(k)))
	}
	refused("the header twice", s.ann.Event(t, "plain", r.ID, "go", "", retryKey("k1"), retryKey("k1")))
	refused("event.id and another key", s.ann.Post(t, wiretest.Root+"/event", withID(r.ID, `"one"`), retryKey("two")))
	for _, id := range []string{`""`, `"a b"`, `"` + long + `"`, `7`, `null`} {
		refused("event.id "+id, s.ann.Post(t, wiretest.Root+"/event", withID(r.ID, id)))
	}
	s.unchanged(t, r)
	s.wantInstances(t, "plain", before, 0)
}

func keyWithOtherBody(t *testing.T, s *scene) {
	k := retryKey("other-body")
	created := s.ann.Create(t, "plain", `{"svcPublic":{"a":1}}`, k)
	r := created.Record(t)
	wantRepeat(t, "other white space", s.ann.Create(t, "plain", ` { "svcPublic" : {"a" : 1} } `, k), created)
	s.ann.Create(t, "plain", `{"svcPublic":{"a":2}}`, k).WantFault(t, 422, "KeyReused")
	s.ann.Create(t, "codes", `{"svcPublic":{"a":1}}`, k).WantFault(t, 422, "KeyReused")
	after := s.ann.Event(t, "plain", r.ID, "go", "", k).Record(t)
	s.ann.Event(t, "plain", r.ID, "go", `{}`, k).WantFault(t, 422, "KeyReused")
	s.ann.Event(t, "plain", r.ID, "note", "", k).WantFault(t, 422, "KeyReused")
	s.unchanged(t, after)
}

func repeatsAtOnce(t *testing.T, s *scene) {
	same := func(path, body string) record {
		answers := s.AtOnce(t, 64, s.ann.Posting(wiretest.Root+path, body, retryKey("at-once")))
		for i, a := range answers {
			wantRepeat(t, fmt.Sprint(path, ", copy ", i), a, answers[0])
		}
		return answers[0].Record(t)
	}
	before := len(s.instances(t, "plain"))
	created := same("/create", wiretest.CreateBody("plain", ""))
	s.wantInstances(t, "plain", before, 1)
	sent := same("/event", wiretest.EventBody("plain", created.ID, "go", `{"a":1}`))
	assert.Len(t, sent.History, 2, "history")
	s.unchanged(t, sent)
}

func manyKeys(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
	var first []answer
	for i := range 128 {
		a := s.ann.Event(t, "plain", r.ID, "go", fmt.Sprintf(`{"i":%d}`, i%64), retryKey(fmt.Sprint("many-", i%64)))
		if first = append(first, a); i >= 64 {
			wantRepeat(t, fmt.Sprint("event ", i-64), a, first[i-64])
		}
	}
}

func refusedLeavesKey(t *testing.T, s *scene) {
	r := s.ann.Create(t, "rejecting", "").Record(t)
	s.ann.Event(t, "rejecting", r.ID, "back", "", retryKey("refused-first")).WantFault(t, 409, "EventNotAllowed")
	s.ann.Event(t, "rejecting", r.ID, "go", "").Record(t)
	assert.Len(t, s.ann.Event(t, "rejecting", r.ID, "back", "", retryKey("refused-first")).Record(t).History, 3, "history")
	s.ann.Create(t, "small", `{"svcPublic":{"size":10}}`, retryKey("refused-first")).WantFault(t, 403, "AccessDenied")
	s.ann.Create(t, "small", `{"svcPublic":{"size":1}}`, retryKey("refused-first")).Record(t)
}

func keyIsOfOneCaller(t *testing.T, s *scene) {
	first := s.ann.Create(t, "plain", "", retryKey("shared-by-two")).Record(t)
	assert.NotEqual(t, s.bob.Create(t, "plain", "", retryKey("shared-by-two")).Record(t).ID, first.ID)
	s.ann.Event(t, "plain", first.ID, "go", "", retryKey("shared-by-two")).Record(t)
	assert.Len(t, s.bob.Event(t, "plain", first.ID, "go", "", retryKey("shared-by-two")).Record(t).History, 3, "history")
}
