package endtoend

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
)

// busyIsNotApplied asks more of one instance at once than it may be asked. To
// make that certain, the program is stopped while the requests are sent, and
// the limit is low.
func busyIsNotApplied(t *testing.T, _ *scene) {
	const limit, copies = 4, 64
	h := newHome(t, map[string]string{
		"workflows/plain.yaml": plainFlow,
		"troupe.yaml":          fmt.Sprintf("instanceInFlightMax: %d\n", limit),
	})
	p := start(t, h)
	ann := p.as(h.token("ann"))
	r := ann.create(t, "plain", "").record(t)
	requests := make([]ask, copies)
	for i := range requests {
		key := fmt.Sprintf("Idempotency-Key: flood-%d", i)
		requests[i] = ann.posting(root+"/event", eventBody("plain", r.ID, "go", ""), key)
	}
	applied, refused := map[int]bool{}, 0
	for range 5 { // one round is almost always enough
		for i, a := range p.whileStopped(t, requests) {
			if a.status == 200 {
				applied[i] = true
				continue
			}
			if reason := faultReason(a, 429, "Busy"); reason != "" { // and Retry-After
				t.Fatal(reason)
			}
			refused++
			if applied[i] {
				t.Errorf("request %d was answered before and is refused now", i)
			}
		}
		got := ann.load(t, "plain", r.ID).record(t)
		if len(got.History) != 1+len(applied) {
			t.Fatalf("history: got %d entries, want %d: 1 and what was answered with 200", len(got.History), 1+len(applied))
		}
		if refused > 0 {
			break
		}
		requests = requests[:0]
	}
	if refused == 0 {
		t.Errorf("%d requests at once were all taken, with a limit of %d", copies, limit)
	}
	p.stop()
}

// quotasAreOneUsers gives users one event and one create in a long time. A person's
// forms have no such bounds.
func quotasAreOneUsers(t *testing.T, _ *scene) {
	h := newHome(t, map[string]string{
		"workflows/plain.yaml": plainFlow,
		"troupe.yaml":          "quota: {eventsPerSecond: 0.0001, createsPerSecond: 0.0001}\n",
	})
	p := start(t, h)
	ann, bob := p.as(h.token("ann")), p.as(h.token("bob"))
	id := ann.create(t, "plain", "").record(t).ID
	for _, u := range []user{ann, bob} {
		if a := u.event(t, "plain", id, "go", ""); a.status != 200 {
			t.Errorf("the first event of a user: got %d %s", a.status, a.body)
		}
		if reason := faultReason(u.event(t, "plain", id, "go", ""), 429, "Busy"); reason != "" {
			t.Error("the second event: " + reason)
		}
	}
	if reason := faultReason(ann.create(t, "plain", ""), 429, "Busy"); reason != "" {
		t.Error("the second create: " + reason)
	}
	if got := ann.load(t, "plain", id).record(t); len(got.History) != 3 {
		t.Errorf("%d entries, want 3: what was refused was not applied", len(got.History))
	}
	p.stop()
}

// whileStopped sends all requests while the process is stopped, lets it go on,
// and returns the answers.
func (p *program) whileStopped(t testing.TB, requests []ask) []answer {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := sync.OnceValue(func() error { return p.cmd.Process.Signal(syscall.SIGCONT) })
	defer func() { _ = goOn() }()
	connections := make([]*net.TCPConn, len(requests))
	for i, request := range requests {
		conn, err := p.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		connections[i] = conn
		if _, err := conn.Write(request.text("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := goOn(); err != nil {
		t.Fatal(err)
	}
	answers := make([]answer, len(requests))
	for i, conn := range connections {
		a, err := readAnswer(bufio.NewReader(conn), requests[i].method)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		answers[i] = a
	}
	return answers
}
