package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// TestInterfaceChanges holds the feed of changes. What comes while events, restarts and faults come between is held by the
// tests of actors/changefeed and actors/workflow.
func TestInterfaceChanges(t *testing.T) { runLines(t, changesLines()) }

func changesLines() []line {
	const feed = `gateway/INTERFACE.md, "The feed of changes"`
	return []line{
		{feed, "each entry behind the cursor, with where it led to", changesBehind},
		{feed, "of the workflows and instances that the caller may read", changesByRight},
		{feed, "an empty page comes when the wait is over, or there is something", changesAwaited},
		{feed, "parameters and cursors that cannot be", changesAreStrict},
		{feed, "the id of an event of a watch is a cursor", changesAndWatches},
	}
}

// changes asks for a page, and its cursor.
func (u user) changes(t testing.TB, parameters string) (texts []string, next string) {
	t.Helper()
	a := u.Get(t, strings.TrimSuffix(wiretest.Root+"/changes?"+parameters, "?"))
	a.WantStatus(t, 200)
	page := wiretest.Decode[struct {
		Changes []struct {
			WorkflowID string         `json:"workflowId"`
			InstanceID string         `json:"instanceId"`
			Sequence   int            `json:"sequence"`
			Entry      wiretest.Entry `json:"entry"`
			States     []struct {
				NodeID string `json:"nodeId"`
			} `json:"states"`
		} `json:"changes"`
		Next string `json:"next"`
	}](t, a.Body)
	for _, c := range page.Changes {
		texts = append(texts, fmt.Sprintf("%s/%s %d %q %v", c.WorkflowID, c.InstanceID, c.Sequence, c.Entry.TransitionEvent, c.Entry.EndState))
		if len(c.States) == 0 || c.States[0].NodeID != c.Entry.EndState[0] {
			t.Errorf("the states of %s are %v", texts[len(texts)-1], c.States)
		}
	}
	assert.NotEmpty(t, page.Next, "there is no cursor")
	return texts, page.Next
}

// all follows the cursor until nothing comes.
func (u user) all(t testing.TB, parameters, since string) (texts []string, next string) {
	t.Helper()
	for {
		got, end := u.changes(t, parameters+"since="+since)
		if texts = append(texts, got...); len(got) == 0 {
			slices.Sort(texts)
			return texts, end
		}
		since = end
	}
}

func wantTexts(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	assert.True(t, slices.Equal(got, want), "%s: got %q, want %q", what, got, want)
}

func changesBehind(t *testing.T, s *scene) {
	first, now := s.bob.changes(t, "workflowId=plain")
	wantTexts(t, "without a cursor", first)
	one, two := s.ann.Create(t, "plain", "").Record(t), s.ann.Create(t, "plain", "").Record(t)
	s.ann.Event(t, "plain", one.ID, "go", "").Record(t)
	want := []string{
		fmt.Sprintf(`plain/%s 1 "" [a]`, one.ID), fmt.Sprintf(`plain/%s 1 "" [a]`, two.ID), fmt.Sprintf(`plain/%s 2 "go" [b]`, one.ID),
	}
	for _, parameters := range []string{"workflowId=plain&", "workflowId=plain&limit=1&", "wait=0&workflowId=plain&limit=1000&"} {
		got, _ := s.bob.all(t, parameters, now)
		wantTexts(t, parameters, got, want...)
	}
	_, end := s.bob.all(t, "workflowId=plain&", now)
	s.ann.Event(t, "plain", two.ID, "go", "").Record(t)
	got, _ := s.bob.all(t, "workflowId=plain&", end)
	wantTexts(t, "behind the end", got, fmt.Sprintf(`plain/%s 2 "go" [b]`, two.ID))
	oldest, _ := s.bob.all(t, "workflowId=plain&", "0")
	for _, text := range append(want, got...) {
		assert.Contains(t, oldest, text, "from the oldest there is no")
	}
}

func changesByRight(t *testing.T, s *scene) {
	_, now := s.ann.changes(t, "")
	vault, plain := s.ann.Create(t, "vault", "").Record(t), s.ann.Create(t, "plain", "").Record(t)
	bobs := s.adm.Create(t, "mine", `{"svcPublic":{"owner":"bob"}}`).Record(t)
	has := func(u user, id string) bool {
		got, _ := u.all(t, "", now)
		return slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, id) })
	}
	for _, c := range []struct {
		name string
		of   user
		id   string
		want bool
	}{
		{"a workflow that all may read", s.eve, plain.ID, true},
		{"a workflow that the caller may read", s.ann, vault.ID, true},
		{"a workflow that the caller may not read", s.eve, vault.ID, false},
		{"an instance that the caller may read", s.bob, bobs.ID, true},
		{"an instance that the caller may not read", s.eve, bobs.ID, false},
	} {
		assert.Equal(t, c.want, has(c.of, c.id), "%s: it is in the feed", c.name)
	}
	s.eve.Get(t, wiretest.Root+"/changes?workflowId=vault").WantFault(t, 403, "AccessDenied")
	s.ann.Get(t, wiretest.Root+"/changes?workflowId=missing").WantFault(t, 404, "NotFound")
	s.ann.Get(t, wiretest.Root+"/changes?workflowId=-plain").WantFault(t, 404, "NotFound")
}

func changesAwaited(t *testing.T, s *scene) {
	_, now := s.bob.changes(t, "")
	got, next := s.bob.changes(t, "workflowId=codes&wait=1&since="+now)
	wantTexts(t, "nothing", got)
	type page struct{ texts []string }
	done := make(chan page, 1)
	go func() {
		texts, _ := s.bob.changes(t, "workflowId=codes&wait=30&since="+next)
		done <- page{texts}
	}()
	r := s.ann.Create(t, "codes", "").Record(t)
	p := <-done
	assert.True(t, len(p.texts) == 1 && strings.HasPrefix(p.texts[0], "codes/"+r.ID+" 1 "), "got %q, want the first entry of %s", p.texts, r.ID)
}

func changesAreStrict(t *testing.T, s *scene) {
	_, now := s.ann.changes(t, "")
	list := s.ann.page(t, "plain", "limit=1").next
	s.ann.refusesQuery(t, wiretest.Root+"/changes",
		"since=", "since=x", "since=00", "since="+now+"A", "since="+now[1:], "since="+escape(list), "since=%zz", "since=a%0Ab", "since=0&since=0",
		"limit=", "limit=0", "limit=1001", "limit=01", "wait=", "wait=-1", "wait=31", "wait=01", "wait=1s", "wait=+1", "workflowId=", "cursor="+now, "filter=%7B%7D")
	s.ann.refusesQuery(t, wiretest.Root+"/instances/plain", "limit=2&cursor="+now)
	s.desk("ann").with("Sec-Fetch-Site: cross-site").refuses(t, 403, "AccessDenied", wiretest.Root+"/changes")
	s.ann.Post(t, wiretest.Root+"/changes", "{}").WantStatus(t, 405)
}

func changesAndWatches(t *testing.T, s *scene) {
	l := s.bob.listen(t, "plain")
	r := s.ann.Create(t, "plain", "").Record(t)
	l.wantEntry(t, r)
	s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
	got, next := s.bob.all(t, "workflowId=plain&", l.id)
	wantTexts(t, "behind an event", got, fmt.Sprintf(`plain/%s 2 "go" [b]`, r.ID))
	again := s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
	s.bob.listen(t, "plain", "Last-Event-ID: "+next).wantEntry(t, again)
}
