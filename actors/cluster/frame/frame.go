// Package frame carries requests and their answers as frames over one connection: what an http.RoundTripper is asked,
// an http.Handler at the other end answers, and net/http sends and parses nothing in between. It knows nothing of nodes.
//
//	RoundTrip ── request, body … ──►  ┐                 ┌ ──► handler
//	                                  ├─ one connection ┤
//	          ◄── answer, body … ──   ┘                 └ ◄── ResponseWriter
//
// A Client is one end of a connection and asks; a Server is the other ends, and answers. Each request has a stream of its
// own, and each body a window of bytes that its reader has not taken yet: a reader that is slow holds up nobody else.
// Goroutines of a connection write what many streams have put together in one piece, and read.
//
// What a caller may rely on: after ErrNotSent the handler was not called. Any other error leaves that open. A request
// whose context ends, and a body that is closed early, end the context of the handler's request. A handler that panics
// breaks the answer off, and the caller gets an error in place of the end. A connection over which nothing comes for
// SilenceMax ends with everything on it.
//
// There are no trailers, no answers of status 1xx, and no upgrades.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

var (
	// ErrNotSent is for RoundTrip: the other end has done nothing of the request.
	ErrNotSent = errors.New("nothing was sent")
	// ErrProtocol ends a connection over which comes what no end of this package sends.
	ErrProtocol = errors.New("malformed frame")
	// ErrBroken is for an answer that its handler broke off.
	ErrBroken = errors.New("the other end broke the answer off")
	// ErrTooLarge is for a header that does not fit in a frame: all of 128 KiB do. It would not at another time either, so
	// it is not ErrNotSent.
	ErrTooLarge = errors.New("the header is too large")
)

// SilenceMax is how long a connection may bring nothing, not even an answer to a ping, and how long it may take nothing.
const SilenceMax = 5 * time.Second

// A frame is a head of 13 bytes and a payload:
//
//	payload's length  kind  stream
//	4 bytes           1     8
//
// Numbers are big-endian. The stream is the number of the request, from 1 on in the order of the requests; 0 in frames
// of the connection itself. The bit ends in the kind says that no more of the body follows.
const (
	headBytes = 13
	// headerMax is how long the header of a request or an answer may be, at least. A server takes requests with 68 KiB of
	// HTTP/1.1, which are about as long here, and adds who asks.
	headerMax = 128 << 10
	// pieceMax is how much of a body goes into one frame, so that others get in between.
	pieceMax = 16 << 10
	// payloadMax has room for a header, its length and the first piece of a body.
	payloadMax = headerMax + 4 + pieceMax
	// window is how much of a body may be under way that its reader has not taken.
	window = 256 << 10
)

type kind byte

const (
	kindRequest kind = 1 + iota // the header of a request and the start of its body
	kindAnswer                  // the same of an answer
	kindBody                    // a piece of a body
	kindTaken                   // 4 bytes: how many bytes the reader of the body has taken, so that as many may follow
	kindCancel                  // the caller wants no answer any more, or the handler broke it off
	kindRefused                 // nothing was done of the request
	kindPing
	kindPong

	ends kind = 0x80
)

type head struct {
	bytes  int // of the payload
	kind   kind
	ends   bool
	stream uint64
}

func appendHead(b []byte, k kind, stream uint64) []byte {
	b = append(b, 0, 0, 0, 0, byte(k))
	return binary.BigEndian.AppendUint64(b, stream)
}

func parseHead(b []byte) (head, error) {
	h := head{
		bytes: int(binary.BigEndian.Uint32(b)), kind: kind(b[4]) &^ ends, ends: kind(b[4])&ends != 0,
		stream: binary.BigEndian.Uint64(b[5:]),
	}
	if h.bytes > payloadMax || h.kind == 0 || h.kind > kindPong {
		return h, fmt.Errorf("%w: kind %d with %d bytes", ErrProtocol, h.kind, h.bytes)
	}
	return h, nil
}

// The payload that begins a request or an answer is the length of its header in 4 bytes, the header, and the start of
// the body. The header of a request is method, target, host, length of the body and fields; that of an answer is status,
// length of the body and fields. A number is a varint, a text has its length before it, and the fields have their
// number. A length of -1 is not known.

