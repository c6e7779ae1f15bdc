package load

import (
	"bytes"
	"errors"
	"strconv"
)

// Bounds on answers. A history of 100,000 entries takes tens of megabytes.
const (
	headBytesMax = 64 << 10
	bodyBytesMax = 128 << 20
	// heldBytesMax is what the connections of a run hold together. Growing takes as much again for a while.
	heldBytesMax = 512 << 20
)

// Why an answer cannot be read. They end the connection.
var (
	errMalformed = errors.New("answer is not HTTP/1.1")
	errNoLength  = errors.New("answer has neither a Content-Length nor chunks")
	errTooLarge  = errors.New("answer is too large")
	errTooMany   = errors.New("all connections together hold too much of answers: large ones need fewer connections")
	errTooMuch   = errors.New("bytes after the answer")
)

type head struct {
	status  int
	length  int  // of the body; 0 when it comes in chunks
	chunked bool // the body comes in chunks
	closes  bool // the server ends the connection after it
	retry   int  // seconds of Retry-After
}

var endOfHead = []byte("\r\n\r\n")

// parseHead reads the head at the start of b. size is its length in bytes, with the empty line; zero says that it is
// not complete yet. Headers that do not matter here are not looked at.
func parseHead(b []byte) (h head, size int, err error) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		if len(b) > headBytesMax {
			return h, 0, errTooLarge
		}
		return h, 0, nil
	}
	line, rest, ok := cutLine(b[:end])
	// HTTP/1.1 200 and whatever follows.
	if !ok || len(line) < 12 || string(line[:9]) != "HTTP/1.1 " || len(line) > 12 && line[12] != ' ' {
		return h, 0, errMalformed
	}
	if h.status, err = parseDigits(line[9:12]); err != nil || h.status < 200 {
		return h, 0, errMalformed // nobody asked for 100 Continue
	}
	h.length = -1
	for len(rest) > 0 {
		if line, rest, ok = cutLine(rest); !ok {
			return h, 0, errMalformed
		}
		if err := h.field(line); err != nil {
			return h, 0, err
		}
	}
	switch {
	case h.chunked && h.length >= 0: // two ends: what would be the right one?
		return h, 0, errMalformed
	case h.status == 204 || h.status == 304:
		h.length, h.chunked = 0, false
	case h.chunked:
		h.length = 0
	case h.length < 0:
		return h, 0, errNoLength
	}
	return h, end + len(endOfHead), nil
}

func (h *head) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == 0 {
		return errMalformed
	}
	value = bytes.Trim(value, " \t")
	switch len(name) { // most names differ in length from those that matter
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) {
			h.closes = h.closes || bytes.EqualFold(value, []byte("close"))
		}
	case len("Retry-After"):
		if bytes.EqualFold(name, []byte("Retry-After")) {
			h.retry, _ = parseDigits(value) // a date says nothing here
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := parseDigits(value)
			switch {
			case err != nil || h.length >= 0 && h.length != n:
				return errMalformed
			case n > bodyBytesMax:
				return errTooLarge
			}
			h.length = n
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			if h.chunked || !bytes.EqualFold(value, []byte("chunked")) {
				return errMalformed
			}
			h.chunked = true
		}
	}
	return nil
}

// cutLine splits at the first line end. It is not ok when that is a line feed alone, which some take for one and some
// do not (RFC 9112, 2.2): where the head ends would be another question for each.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(b, []byte{'\n'})
	if !found {
		return line, nil, true
	}
	line, ok = bytes.CutSuffix(line, []byte{'\r'})
	return line, rest, ok
}

// parseDigits reads a number without a sign.
func parseDigits(b []byte) (int, error) {
	if len(b) == 0 || len(b) > 12 {
		return 0, errMalformed
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errMalformed
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

func appendLength(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
