package endtoend

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fill makes so many instances of plain with so much data each.
func (u user) fill(t *testing.T, instances, bytes int) {
	t.Helper()
	one := link{}
	defer one.close()
	address, err := u.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	request := u.posting(root+"/create", createBody("plain", `{"svcPublic":{"text":"`+strings.Repeat("x", bytes)+`"}}`), "Prefer: return=minimal")
	for range instances {
		a, err := one.do(address, request)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, a, 200)
	}
}

// TestWrongInputGone asks for long lists and leaves in the middle of the answer
// (gateway/INTERFACE.md, "Budget"). The turns of queries must come back: there are
// two.
func TestWrongInputGone(t *testing.T) {
	s := newScene(t)
	s.ann.fill(t, 100, 100_000)
	for range 12 {
		conn, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		request := ask{method: "GET", path: root + "/instances/plain", headers: s.ann.credential}
		if _, err := conn.Write(request.text("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
			t.Errorf("the beginning of the list: %v", err)
		}
		_ = conn.SetLinger(0) // gone without a word
		_ = conn.Close()
	}
	begin := time.Now()
	wantStatus(t, s.ann.get(t, root+"/instances/plain?limit=1"), 200) // a short one, so that only waiting takes long
	if took := time.Since(begin); took > answerMax/2 {
		t.Errorf("the list took %v", took)
	}
	if got := s.ann.query(t, "plain", "").items(t); len(got) < 100 {
		t.Errorf("the list: got %d instances, want at least 100", len(got))
	}
}

// budgetRunsOut gives queries less time than they need. Before the first byte
// that is a 503; behind it the connection is broken off, and neither HTTP/1.1
// nor HTTP/1.0 takes the short list for a whole one.
func budgetRunsOut(t *testing.T, _ *scene) {
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow})
	p := start(t, h)
	token := h.token("ann")
	p.as(token).fill(t, 500, 20_000)
	p.stop()

	h.write("troupe.yaml", "queryTimeMax: 1ns\n")
	p = start(t, h)
	wantFault(t, p.as(token).query(t, "plain", ""), 503, "Busy")
	wantStatus(t, p.as(token).get(t, root+"/choices"), 200)
	p.stop()

	const budget = 300 * time.Millisecond
	h.write("troupe.yaml", fmt.Sprintf("queryTimeMax: %v\n", budget))
	p = start(t, h)
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		text := strings.Join([]string{"GET " + root + "/instances/plain " + version, "Host: x", p.as(token).credential[0], "", ""}, "\r\n")
		status, body, err := p.readLate(text, 2*budget)
		for try := 0; status == 503 && try < 10; try++ { // it ran out before the first byte
			status, body, err = p.readLate(text, 2*budget)
		}
		if status != 200 || err == nil {
			t.Errorf("%s: got %d, %d bytes and no error, want a broken connection", version, status, len(body))
		}
	}
	p.stop()
}

// readLate sends a request and leaves all but the first byte of the answer where
// it is for a while. The answer shall not fit into the buffers between the two.
// The error is that of reading the body.
func (p *program) readLate(request string, after time.Duration) (status int, body []byte, err error) {
	p.t.Helper()
	conn, err := p.dial()
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadBuffer(16 << 10); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		p.t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if _, err := r.Peek(1); err != nil {
		p.t.Fatalf("the first byte: %v", err)
	}
	pause(after)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}