// appendBeginning appends what begins a request or an answer.
func appendBeginning(b []byte, header func([]byte) []byte, start []byte) []byte {
	at := len(b)
	b = header(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return append(b, start...)
}

func parseBeginning(payload []byte) (header string, start []byte, err error) {
	if len(payload) < 4 || uint64(binary.BigEndian.Uint32(payload)) > uint64(len(payload)-4) {
		return "", nil, fmt.Errorf("%w: a header that is cut off", ErrProtocol)
	}
	n := 4 + binary.BigEndian.Uint32(payload)
	return string(payload[4:n]), payload[n:], nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendFields(b []byte, h http.Header) []byte {
	n := 0
	for _, lines := range h {
		n += len(lines)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for name, lines := range h {
		for _, line := range lines {
			b = appendText(appendText(b, name), line)
		}
	}
	return b
}

func appendRequest(b []byte, r *http.Request) []byte {
	b = appendText(b, r.Method)
	b = appendText(b, r.URL.RequestURI())
	b = appendText(b, r.Host)
	length := r.ContentLength
	if r.Body == nil || r.Body == http.NoBody {
		length = 0
	} else if length == 0 {
		length = -1
	}
	return appendFields(binary.AppendVarint(b, length), r.Header)
}

func appendAnswer(b []byte, status int, length int64, h http.Header) []byte {
	return appendFields(binary.AppendVarint(binary.AppendUvarint(b, uint64(status)), length), h)
}

// parser takes the parts of a header off its text. Its first error is kept, and what it returns behind it is empty.
type parser struct {
	text string
	err  error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrProtocol, what)
	}
	p.text = ""
}

func (p *parser) number() uint64 {
	var n uint64
	for i := 0; i < len(p.text) && i < binary.MaxVarintLen64; i++ {
		c := p.text[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break
		}
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			p.text = p.text[i+1:]
			return n
		}
	}
	p.fail("a number that does not end")
	return 0
}

func (p *parser) signed() int64 {
	n := p.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (p *parser) string() (s string) {
	n := p.number()
	if n > uint64(len(p.text)) {
		p.fail("a text that is cut off")
		return ""
	}
	s, p.text = p.text[:n], p.text[n:]
	return s
}

// fieldBytesMin is the least that a field takes.
const fieldBytesMin = 2

func (p *parser) fields() http.Header {
	n := p.number()
	if n > uint64(len(p.text)/fieldBytesMin) {
		p.fail("more fields than bytes")
		return nil
	}
	h, lines := make(http.Header, n), make([]string, 0, n)
	for range n {
		name, line := p.string(), p.string()
		if have := h[name]; have != nil {
			h[name] = append(have, line)
			continue
		}
		lines = append(lines, line)
		h[name] = lines[len(lines)-1 : len(lines) : len(lines)]
	}
	return h
}

func (p *parser) end() error {
	if p.text != "" {
		p.fail("a header that goes on behind its end")
	}
	return p.err
}

func parseRequest(header string) (*http.Request, error) {
	p := parser{text: header}
	r := &http.Request{Method: p.string(), RequestURI: p.string(), Host: p.string(), ContentLength: p.signed(), Header: p.fields()}
	// NB: what handlers ask of these is that connections have no header of their own.
	r.Proto, r.ProtoMajor = "HTTP/2.0", 2
	if err := p.end(); err != nil {
		return nil, err
	}
	if r.Method == "" || r.ContentLength < -1 {
		return nil, fmt.Errorf("%w: a request without a method, or with a length below zero", ErrProtocol)
	}
	var err error
	if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil {
		return nil, errors.Join(ErrProtocol, err)
	}
	return r, nil
}

func parseAnswer(header string) (*http.Response, error) {
	p := parser{text: header}
	status := p.number()
	a := &http.Response{ContentLength: p.signed(), Header: p.fields(), Proto: "HTTP/2.0", ProtoMajor: 2}
	if err := p.end(); err != nil {
		return nil, err
	}
	if status < 200 || status > 999 || a.ContentLength < -1 {
		return nil, fmt.Errorf("%w: an answer of status %d with a length of %d", ErrProtocol, status, a.ContentLength)
	}
	a.StatusCode, a.Status = int(status), strconv.FormatUint(status, 10)+" "+http.StatusText(int(status))
	return a, nil
}
