package gateway_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// TestInterfaceWatch holds what a stream shows. What is heard while events, stops and
// slow readers come between is held by the tests of actors/watch.
func TestInterfaceWatch(t *testing.T) { runLines(t, watchLines()) }

func watchLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Watch streams"`, "one instance: each entry with where it led to", watchInstance},
		{`gateway/INTERFACE.md, "Watch streams"`, "a workflow: the entries of all instances, to every watcher", watchWorkflow},
		{`gateway/INTERFACE.md, "Watch streams"`, "filter looks at the instance as the entry left it", watchFilter},
		{`gateway/INTERFACE.md, "Watch streams"`, "refusals are ordinary answers", watchRefusals},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "Last-Event-ID goes on where an instance was left", watchInstanceAgain},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "Last-Event-ID goes on where a workflow was left", watchWorkflowAgain},
		{`gateway/INTERFACE.md, "Rights of a watcher"`, "what may not be read is not shown", watchByRight},
		{`gateway/INTERFACE.md, "Rights of a watcher"`, "ends with its credential, or when its owner may do something else", watchEndsWithCredential},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "watching, a page of another site does not get in", watchCrossSite},
		{`gateway/INTERFACE.md, "HEAD"`, "a stream: HEAD answers the header and ends", watchHead},
	}
}

func watchInstance(t *testing.T, s *scene) {
	r, other := s.ann.Create(t, "order", "").Record(t), s.ann.Create(t, "order", "").Record(t)
	l := s.bob.listen(t, "order/"+r.ID)
	s.ann.Event(t, "order", other.ID, "submit", "").Record(t)
	s.ann.Event(t, "order", r.ID, "ping", "").Record(t) // ignored: 200, no entry
	s.ann.Event(t, "order", r.ID, "ship", "").WantStatus(t, 409)
	for _, event := range []string{"note", "submit", "submit", "pay"} { // one leads nowhere
		l.wantEntry(t, s.ann.Event(t, "order", r.ID, event, `{"x":"`+event+`"}`).Record(t))
	}
	l.wantEntry(t, s.bob.Event(t, "order", r.ID, "approve", "").Record(t))
}

func watchWorkflow(t *testing.T, s *scene) {
	before := s.ann.Create(t, "codes", "").Record(t)
	listeners := []*listener{s.ann.listen(t, "codes"), s.eve.listen(t, "codes?filter=")}
	expect := func(r record) {
		t.Helper()
		for _, l := range listeners {
			l.wantEntry(t, r)
		}
	}
	expect(s.ann.Create(t, "codes", "").Record(t))
	keyed := s.bob.Create(t, "codes", "", "Idempotency-Key: watched").Record(t)
	expect(keyed)
	s.bob.Create(t, "codes", "", "Idempotency-Key: watched").Record(t) // the same again
	s.ann.Create(t, "plain", "").Record(t)                             // another workflow
	expect(s.ann.Event(t, "codes", keyed.ID, "next", "").Record(t))
	expect(s.ann.Event(t, "codes", before.ID, "other", "").Record(t))
	if one, two := listeners[0].id, listeners[1].id; one != two && *nodes == 1 { // NB: each node has its own
		t.Errorf("the ids of the same event are %q and %q", one, two)
	}
}

func watchFilter(t *testing.T, s *scene) {
	inB := s.bob.listen(t, "plain?"+filterOf(`{"states.nodeId":"b"}`))
	private := s.adm.listen(t, "plain?"+filterOf(`{"svcPrivate.x":1}`))
	small := s.ann.Create(t, "plain", `{"svcPublic":{"n":1}}`).Record(t)
	one := s.bob.listen(t, "plain/"+small.ID+"?"+filterOf(`{"svcPublic.n":{"$gte":10}}`))
	big := s.ann.Create(t, "plain", `{"svcPrivate":{"x":1}}`).Record(t)
	inB.wantEntry(t, s.ann.Event(t, "plain", small.ID, "go", "").Record(t))
	one.wantEntry(t, s.ann.Event(t, "plain", small.ID, "go", `{"n":11}`).Record(t))
	again := s.ann.Event(t, "plain", big.ID, "go", "").Record(t)
	inB.wantEntry(t, again)
	private.wantEntry(t, big)
	private.wantEntry(t, again)
}

