package endtoend

import (
	"strings"
	"testing"
	"time"
)

func TestInterfaceWatch(t *testing.T) { runLines(t, watchLines()) }

func watchLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Watch streams"`, "one instance: each entry with where it led to", watchInstance},
		{`gateway/INTERFACE.md, "Watch streams"`, "a workflow: the entries of all instances", watchWorkflow},
		{`gateway/INTERFACE.md, "Watch streams"`, "each watcher hears the same", watchTogether},
		{`gateway/INTERFACE.md, "Watch streams"`, "filter looks at the instance as the entry left it", watchFilter},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "Last-Event-ID goes on where an instance was left", watchInstanceAgain},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "Last-Event-ID goes on where a workflow was left", watchWorkflowAgain},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "Last-Event-ID that is nobody's: lost, then the present", watchFromNowhere},
		{`gateway/INTERFACE.md, "Resuming a stream"`, "after a restart an instance is made up for", watchAfterRestart},
		{`gateway/INTERFACE.md, "Rights of a watcher"`, "what may not be read is not shown", watchByRight},
		{`gateway/INTERFACE.md, "Watch streams"`, "refusals are ordinary answers", watchRefusals},
		{`gateway/INTERFACE.md, "Watch streams"`, "an ignored event is no entry", watchIgnored},
		{`gateway/INTERFACE.md, "How a stream ends"`, "ends when the program is stopped", watchEndsAtStop},
		{`gateway/INTERFACE.md, "How a stream ends"`, "ends with its credential", watchEndsWithCredential},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "watching, a page of another site does not get in", watchCrossSite},
		{`gateway/INTERFACE.md, "HEAD"`, "a stream: HEAD answers the header and ends", watchHead},
	}
}

func watchInstance(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	other := s.ann.create(t, "order", "").record(t)
	l := s.bob.listen(t, "order/"+r.ID)
	s.ann.event(t, "order", other.ID, "submit", "").record(t)
	for _, event := range []string{"note", "submit", "submit", "pay"} { // one leads nowhere
		l.wantEntry(t, s.ann.event(t, "order", r.ID, event, `{"x":"`+event+`"}`).record(t))
	}
	l.wantEntry(t, s.bob.event(t, "order", r.ID, "approve", "").record(t))
}

func watchWorkflow(t *testing.T, s *scene) {
	before := s.ann.create(t, "codes", "").record(t)
	l := s.eve.listen(t, "codes")
	one := s.ann.create(t, "codes", "").record(t)
	l.wantEntry(t, one)
	two := s.bob.create(t, "codes", "", "Idempotency-Key: watched").record(t)
	l.wantEntry(t, two)
	s.bob.create(t, "codes", "", "Idempotency-Key: watched").record(t) // the same again
	s.ann.create(t, "plain", "").record(t)                             // another workflow
	l.wantEntry(t, s.ann.event(t, "codes", two.ID, "next", "").record(t))
	l.wantEntry(t, s.ann.event(t, "codes", before.ID, "next", "").record(t))
	l.wantEntry(t, s.ann.event(t, "codes", one.ID, "other", "").record(t))
}

func watchTogether(t *testing.T, s *scene) {
	listeners := []*listener{s.ann.listen(t, "nested"), s.bob.listen(t, "nested"), s.eve.listen(t, "nested")}
	const instances, events = 5, 20
	var ids []string
	for range instances {
		ids = append(ids, s.ann.create(t, "nested", "").record(t).ID)
	}
	for n := range events {
		requests := []ask{}
		for _, id := range ids {
			requests = append(requests, s.ann.posting(root+"/event", eventBody("nested", id, "deeper", "")))
		}
		for _, request := range requests {
			if a := s.send(t, request); a.status != 200 {
				t.Fatalf("event %d: got %d %s", n, a.status, a.body)
			}
		}
	}
	var first []told
	for i, l := range listeners {
		next := map[string]int{}
		for n := range instances * (1 + events) {
			got := l.entry(t)
			if next[got.instance]++; got.sequence != next[got.instance] {
				t.Fatalf("listener %d: got entry %d of %s, want %d: the order of an instance is that of its history", i, got.sequence, got.instance, next[got.instance])
			}
			if i == 0 {
				first = append(first, got)
			} else if got.place != first[n].place || got.instance != first[n].instance || got.sequence != first[n].sequence {
				t.Fatalf("listener %d hears %+v, the first heard %+v", i, got, first[n])
			}
		}
	}
}

