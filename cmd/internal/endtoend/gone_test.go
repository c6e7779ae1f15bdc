package endtoend

import (
	"io"
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