func watchRefusals(t *testing.T, s *scene) {
	mine := s.ann.Create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).Record(t)
	vault := s.ann.Create(t, "vault", "").Record(t)
	get := func(u user, path string) answer { return u.Get(t, wiretest.Root+"/watch/"+path) }
	get(s.eve, "vault").WantFault(t, 403, "AccessDenied")
	wantSameAnswer(t, get(s.eve, "vault/"+nowhere), get(s.eve, "vault/"+vault.ID))
	missing := get(s.ann, "missing")
	missing.WantFault(t, 404, "NotFound")
	for _, a := range []answer{get(s.bob, "mine/"+mine.ID), get(s.bob, "mine/"+nowhere), get(s.ann, "plain/"+mine.ID), get(s.ann, "plain/"), get(s.ann, "-plain"), get(s.ann, "mine/"+mine.ID+"/x")} {
		wantSameAnswer(t, a, missing)
	}
	s.ann.refusesQuery(t, wiretest.Root+"/watch/plain", "filter=%7B%7D&filter=%7B%7D", "limit=1", "x", "filter=%zz", "filter=%7B%7D;x=1", filterOf(`{"svcHistory.user":"ann"}`))
	for _, headers := range [][]string{
		{"Last-Event-ID: a b"}, {"Last-Event-ID: " + strings.Repeat("x", 8<<10+1)}, {"Last-Event-ID: ü"}, {"Last-Event-ID: 1", "Last-Event-ID: 1"},
	} {
		s.ann.with(headers...).refuses(t, 400, "InvalidContent", wiretest.Root+"/watch/plain")
	}
}

func watchInstanceAgain(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
	l := s.bob.listen(t, "plain/"+r.ID)
	l.wantEntry(t, s.ann.Event(t, "plain", r.ID, "go", "").Record(t))
	for range 3 {
		r = s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
	}
	l = s.bob.listen(t, "plain/"+r.ID, "last-event-id: "+l.id)
	for n := 3; n <= 5; n++ {
		l.wantEntryAt(t, r, n)
	}
	// Where nothing was missed, nothing comes; an empty id is none.
	again, empty := s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: "+l.id), s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: ")
	r = s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
	again.wantEntry(t, r)
	empty.wantEntry(t, r)
	// In front of the first entry of an instance stands everything.
	l = s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: 0")
	for n := range r.History {
		l.wantEntryAt(t, r, n+1)
	}
}

func watchWorkflowAgain(t *testing.T, s *scene) {
	bob := s.bob // at another node each time, in a cluster
	l := bob.listen(t, "ignoring")
	r := s.ann.Create(t, "ignoring", "").Record(t)
	l.wantEntry(t, r)
	id := l.id
	missed := s.ann.Create(t, "ignoring", "").Record(t)
	r = s.ann.Event(t, "ignoring", r.ID, "go", "").Record(t)
	l = bob.listen(t, "ignoring", "Last-Event-ID: "+id)
	l.wantEntry(t, missed)
	l.wantEntry(t, r)
	// The id of a stream with another filter goes on as well.
	bob.listen(t, "ignoring?"+filterOf(`{"_id":"`+r.ID+`"}`), "Last-Event-ID: "+id).wantEntry(t, r)
	for _, id := range []string{"x", "1-1", strings.Repeat("9", 8<<10)} {
		for _, path := range []string{"ignoring", "ignoring/" + r.ID} {
			l := s.bob.listen(t, path, "Last-Event-ID: "+id)
			l.wantLost(t)
			event := map[string]string{"b": "back", "a": "go"}[r.States[0].NodeID]
			r = s.ann.Event(t, "ignoring", r.ID, event, "").Record(t)
			l.wantEntry(t, r)
		}
	}
}

func watchByRight(t *testing.T, s *scene) {
	bobs := s.adm.Create(t, "mine", `{"svcPublic":{"owner":"bob"}}`).Record(t)
	ann, bob, eve, onlyBobs := s.ann.listen(t, "mine"), s.bob.listen(t, "mine"), s.eve.listen(t, "mine"), s.bob.listen(t, "mine/"+bobs.ID)
	ann.wantEntry(t, s.adm.Create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).Record(t))
	bobs = s.bob.Event(t, "mine", bobs.ID, "give", `{"note":1}`).Record(t)
	bob.wantEntry(t, bobs)
	onlyBobs.wantEntry(t, bobs)
	// Whoever gives it away does not hear of it, nor of what comes then.
	ann.wantEntry(t, s.bob.Event(t, "mine", bobs.ID, "give", `{"owner":"ann"}`).Record(t))
	ann.wantEntry(t, s.ann.Event(t, "mine", bobs.ID, "give", `{"note":2}`).Record(t))
	back := s.ann.Event(t, "mine", bobs.ID, "give", `{"owner":"bob"}`).Record(t)
	bob.wantEntry(t, back)
	onlyBobs.wantEntry(t, back)
	eve.wantEntry(t, s.adm.Create(t, "mine", `{"svcPublic":{"owner":"eve"}}`).Record(t)) // and nothing before
}