func watchFilter(t *testing.T, s *scene) {
	of := func(filter string) *listener { return s.bob.listen(t, "plain?filter="+escape(filter)) }
	inB := of(`{"states.nodeId":"b"}`)
	large := of(`{"svcPublic.n":{"$gte":10}}`)
	private := s.adm.listen(t, "plain?filter="+escape(`{"svcPrivate.x":1}`))
	small := s.ann.create(t, "plain", `{"svcPublic":{"n":1}}`).record(t)
	big := s.ann.create(t, "plain", `{"svcPublic":{"n":10},"svcPrivate":{"x":1}}`).record(t)
	moved := s.ann.event(t, "plain", small.ID, "go", "").record(t)
	back := s.ann.event(t, "plain", small.ID, "go", `{"n":11}`).record(t)
	again := s.ann.event(t, "plain", big.ID, "go", `{"n":3}`).record(t)
	inB.wantEntry(t, moved)
	inB.wantEntry(t, again)
	large.wantEntry(t, big)
	large.wantEntry(t, back)
	private.wantEntry(t, big)
	private.wantEntry(t, again)
	r := s.ann.create(t, "plain", `{"svcPublic":{"n":1}}`).record(t)
	one := s.bob.listen(t, "plain/"+r.ID+"?filter="+escape(`{"svcPublic.n":2}`))
	s.ann.event(t, "plain", r.ID, "note", `{"n":5}`).record(t)
	one.wantEntry(t, s.ann.event(t, "plain", r.ID, "note", `{"n":2}`).record(t))
}

func watchInstanceAgain(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	l := s.bob.listen(t, "plain/"+r.ID)
	for range 3 {
		l.wantEntry(t, s.ann.event(t, "plain", r.ID, "go", "").record(t))
	}
	place := l.place
	_ = l.conn.Close()
	for range 5 {
		r = s.ann.event(t, "plain", r.ID, "go", "").record(t)
	}
	l = s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: "+place)
	for n := 5; n <= 9; n++ {
		l.wantEntryAt(t, r, n)
	}
	l.wantEntry(t, s.ann.event(t, "plain", r.ID, "go", "").record(t))
	// Where nothing was missed, nothing comes.
	l = s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: "+l.place)
	l.wantEntry(t, s.ann.event(t, "plain", r.ID, "go", "").record(t))
}

func watchWorkflowAgain(t *testing.T, s *scene) {
	l := s.bob.listen(t, "ignoring")
	r := s.ann.create(t, "ignoring", "").record(t)
	l.wantEntry(t, r)
	place := l.place
	_ = l.conn.Close()
	missed := s.ann.create(t, "ignoring", "").record(t)
	r = s.ann.event(t, "ignoring", r.ID, "go", "").record(t)
	l = s.bob.listen(t, "ignoring", "Last-Event-ID: "+place)
	l.wantEntry(t, missed)
	l.wantEntry(t, r)
	l.wantEntry(t, s.ann.event(t, "ignoring", r.ID, "back", "").record(t))
	// The place of another filter is a place as well.
	l = s.bob.listen(t, "ignoring?filter="+escape(`{"_id":"`+r.ID+`"}`), "Last-Event-ID: "+place)
	l.wantEntryAt(t, r, 2)
}

func watchFromNowhere(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, place := range []string{"x", "0", "-1", "1-1", "ffffffff-1", "99999999", "18446744073709551616", strings.Repeat("9", 255), "a-b-c"} {
		if place == "0" {
			continue // below
		}
		for _, path := range []string{"plain", "plain/" + r.ID} {
			l := s.bob.listen(t, path, "Last-Event-ID: "+place)
			l.wantLost(t)
			r = s.ann.event(t, "plain", r.ID, "go", "").record(t)
			l.wantEntry(t, r)
		}
	}
	// In front of the first entry of an instance stands everything.
	l := s.bob.listen(t, "plain/"+r.ID, "Last-Event-ID: 0")
	for n := range r.History {
		l.wantEntryAt(t, r, n+1)
	}
}

