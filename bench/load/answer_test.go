package load

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheHeadOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       head
		err        error
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", head{status: 200, length: 5}, nil},
		{"in other letters", "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\ncontent-length:  12 \r\n\r\n", head{status: 503, length: 12, retry: 1}, nil},
		{"without a reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", head{status: 200}, nil},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", head{status: 204}, nil},
		{"that closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n", head{status: 200, length: 1, closes: true}, nil},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", head{status: 200, length: 1}, nil},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", head{}, errMalformed},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", head{}, errNoLength},
		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head{status: 200, chunked: true}, nil},
		{"in chunks with a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", head{}, errMalformed},
		{"packed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", head{}, errMalformed},
		{"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", head{}, errMalformed},
		{"an endless length", "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", head{}, errTooLarge},
		{"the old version", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", head{}, errMalformed},
		{"a status that goes on", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\n", head{}, errMalformed},
		{"100 Continue", "HTTP/1.1 100 Continue\r\n\r\n", head{}, errMalformed},
		{"a line feed alone", "HTTP/1.1 200 OK\n\r\nContent-Length: 1\r\n\r\n", head{}, errMalformed},
		{"a line feed alone in a field", "HTTP/1.1 200 OK\r\nEtag: x\nContent-Length: 1\r\n\r\n", head{}, errMalformed},
		{"a line feed alone at the end", "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\n\r\n", head{}, errMalformed},
		{"a line without a colon", "HTTP/1.1 200 OK\r\nwhat\r\n\r\n", head{}, errMalformed},
		{"an endless head", strings.Repeat("x", headBytesMax+1), head{}, errTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, size, err := parseHead([]byte(c.text))
			require.ErrorIs(t, err, c.err, "got error")
			assert.False(t, err == nil && (got != c.want || size != len(c.text)), "got %+v and %d bytes, want %+v and %d", got, size, c.want, len(c.text))
		})
	}
}

func TestAHeadThatIsNotCompleteIsWaitedFor(t *testing.T) {
	text := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	for n := range len(text) {
		if _, size, err := parseHead([]byte(text[:n])); size != 0 || err != nil {
			t.Errorf("%q: got %d bytes, %v", text[:n], size, err)
		}
	}
}

// FuzzParseHead holds the parser against net/http's: whatever ours takes, the
// other must take with the same status and length.
func FuzzParseHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nEtag: \"1\"\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 204 \r\nconnection: close\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 \n\r\nContent-Length:0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, size, err := parseHead(text)
		if err != nil || size == 0 || h.chunked {
			return
		}
		full := append(bytes.Clone(text[:size]), make([]byte, min(h.length, 1<<20))...)
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(full)), nil)
		if err != nil {
			return // net/http is stricter about names and values that we do not look at
		}
		defer func() { _ = want.Body.Close() }()
		body, _ := io.ReadAll(want.Body)
		assert.True(t, want.StatusCode == h.status && (h.length >= 1<<20 || len(body) == h.length),
			"%q: got status %d and length %d, net/http has %d and %d", text, h.status, h.length, want.StatusCode, len(body))
	})
}
