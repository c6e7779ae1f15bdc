package endtoend

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullDisk starts the program with more free space demanded than there can be. It
// must refuse to write, say so, and go on reading (persistence/PROMISES.md, "P4").
func fullDisk(t *testing.T, _ *scene) {
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow})
	p := start(t, h)
	token := h.token("ann")
	r := p.as(token).create(t, "plain", "", "Idempotency-Key: before").record(t)
	p.stop()
	p = launch(t, h, binary(), "--free-bytes-min", "1000000GiB")
	p.await("the port", readyMax, func() bool {
		a, err := p.try(ask{method: "GET", path: "/readyz"})
		return err == nil && (a.status == 200 || p.log.has(`"message":"ready"`))
	})
	u := p.as(token)
	for name, a := range map[string]answer{
		"create": u.create(t, "plain", ""), "event": u.event(t, "plain", r.ID, "go", ""), "readyz": u.get(t, "/readyz"),
	} {
		if reason := faultReason(a, 503, "Unavailable"); reason != "" { // and Retry-After
			t.Errorf("%s: %s", name, reason)
		}
	}
	for name, a := range map[string]answer{
		"instance": u.load(t, "plain", r.ID), "instances": u.query(t, "plain", ""), "choices": u.get(t, root+"/choices"), "livez": u.get(t, "/livez"),
	} {
		if a.status != 200 {
			t.Errorf("%s: got %d %s, want 200", name, a.status, a.body)
		}
	}
	p.stop()
	p = start(t, h)
	if got := p.as(token).load(t, "plain", r.ID).record(t); got.text != r.text {
		t.Errorf("after a refused event: got %s, want %s", got.text, r.text)
	}
	if got := p.as(token).query(t, "plain", "").items(t); len(got) != 1 {
		t.Errorf("after a refused create: got %d instances, want 1", len(got))
	}
	p.stop()
}

// outcomeUnknown lets commits take longer than they may, by stopping the process
// for a moment under load. Whoever is answered with 504 asks again with the same
// key, and at the end the ledger must balance.
func outcomeUnknown(t *testing.T, _ *scene) {
	h := newHome(t, map[string]string{"workflows/load.yaml": loadFlow})
	p := start(t, h)
	token := h.token("ann")
	p.stop() // what a start on new files and a command commit is not to take too long
	const commitWait = time.Second
	p = start(t, h, "--commit-wait-max", commitWait.String())
	address, err := p.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	var over atomic.Bool
	var done sync.WaitGroup
	for _, w := range newWorkers(32, l, token, seed(t)) {
		done.Go(func() {
			defer w.link.close()
			for !over.Load() || w.pending != nil {
				w.step(address)
			}
		})
	}
	finish := sync.OnceFunc(func() {
		over.Store(true)
		done.Wait()
	})
	defer finish()
	for round := 0; l.unknownAnswers() == 0 && round < 10; round++ { // one is almost always enough
		pause(50 * time.Millisecond)
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		pause(commitWait + commitWait/5)
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		pause(50 * time.Millisecond)
	}
	finish()
	t.Logf("acknowledged %d, answered with 504 %d", l.mu.acks, l.unknownAnswers())
	if l.unknownAnswers() == 0 {
		t.Error("no commit took too long: nothing was tried")
	}
	p.stop()
	wantOnlyAcknowledged(t, start(t, h), l, token)
}

// unknownAnswers is how many requests were answered with 504.
func (l *ledger) unknownAnswers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.unknown
}

// historyIsUnlimited makes a history that is larger than a record may be, and
// than what is kept in memory of it. Everything must work as with a short one.
func historyIsUnlimited(t *testing.T, s *scene) {
	const senders, events = 32, 400
	r := s.ann.create(t, "plain", "").record(t)
	address, err := s.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	body := eventBody("plain", r.ID, "go", `{"n":1}`)
	early := s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: early")
	var done sync.WaitGroup
	for range senders {
		done.Go(func() {
			var one link
			defer one.close()
			for range events {
				a, err := one.do(address, s.ann.posting(root+"/event", body, "Prefer: return=minimal"))
				if err != nil || a.status != 200 {
					t.Errorf("got %d %s (%v), want 200", a.status, clip(a.body), err)
					return
				}
			}
		})
	}
	done.Wait()
	const want = senders*events + 2
	a := s.ann.load(t, "plain", r.ID)
	got := a.record(t)
	if reason := checkHistory(got.History, got.States); reason != "" || len(got.History) != want || len(a.body) < 1<<20 {
		t.Errorf("got %d entries in %d bytes, want %d in more than 1 MiB; %s", len(got.History), len(a.body), want, reason)
	}
	last := s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: last")
	if got := last.record(t); len(got.History) != want+1 || last.header.Get("ETag") != fmt.Sprintf("%q", fmt.Sprint(want+1)) {
		t.Errorf("the next event: got %d entries and %s, want %d", len(got.History), last.header.Get("ETag"), want+1)
	}
	s.ann.event(t, "plain", r.ID, "note", "").record(t)
	wantRepeat(t, "the event before", s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: last"), last)
	wantRepeat(t, "the first event", s.ann.event(t, "plain", r.ID, "go", "", "Idempotency-Key: early"), early)
}