func watchAfterRestart(t *testing.T, _ *scene) {
	p := start(t, newHome(t, flows()))
	token := p.home.token("ann")
	ann := p.as(token)
	r := ann.create(t, "plain", "").record(t)
	instance, all := ann.listen(t, "plain/"+r.ID), ann.listen(t, "plain")
	r = ann.event(t, "plain", r.ID, "go", "").record(t)
	instance.wantEntry(t, r)
	all.wantEntry(t, r)
	r = ann.event(t, "plain", r.ID, "go", "").record(t)
	p = p.restart()
	ann = p.as(token)
	instance = ann.listen(t, "plain/"+r.ID, "Last-Event-ID: "+instance.place)
	instance.wantEntry(t, r)
	all = ann.listen(t, "plain", "Last-Event-ID: "+all.place)
	all.wantLost(t) // nothing says that nothing was missed
	r = ann.event(t, "plain", r.ID, "go", "").record(t)
	instance.wantEntry(t, r)
	all.wantEntry(t, r)
	p.stop()
}

func watchByRight(t *testing.T, s *scene) {
	bobs := s.adm.create(t, "mine", `{"svcPublic":{"owner":"bob"}}`).record(t)
	ann, bob, eve := s.ann.listen(t, "mine"), s.bob.listen(t, "mine"), s.eve.listen(t, "mine")
	onlyBobs := s.bob.listen(t, "mine/"+bobs.ID)
	anns := s.adm.create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).record(t)
	ann.wantEntry(t, anns)
	bobs = s.bob.event(t, "mine", bobs.ID, "give", `{"note":1}`).record(t)
	bob.wantEntry(t, bobs)
	onlyBobs.wantEntry(t, bobs)
	// Whoever gives it away does not hear of it, nor of what comes then.
	given := s.bob.event(t, "mine", bobs.ID, "give", `{"owner":"ann"}`).record(t)
	ann.wantEntry(t, given)
	ann.wantEntry(t, s.ann.event(t, "mine", bobs.ID, "give", `{"note":2}`).record(t))
	back := s.ann.event(t, "mine", bobs.ID, "give", `{"owner":"bob"}`).record(t)
	bob.wantEntry(t, back)
	onlyBobs.wantEntry(t, back)
	eves := s.adm.create(t, "mine", `{"svcPublic":{"owner":"eve"}}`).record(t)
	eve.wantEntry(t, eves) // and nothing before
}

func watchRefusals(t *testing.T, s *scene) {
	r := s.ann.create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).record(t)
	vault := s.ann.create(t, "vault", "").record(t)
	get := func(u user, path string, headers ...string) answer {
		return u.with(headers...).get(t, root+"/watch/"+path)
	}
	wantFault(t, get(s.eve, "vault"), 403, "AccessDenied")
	wantFault(t, get(s.eve, "vault/"+vault.ID), 403, "AccessDenied")
	wantSameAnswer(t, get(s.eve, "vault/"+nowhere), get(s.eve, "vault/"+vault.ID))
	missing := get(s.ann, "missing")
	wantFault(t, missing, 404, "NotFound")
	for name, a := range map[string]answer{
		"another's instance": get(s.bob, "mine/"+r.ID), "no instance": get(s.bob, "mine/"+nowhere), "of another workflow": get(s.ann, "plain/"+r.ID),
		"a strange id": get(s.ann, "plain/%2e%2e"), "an empty id": get(s.ann, "plain/"), "a strange workflow": get(s.ann, "-plain"),
	} {
		if reason := faultReason(a, 404, "NotFound"); reason != "" {
			t.Errorf("%s: %s", name, reason)
		}
		wantSameAnswer(t, a, missing)
	}
	for _, filter := range []string{`{`, `[]`, `{"a":1}`, `{"svcPublic.a":{"$where":1}}`, `{"svcPrivate.x":1}`, `{"svcHistory.user":"ann"}`} {
		if reason := faultReason(get(s.ann, "plain?filter="+escape(filter)), 400, "InvalidContent"); reason != "" {
			t.Errorf("filter %s: %s", filter, reason)
		}
	}
	for _, parameters := range []string{"filter=%7B%7D&filter=%7B%7D", "limit=1", "x", "filter=%zz", "filter={};x"} {
		if reason := faultReason(get(s.ann, "plain?"+parameters), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", parameters, reason)
		}
	}
	for _, headers := range [][]string{
		{"Last-Event-ID: a b"}, {"Last-Event-ID: " + strings.Repeat("x", 256)}, {"Last-Event-ID: ü"}, {"Last-Event-ID: 1", "Last-Event-ID: 1"},
	} {
		if reason := faultReason(get(s.ann, "plain", headers...), 400, "InvalidContent"); reason != "" {
			t.Errorf("%q: %s", headers, reason)
		}
	}
}

