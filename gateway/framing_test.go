package gateway

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// parseReplies reads all answers in what a connection gave back.
func parseReplies(t testing.TB, text, method string) []*answer {
	t.Helper()
	var answers []*answer
	r := bufio.NewReader(strings.NewReader(text))
	for {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			return answers
		}
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("read an answer: %v in %q", err, text)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("read a body: %v in %q", err, text)
		}
		_ = res.Body.Close()
		answers = append(answers, &answer{status: res.StatusCode, header: res.Header, body: string(body)})
	}
}

// TestSmuggling sends what two readers of HTTP could take for different numbers of
// requests (persistence/PROMISES.md, "F11"). There must be one answer at most to
// the first request, nothing must act on a body that was not read to its end, and
// the request behind it must not be answered.
func TestSmuggling(t *testing.T) {
	chunk := func(size, body, end string) string { return size + body + "\r\n0\r\n" + end }
	const behind = "GET /workflow/api/v1/instance/smuggled/i1 HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n\r\n"
	head := func(headers ...string) string {
		return "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	const chunked = "Transfer-Encoding: chunked"
	length := "6a\r\n" // of eventBody, checked below
	cases := []struct {
		line   string
		text   string
		status int
	}{
		{"a chunked body", head(chunked) + chunk(length, eventBody, "\r\n"), 200},
		{"a chunked body with a trailer", head(chunked) + chunk(length, eventBody, "X: y\r\n\r\n"), 200},
		{"a length and chunks", head("Content-Length: 5", chunked) + chunk(length, eventBody, "\r\n"), 200},
		{"chunks, length first", head(chunked, "Content-Length: 400") + chunk(length, eventBody, "\r\n"), 200},
		{"no chunk at all", head(chunked) + "0\r\n\r\n", 400},
		{"a bare line feed behind the size", head(chunked) + chunk(strings.Replace(length, "\r", "", 1), eventBody, "\r\n"), 400},
		{"a bare line feed in an extension", head(chunked) + chunk("6a;a\n", eventBody, "\r\n"), 400},
		{"a carriage return in an extension", head(chunked) + chunk("6a;\ra\r\n", eventBody, "\r\n"), 400},
		{"a size with 0x", head(chunked) + chunk("0x6a\r\n", eventBody, "\r\n"), 400},
		{"a size with a sign", head(chunked) + chunk("+6a\r\n", eventBody, "\r\n"), 400},
		{"a size that is too large for its chunk", head(chunked) + "ff\r\n" + eventBody, 400},
		{"a size that overflows", head(chunked) + chunk("100000000000000006a\r\n", eventBody, "\r\n"), 400},
		{"chunks that stop", head(chunked) + length + eventBody + "\r\n", 400},
		{"a length that is not reached", head("Content-Length: 500") + eventBody, 400},
		{"two lengths that differ", head("Content-Length: 106", "Content-Length: 5") + eventBody, 400},
		{"a length with a sign", head("Content-Length: +106") + eventBody, 400},
		{"a negative length", head("Content-Length: -1") + eventBody, 400},
		{"an encoding nobody knows", head("Transfer-Encoding: xchunked") + chunk(length, eventBody, "\r\n"), 501},
		{"two encodings", head("Transfer-Encoding: gzip, chunked") + chunk(length, eventBody, "\r\n"), 501},
		{"two encoding lines", head(chunked, chunked) + chunk(length, eventBody, "\r\n"), 501},
		{"two hosts", head("Host: y", "Content-Length: 0"), 400},
		{"NUL in a header", head("X: a\x00b", "Content-Length: 0"), 400},
		{"a blank before the colon", head("X : y", "Content-Length: 0"), 400},
		{"a GET with wrong chunks", strings.Replace(head(chunked), "POST /workflow/api/v1/event", "GET /workflow/api/v1/choices", 1) + "zz\r\n", 400},
		{"a refused request with chunks", strings.Replace(head(chunked), withToken, "X: y", 1) + chunk(length, eventBody, "\r\n"), 401},
		{"a path that is not there with chunks", strings.Replace(head(chunked), "/event", "/nothing", 1) + chunk(length, eventBody, "\r\n"), 404},
	}
	if want := 0x6a; len(eventBody) != want {
		t.Fatalf("the cases are made for a body of %d bytes, got %d", want, len(eventBody))
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			s := startServer(t, Options{}, nil)
			// NB: an error at the end is a reset, because the server closed with
			// bytes of ours unread.
			text, _ := s.rawErr(t, c.text+behind)
			replies := parseReplies(t, text, "POST")
			if len(replies) != 1 || replies[0].status != c.status {
				t.Fatalf("got %d answers: %q; want one %d", len(replies), text, c.status)
			}
			want := 0
			if c.status == 200 {
				want = 1
			}
			if got := s.workflows.calls(); got != want {
				t.Errorf("the workflows were asked %d times, want %d", got, want)
			}
		})
	}
}