// watchEndsWithCredential: a stream ends by itself, while nothing happens that it could tell.
func watchEndsWithCredential(t *testing.T, _ *scene) {
	s := sceneOf(startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}}))
	r := s.adm.Create(t, "plain", "").Record(t)
	var open []*listener
	listen := func() {
		t.Helper()
		open = []*listener{s.ann.listen(t, "plain/"+r.ID), s.ann.listen(t, "plain"), s.ann.listenToTasks(t)}
	}
	over := func(what string) {
		t.Helper()
		for n, l := range open {
			lines, err := l.block()
			if *nodes == 1 && (err != nil || len(lines) < 2 || lines[0] != "event: lost") { // NB: elsewhere the node between may be the first to know
				t.Errorf("%s, stream %d: got %q and %v, want to read again", what, n, lines, err)
			}
			for err == nil {
				_, err = l.block()
			}
			assert.ErrorIs(t, err, io.EOF, "%s, stream %d", what, n)
		}
	}
	change := func(from, to string) {
		t.Helper()
		s.Write("identity.yaml", strings.Replace(wiretest.People, from, to, 1))
	}
	for _, ann := range []string{"roles: [clerk], privileges: [mod-workflows]", "roles: [clerk, approver]", "roles: []"} {
		listen()
		change("name: Ann, roles: [clerk]", "name: Ann, "+ann)
		over(ann)
	}
	change("", "")
	listen()
	change("name: Bob", "name: Bobby") // whom the pages of others name
	over("a name")
	listen()
	change("name: Ann,", "name: Ann, disabled: true,")
	over("disabled")
	s.ann.Get(t, wiretest.Root+"/watch/plain/"+r.ID).WantFault(t, 401, "Unauthorized")
	change("", "")
	listen()
	id, _, _ := strings.Cut(strings.TrimPrefix(s.ann.Credential[0], "Authorization: svc.token "), ".")
	s.ChangeIdentities(func(i identity.Identities) error { return i.Revoke(t.Context(), identity.Token, id) })
	over("revoked")
	s.ann.Get(t, wiretest.Root+"/watch/plain/"+r.ID).WantFault(t, 401, "Unauthorized")
	assert.Zero(t, s.metrics(func(m gateway.Metrics) uint64 { return m.Cut }), "metrics")
}

func watchCrossSite(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
	ann, session := s.desk("ann"), s.withCookie("ses_aaaaaaaaaaaaaaaa."+strings.Repeat("A", 43))
	paths := []string{wiretest.Root + "/watch/plain", wiretest.Root + "/watch/plain/" + r.ID}
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
		ann.with(header).refuses(t, 403, "AccessDenied", paths...)
		session.with(header).refuses(t, 403, "AccessDenied", paths...)
		s.Send(t, request{Method: "HEAD", Path: paths[0], Headers: ann.with(header).Credential}).WantStatus(t, 403)
	}
	listeners := []*listener{
		ann.listen(t, "plain/"+r.ID, "Sec-Fetch-Site: same-origin", "Accept: text/event-stream"), ann.listen(t, "plain", "Sec-Fetch-Site: none"), ann.listen(t, "plain"),
		s.ann.listen(t, "plain", "Sec-Fetch-Site: cross-site"), // no page sends a token
	}
	r = s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
	for _, l := range listeners {
		l.wantEntry(t, r)
	}
}

func watchHead(t *testing.T, s *scene) {
	a := s.Send(t, request{Method: "HEAD", Path: wiretest.Root + "/watch/plain", Headers: s.ann.Credential})
	assert.True(t, a.Status == 200 && a.Body == "" && a.Header.Get("Content-Type") == "text/event-stream", "%v %v %v", a.Status, a.Body, a.Header.Get("Content-Type"))
	s.Send(t, request{Method: "HEAD", Path: wiretest.Root + "/watch/vault", Headers: s.eve.Credential}).WantStatus(t, 403)
}
