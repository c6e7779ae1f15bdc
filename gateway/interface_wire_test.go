package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestInterfaceFraming sends what two readers of HTTP could take for different numbers
// of requests (persistence/PROMISES.md, "F11"). There is one answer to the first
// request, nothing acts on a body that was not read to its end, and the request behind
// it is not answered. What net/http refuses before we see it is here as well.
func TestInterfaceFraming(t *testing.T) {
	s := newScene(t)
	body := wiretest.CreateBody("codes", "")
	size := fmt.Sprintf("%x", len(body))
	head := func(lines ...string) string {
		return "POST " + wiretest.Root + "/create HTTP/1.1\r\nHost: x\r\n" + strings.Join(append([]string{s.ann.Credential[0], wiretest.JSONType}, lines...), "\r\n") + "\r\n\r\n"
	}
	length := func(format string, plus int) string { return fmt.Sprintf("Content-Length: "+format, len(body)+plus) }
	chunk := func(size, end string) string { return size + "\r\n" + body + "\r\n0\r\n" + end + "\r\n" }
	const chunked = "Transfer-Encoding: chunked"
	behind := strings.Replace(head("Content-Length: "+fmt.Sprint(len(wiretest.CreateBody("plain", "")))), "\r\n\r\n", "\r\nX-Behind: yes\r\n\r\n", 1) + wiretest.CreateBody("plain", "")
	created := 0
	for _, c := range []struct {
		line   string
		text   string
		status int
	}{
		{"a length and chunks", head("Content-Length: 5", chunked) + chunk(size, ""), 200},
		{"chunks and a length", head(chunked, "Content-Length: 400") + chunk(size, ""), 200},
		{"a chunked body", head(chunked) + chunk(size, ""), 200},
		{"a chunked body with a trailer", head(chunked) + chunk(size, "X: y\r\n"), 200},
		{"no chunk at all", head(chunked) + "0\r\n\r\n", 400},
		{"a bare line feed behind the size", head(chunked) + strings.Replace(chunk(size, ""), "\r", "", 1), 400},
		{"a bare line feed in an extension", head(chunked) + chunk(size+";a\n", ""), 400},
		{"a carriage return in an extension", head(chunked) + chunk(size+";\ra", ""), 400},
		{"a size with 0x", head(chunked) + chunk("0x"+size, ""), 400},
		{"a size with a sign", head(chunked) + chunk("+"+size, ""), 400},
		{"a size that overflows", head(chunked) + chunk("1"+strings.Repeat("0", 16)+size, ""), 400},
		{"two lengths that differ", head("Content-Length: 5", length("%d", 0)) + body, 400},
		{"a length with a sign", head(length("+%d", 0)) + body, 400},
		{"a negative length", head("Content-Length: -1") + body, 400},
		{"a length in hexadecimal", head(length("0x%x", 0)) + body, 400},
		{"an encoding nobody knows", head("Transfer-Encoding: xchunked") + chunk(size, ""), 501},
		{"two encodings", head("Transfer-Encoding: gzip, chunked") + chunk(size, ""), 501},
		{"two encoding lines", head(chunked, chunked) + chunk(size, ""), 501},
		{"two hosts", head("Host: y", length("%d", 0)) + body, 400},
		{"NUL in a header", head("X: a\x00b", length("%d", 0)) + body, 400},
		{"a blank before the colon", head("X : y", length("%d", 0)) + body, 400},
		{"a GET with wrong chunks", strings.Replace(head(chunked), "POST "+wiretest.Root+"/create", "GET "+wiretest.Root+"/choices", 1) + "zz\r\n", 400},
		{"a refused request with chunks", strings.Replace(head(chunked), s.ann.Credential[0], "X: y", 1) + chunk(size, ""), 401},
		{"a path that is not there with chunks", strings.Replace(head(chunked), "/create", "/nothing", 1) + chunk(size, ""), 404},
		{"a length that is too large", head("Content-Length: 104857600") + "{", 413},
		{"no host", strings.Replace(head(length("%d", 0)), "Host: x\r\n", "", 1) + body, 400},
		{"another version", strings.Replace(head(length("%d", 0)), "HTTP/1.1", "HTTP/9.9", 1) + body, 505},
		{"headers over 64 KiB", head("X: "+strings.Repeat("a", 80<<10), length("%d", 0)) + body, 431},
		{"an Expect of another", head("Expect: 200-ok", length("%d", 0)) + body, 417},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
	} {
		answers := s.Raw(t, c.text+behind)
		assert.True(t, len(answers) == 1 && answers[0].Status == c.status && (c.status != 200 || answers[0].Closes), "%v %v %v", c.line, answers, c.status)
		if c.status == 200 {
			created++
		}
	}
	// Bodies that do not come to their end.
	for _, text := range []string{head(chunked) + "fff\r\n" + body, head(chunked) + size + "\r\n" + body + "\r\n", head(length("%d", 1)) + body} {
		answers := s.Raw(t, text)
		assert.True(t, len(answers) == 1 && answers[0].Status == 400, "%q: got %v, want one answer with 400", text, answers)
	}
	assert.Equal(t, created, s.count(t, "codes"))
	assert.Zero(t, s.count(t, "plain"))
	// When nothing is wrong with the first, the request behind it is answered.
	answers := s.Raw(t, head(length("%d", 0))+body+behind+"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"+behind)
	assert.True(t, len(answers) == 4 && answers[2].Body == `{"status":"ok"}`, "got %v, want 4 answers in order", answers)
	assert.Equal(t, created+1, s.count(t, "codes"))
	assert.Equal(t, 2, s.count(t, "plain"))
}