// TestPipelinedRequestsAreAnsweredInOrder is the control of TestSmuggling: the
// request behind is answered when nothing is wrong with the first.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s := startServer(t, Options{}, nil)
	one := "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\nContent-Length: 106\r\n\r\n" + eventBody
	two := "GET /workflow/api/v1/choices HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\nContent-Length: 3\r\n\r\nabc"
	replies := parseReplies(t, s.raw(t, one+two+one), "POST")
	if len(replies) != 3 || replies[0].body != replies[2].body || replies[1].body != `{"workflows":[]}` {
		t.Errorf("got %d answers, want 3 in order", len(replies))
	}
}

// TestBrokenRequests holds what net/http refuses before we see it.
func TestBrokenRequests(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for line, c := range map[string]struct {
		text   string
		status int
	}{
		"no host":              {"GET /livez HTTP/1.1\r\n\r\n", 400},
		"HTTP/0.9":             {"GET /livez\r\n\r\n", 400},
		"HTTP/2 in clear text": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		"headers over 64 KiB":  {"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", 431},
		"a wrong escape":       {"GET /workflow/api/v1/instance/%/b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"an Expect of another": {"GET /livez HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n\r\n", 417},
	} {
		text, _ := s.rawErr(t, c.text)
		replies := parseReplies(t, text, "GET")
		if len(replies) != 1 || replies[0].status != c.status {
			t.Errorf("%s: got %q, want %d", line, text, c.status)
		}
	}
}

// TestContinue holds that a body is asked for only when it is wanted.
func TestContinue(t *testing.T) {
	s := startServer(t, Options{}, nil)
	ask := func(headers string) string {
		text, _ := s.rawErr(t, "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n"+headers+"\r\nExpect: 100-continue\r\n\r\n"+eventBody)
		return text
	}
	if got := ask(withToken + "\r\nContent-Length: 106"); !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK") {
		t.Errorf("a good request: got %q", got)
	}
	if got := ask("Content-Length: 106"); !strings.HasPrefix(got, "HTTP/1.1 401 Unauthorized") {
		t.Errorf("no credential: got %q", got)
	}
	if got := ask(withToken + "\r\nContent-Length: 2000000"); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("too large: got %q", got)
	}
}

// TestTooLargeIsReadable holds that a caller who sends too much gets to read
// why.
func TestTooLargeIsReadable(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, headers := range []string{"Content-Length: 1100000", "Content-Length: 1100000\r\nConnection: close", "Transfer-Encoding: chunked"} {
		c := s.dial(t)
		_, err := io.WriteString(c, "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n"+headers+"\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			body := strings.Repeat(" ", 1_100_000)
			if strings.HasPrefix(headers, "T") {
				body = "10c8e0\r\n" + body + "\r\n0\r\n\r\n"
			}
			_, _ = io.WriteString(c, body) // the server may have closed
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", headers, err)
		}
		if res.StatusCode != 413 || !res.Close {
			t.Errorf("%s: got %d, close %v; want 413 and the end of the connection", headers, res.StatusCode, res.Close)
		}
		_ = res.Body.Close()
		<-sent
		_ = c.Close()
	}
}
