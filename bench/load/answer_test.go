package load

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAnswers(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, text string
		want       head
		body       string
		err        error
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", head{status: 200}, "hello", nil},
		{"in other letters", "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\ncontent-length:  12 \r\n\r\nhello, hello", head{status: 503, retry: 1}, "hello, hello", nil},
		{"without a reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", head{status: 200}, "", nil},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", head{status: 204}, "", nil},
		{"that closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", head{status: 200, closes: true}, "x", nil},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", head{}, "", errMalformed},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", head{}, "", errNoLength},
		{"packed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", head{}, "", errMalformed},
		{"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", head{}, "", errMalformed},
		{"an endless length", "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", head{}, "", errTooLarge},
		{"the old version", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", head{}, "", errMalformed},
		{"a status that goes on", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\n", head{}, "", errMalformed},
		{"100 Continue", "HTTP/1.1 100 Continue\r\n\r\n", head{}, "", errMalformed},
		{"a line without a colon", "HTTP/1.1 200 OK\r\nwhat\r\n\r\n", head{}, "", errMalformed},
		{"an endless head", strings.Repeat("x", headBytesMax+1), head{}, "", errTooLarge},
		{"a head that ends", "HTTP/1.1 200 OK\r\nContent-Le", head{}, "", io.ErrUnexpectedEOF},
		{"a body that ends", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", head{status: 200}, "", io.ErrUnexpectedEOF},
		{"more than the length", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP", head{status: 200}, "", errTooMuch},
		{"chunks", chunked + "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", head{status: 200}, "hello!", nil},
		{"a trailer", chunked + "A\r\n0123456789\r\n0\r\nEtag: x\r\n\r\n", head{status: 200}, "0123456789", nil},
		{"no chunk", chunked + "0\r\n\r\n", head{status: 200}, "", nil},
		{"more than the chunks", chunked + "0\r\n\r\nHTTP", head{status: 200}, "", errTooMuch},
		{"a chunk too long", chunked + "5\r\nhello!\r\n0\r\n\r\n", head{status: 200}, "", errMalformed},
		{"a chunk with a sign", chunked + "-1\r\n", head{status: 200}, "", errMalformed},
		{"a chunk that ends", chunked + "5\r\nhel", head{status: 200}, "", io.ErrUnexpectedEOF},
	} {
		for _, step := range []int{1, len(c.text)} { // as slowly as can be, and at once
			if step == 1 && errors.Is(c.err, errTooMuch) {
				continue // nobody waits for what may come
			}
			near, far := net.Pipe()
			go func() {
				_, _ = far.Read(make([]byte, 1))
				for text := c.text; text != ""; text = text[step:] {
					if _, err := io.WriteString(far, text[:step]); err != nil {
						return
					}
				}
				_ = far.Close()
			}()
			conn := connection{conn: near}
			got, body, err := conn.exchange([]byte("x"), time.Now())
			_ = near.Close()
			assert.ErrorIs(t, err, c.err, c.name)
			assert.Equal(t, c.want, got, c.name)
			assert.Equal(t, c.body, string(body), c.name)
		}
	}
}
