package endtoend

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// framing is a request as bytes, and the answers that may come back.
type framing struct {
	what   string
	text   string
	status int // of the only answer
}

// TestWrongInputFraming sends bodies whose end two readers of HTTP could see at
// different places (persistence/PROMISES.md, "F11"). There is one answer and then
// the end of the connection; nothing acts on a body that was not read to its end.
func TestWrongInputFraming(t *testing.T) {
	s := newScene(t)
	guarded := s.guard(t)
	marked := createBody("plain", `{"svcPublic":{"smuggled":true}}`)
	head := func(lines ...string) string {
		all := append([]string{"POST " + root + "/create HTTP/1.1", "Host: x", jsonType, s.ann.credential[0]}, lines...)
		return strings.Join(all, "\r\n") + "\r\n\r\n"
	}
	const chunked = "Transfer-Encoding: chunked"
	size := fmt.Sprintf("%x", len(marked))
	for _, c := range []framing{
		{"a length that is not reached", head(fmt.Sprint("Content-Length: ", len(marked)+1)) + marked, 400},
		{"two lengths", head("Content-Length: 5", fmt.Sprint("Content-Length: ", len(marked))) + marked, 400},
		{"a length with a sign", head(fmt.Sprint("Content-Length: +", len(marked))) + marked, 400},
		{"a negative length", head("Content-Length: -1") + marked, 400},
		{"a length in hexadecimal", head("Content-Length: 0x"+size) + marked, 400},
		{"an unknown encoding", head("Transfer-Encoding: xchunked") + marked, 501},
		{"two encodings", head("Transfer-Encoding: gzip, chunked") + size + "\r\n" + marked + "\r\n0\r\n\r\n", 501},
		{"a chunk size with 0x", head(chunked) + "0x" + size + "\r\n" + marked + "\r\n0\r\n\r\n", 400},
		{"a chunk size with a sign", head(chunked) + "+" + size + "\r\n" + marked + "\r\n0\r\n\r\n", 400},
		{"a bare line feed behind the chunk size", head(chunked) + size + "\n" + marked + "\r\n0\r\n\r\n", 400},
		{"a carriage return in a chunk extension", head(chunked) + size + ";\rx\r\n" + marked + "\r\n0\r\n\r\n", 400},
		{"a chunk that is shorter than its size", head(chunked) + "fff\r\n" + marked + "\r\n0\r\n\r\n", 400},
		{"chunks without an end", head(chunked) + size + "\r\n" + marked + "\r\n", 400},
		{"a chunk size that overflows", head(chunked) + "1" + strings.Repeat("0", 16) + size + "\r\n" + marked + "\r\n0\r\n\r\n", 400},
		{"two hosts", head("Host: y", fmt.Sprint("Content-Length: ", len(marked))) + marked, 400},
		{"NUL in a header", head("X-A: a\x00b", fmt.Sprint("Content-Length: ", len(marked))) + marked, 400},
		{"a blank before the colon", head("X-A : b", fmt.Sprint("Content-Length: ", len(marked))) + marked, 400},
		{"no host", strings.Replace(head(fmt.Sprint("Content-Length: ", len(marked)))+marked, "Host: x\r\n", "", 1), 400},
		{"another version", strings.Replace(head()+marked, "HTTP/1.1", "HTTP/9.9", 1), 505},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		{"headers of 100 KB", head("X-A: "+strings.Repeat("a", 100<<10), fmt.Sprint("Content-Length: ", len(marked))) + marked, 431},
	} {
		answers := s.raw(t, c.text)
		if len(answers) != 1 || answers[0].status != c.status {
			t.Errorf("%s: got %s, want one answer with %d", c.what, shown(answers), c.status)
		}
	}
	guarded()
}

func shown(answers []answer) string {
	var parts []string
	for _, a := range answers {
		parts = append(parts, fmt.Sprintf("%d (closes: %v) %s", a.status, a.closes, clip(a.body)))
	}
	return fmt.Sprint(len(answers), " answers ", parts)
}

// TestWrongInputSmuggling sends a second request behind a body whose length is
// said twice. The first is answered, the second never, and the connection ends.
func TestWrongInputSmuggling(t *testing.T) {
	s := newScene(t)
	kept := s.guard(t)
	const chunked = "Transfer-Encoding: chunked"
	body := createBody("codes", "")
	whole := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	second := strings.Join([]string{
		"POST " + root + "/create HTTP/1.1", "Host: x", jsonType, s.ann.credential[0],
		fmt.Sprint("Content-Length: ", len(createBody("plain", ""))), "", createBody("plain", ""),
	}, "\r\n")
	before := len(s.instances(t, s.ann, "codes"))
	cases := []framing{
		{"a chunked body", chunked, 200},
		{"a length and chunks", "Content-Length: 5\r\n" + chunked, 200},
		{"chunks and a length", chunked + "\r\nContent-Length: 5", 200},
		{"chunks and a long length", fmt.Sprintf("Content-Length: %d\r\n%s", len(whole)+len(second), chunked), 200},
	}
	for _, c := range cases {
		first := strings.Join([]string{"POST " + root + "/create HTTP/1.1", "Host: x", jsonType, s.ann.credential[0], c.text, "", whole}, "\r\n")
		answers := s.raw(t, first+second)
		if len(answers) != 1 || answers[0].status != c.status || !answers[0].closes {
			t.Errorf("%s: got %s, want one answer with %d and the end", c.what, shown(answers), c.status)
		}
	}
	if got := len(s.instances(t, s.ann, "codes")); got != before+len(cases) {
		t.Errorf("instances: got %d, want %d", got, before+len(cases))
	}
	kept()
}

// TestWrongInputCut ends the connection behind every byte of an event. It is
// applied once, whole, when all bytes were sent, and not at all before
// (gateway/INTERFACE.md, "Bodies").
func TestWrongInputCut(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	text := s.ann.posting(root+"/event", eventBody("plain", r.ID, "go", `{"whole":true}`), "Idempotency-Key: cut").text("x")
	guarded := s.guard(t)
	var cuts sync.WaitGroup
	slots := make(chan struct{}, 16)
	for length := range text {
		slots <- struct{}{}
		cuts.Go(func() {
			defer func() { <-slots }()
			conn, err := s.dial()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := conn.Write(text[:length]); err != nil {
				t.Error(err)
			}
			// NB: what the server says is read, so that it has seen the end
			// before the instance is looked at.
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		})
	}
	cuts.Wait()
	s.unchanged(t, r)
	guarded()
	answers := s.raw(t, string(text))
	if len(answers) != 1 {
		t.Fatalf("the whole request: got %s, want one answer", shown(answers))
	}
	if after := answers[0].record(t); len(after.History) != 2 {
		t.Errorf("history: got %d entries, want 2", len(after.History))
	}
}