func watchIgnored(t *testing.T, s *scene) {
	r := s.ann.create(t, "ignoring", "").record(t)
	l := s.ann.listen(t, "ignoring/"+r.ID)
	s.ann.event(t, "ignoring", r.ID, "back", "").record(t) // ignored: 200, no entry
	l.wantEntry(t, s.ann.event(t, "ignoring", r.ID, "go", "").record(t))
	rejecting := s.ann.create(t, "rejecting", "").record(t)
	l = s.ann.listen(t, "rejecting")
	wantStatus(t, s.ann.event(t, "rejecting", rejecting.ID, "back", ""), 409)
	l.wantEntry(t, s.ann.event(t, "rejecting", rejecting.ID, "go", "").record(t))
}

func watchEndsAtStop(t *testing.T, _ *scene) {
	p := start(t, newHome(t, flows()))
	ann := p.as(p.home.token("ann"))
	r := ann.create(t, "plain", "").record(t)
	instance, all := ann.listen(t, "plain/"+r.ID), ann.listen(t, "plain")
	begun := time.Now()
	p.terminate()
	instance.wantEnd(t)
	all.wantEnd(t)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code: got %d, want 0", code)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the end took %v, though only watchers were left", took)
	}
	if !p.log.has(`"drained":true`) {
		t.Error("the log does not say that all accepted requests were answered")
	}
}

func watchEndsWithCredential(t *testing.T, s *scene) {
	token := s.home.token("ann")
	r := s.ann.create(t, "plain", "").record(t)
	l := s.as(token).listen(t, "plain/"+r.ID)
	l.wantEntry(t, s.ann.event(t, "plain", r.ID, "go", "").record(t))
	id, _, _ := strings.Cut(token, ".")
	wantCommand(t, "token", "revoke", "--home", s.home.dir, id)
	s.ann.event(t, "plain", r.ID, "go", "").record(t)
	l.wantEnd(t)
	wantFault(t, s.as(token).get(t, root+"/watch/plain/"+r.ID), 401, "Unauthorized")
}

func watchCrossSite(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	cookie := user{s.program, []string{"Cookie: session=" + s.home.session("ann")}}
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
		for _, path := range []string{"plain", "plain/" + r.ID} {
			if reason := faultReason(cookie.with(header).get(t, root+"/watch/"+path), 403, "AccessDenied"); reason != "" {
				t.Errorf("%s with %s: %s", path, header, reason)
			}
		}
	}
	l := cookie.listen(t, "plain/"+r.ID, "Sec-Fetch-Site: same-origin", "Accept: text/event-stream")
	l.wantEntry(t, s.ann.event(t, "plain", r.ID, "go", "").record(t))
}

func watchHead(t *testing.T, s *scene) {
	a := s.send(t, ask{method: "HEAD", path: s.base + root + "/watch/plain", headers: s.ann.credential})
	if a.status != 200 || a.body != "" || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %q %q, want 200 and the header of a stream", a.status, a.body, a.header.Get("Content-Type"))
	}
	a = s.send(t, ask{method: "HEAD", path: s.base + root + "/watch/vault", headers: s.eve.credential})
	wantStatus(t, a, 403)
}
