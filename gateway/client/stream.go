package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// block is what stands in a stream of server-sent events between two blank lines (HTML, 9.2.6).
type block struct {
	kind string // the field event; empty when there was none
	// data is the lines of the field data, joined; nil when there was none. The
	// bytes are valid until the next block is read.
	data  []byte
	id    string        // the last id of the stream so far, kept from block to block
	retry time.Duration // the field retry; negative when there was none
}

// streamReader reads a stream of server-sent events. Wherever the bytes are split, and whichever of LF, CR and CRLF
// ends a line, the blocks are the same. One goroutine may use it.
type streamReader struct {
	in       *bufio.Reader
	bytesMax int // of a line, and of the data of one block
	line     []byte
	data     []byte
	id       string // of the last whole block
	afterCR  bool   // an LF now belongs to the line end before
	begun    bool   // the byte order mark was looked for
}

func newStreamReader(in io.Reader, bytesMax int) *streamReader {
	return &streamReader{in: bufio.NewReader(in), bytesMax: bytesMax}
}

// errTooLong is wrapped when a line or the data of a block exceeds bytesMax.
var errTooLong = fmt.Errorf("%w: the stream has an event or a line that is too long", ErrProtocol)

// next returns the next block that says something; comments do not. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF when that comes in the middle of a block, which is then not delivered.
func (s *streamReader) next() (block, error) {
	b := block{id: s.id, retry: -1}
	s.data = s.data[:0]
	said, hasData := false, false
	for {
		line, err := s.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && (said || len(line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return block{}, err
		}
		if len(line) == 0 {
			if !said {
				continue
			}
			if hasData {
				b.data = s.data[:len(s.data)-1] // without the last line's end
			}
			s.id = b.id
			return b, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(s.data)+len(value)+1 > s.bytesMax {
				return block{}, errTooLong
			}
			s.data = append(append(s.data, value...), '\n')
			said, hasData = true, true
		case "event":
			b.kind, said = text(value), true
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				b.id, said = text(value), true
			}
		case "retry":
			if ms, ok := parseRetry(string(value)); ok {
				b.retry, said = ms, true
			}
		}
	}
}

// text copies a field. The stream is UTF-8; what is not is replaced, as the standard has it.
func text(value []byte) string { return strings.ToValidUTF8(string(value), string(utf8.RuneError)) }

// parseRetry reads milliseconds: ASCII digits and nothing else.
func parseRetry(s string) (time.Duration, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || s[0] == '+' {
		return 0, false
	}
	return time.Duration(min(n, uint64(time.Hour/time.Millisecond))) * time.Millisecond, true
}

var byteOrderMark = []byte("\uFEFF")

// readLine returns a line without its end; with an error what came before it.
// NB: behind a CR it does not wait for an LF, which may not come for long.
func (s *streamReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return s.line, err
		}
		second := s.afterCR && c == '\n'
		s.afterCR = c == '\r'
		switch {
		case second:
		case c == '\r' || c == '\n':
			if !s.begun {
				s.begun = true
				return bytes.TrimPrefix(s.line, byteOrderMark), nil
			}
			return s.line, nil
		case len(s.line) == s.bytesMax:
			return nil, errTooLong
		default:
			s.line = append(s.line, c)
		}
	}
}