// TestInterfaceContinue holds gateway/INTERFACE.md, "Bodies": a body is asked for only
// when it is wanted, and who sends too much gets to read why.
func TestInterfaceContinue(t *testing.T) {
	s := newScene(t)
	credential := s.ann.Credential[0] + "\r\n"
	body := wiretest.CreateBody("plain", "")
	ask := func(headers, body string) (r *bufio.Reader, done func()) {
		conn, err := s.Dial()
		require.NoError(t, err)
		_, err = io.WriteString(conn, "POST "+wiretest.Root+"/create HTTP/1.1\r\nHost: x\r\n"+headers+"\r\n\r\n")
		require.NoError(t, err)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(conn, body) // the server may have closed
		}()
		return bufio.NewReader(conn), func() { <-sent; _ = conn.Close() }
	}
	for headers, want := range map[string][]int{
		credential + fmt.Sprint("Content-Length: ", len(body)): {100, 200},
		fmt.Sprint("Content-Length: ", len(body)):              {401},
		credential + "Content-Length: 2000000":                 {413},
	} {
		r, done := ask(headers+"\r\nExpect: 100-continue", body)
		for _, status := range want {
			line, err := r.ReadString('\n')
			assert.True(t, err == nil && strings.HasPrefix(line, fmt.Sprint("HTTP/1.1 ", status, " ")), "%q: got %q %v, want %d", headers, line, err, status)
			_, _ = r.ReadString('\n') // of 100, the empty line
		}
		done()
	}
	large := strings.Repeat(" ", 1_100_000)
	for headers, body := range map[string]string{
		"Content-Length: 1100000": large, "Content-Length: 1100000\r\nConnection: close": large, "Transfer-Encoding: chunked": "10c8e0\r\n" + large + "\r\n0\r\n\r\n",
	} {
		r, done := ask(credential+headers, body)
		a, err := wiretest.ReadAnswer(r, http.MethodPost)
		reason := a.FaultReason(413, "TooLarge")
		assert.True(t, err == nil && reason == "" && a.Closes, "%s: %s (%v), the connection ends: %v", headers, reason, err, a.Closes)
		done()
	}
}

// TestInterfaceCut ends the connection behind every byte of an event. It is applied
// once, whole, when all bytes were sent, and not at all before.
func TestInterfaceCut(t *testing.T) {
	s := newScene(t)
	r := s.ann.Create(t, "plain", "").Record(t)
	text := string(s.ann.Posting(wiretest.Root+"/event", wiretest.EventBody("plain", r.ID, "go", `{"whole":true}`), "Idempotency-Key: cut").Text("x"))
	for length := range text {
		s.Raw(t, text[:length])
	}
	s.unchanged(t, r)
	answers := s.Raw(t, text)
	assert.True(t, len(answers) == 1 && len(answers[0].Record(t).History) == 2, "the whole request: got %v, want one answer", answers)
}
