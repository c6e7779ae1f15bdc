package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"troupe/cmd/internal/cli"
)

// interruptible reads a stream until ctx ends: then reads return errInterrupted, although a quiet standard input waits
// on.
func interruptible(ctx context.Context, stream io.Reader) *io.PipeReader {
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(cli.ErrInterrupted) }) // never fails
	go func() {
		_, err := io.Copy(out, stream)
		_ = out.CloseWithError(err) // without one: io.EOF
	}()
	return in
}

// itemReader reads the items of a file: values of JSON one after the other, or an array.
type itemReader struct {
	in      *bufio.Reader
	lines   lineCounter
	decoder *json.Decoder // nil before the first item
	array   bool
}

func newItemReader(r io.Reader) *itemReader {
	return &itemReader{in: bufio.NewReader(r)}
}

func (r *itemReader) next() (fileItem, error) {
	if r.decoder == nil {
		if err := r.begin(); err != nil {
			return fileItem{}, err
		}
	}
	if r.array && !r.decoder.More() {
		return fileItem{}, r.end()
	}
	var item json.RawMessage
	if err := r.decoder.Decode(&item); err != nil {
		if errors.Is(err, io.EOF) && !r.array {
			return fileItem{}, io.EOF
		}
		return fileItem{}, r.explain(err)
	}
	line := r.lines.line(r.decoder.InputOffset())
	return fileItem{item, line - bytes.Count(item, []byte{'\n'})}, nil
}

func (r *itemReader) begin() error {
	// NB: an error of Peek comes again behind what there is.
	start, _ := r.in.Peek(3)
	for _, mark := range []string{"\xEF\xBB\xBF", "\xFE\xFF", "\xFF\xFE"} {
		if bytes.HasPrefix(start, []byte(mark)) {
			return errors.New("the file begins with a byte order mark: it must be UTF-8 without one")
		}
	}
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' {
			r.lines.passed++
		}
		if !isBlank(rune(c)) {
			_ = r.in.UnreadByte() // it was just read
			r.lines.in = r.in
			r.decoder = json.NewDecoder(&r.lines)
			if r.array = c == '['; r.array {
				_, err = r.decoder.Token()
			}
			return err
		}
	}
}

func (r *itemReader) end() error {
	_, err := r.decoder.Token()
	if err != nil {
		return r.explain(err)
	}
	var more json.RawMessage
	if err = r.decoder.Decode(&more); err == nil {
		err = errors.New("something stands behind the array")
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return r.explain(err)
}

func (r *itemReader) explain(err error) error {
	rest, _ := io.ReadAll(r.decoder.Buffered()) // from memory
	item := bytes.TrimLeftFunc(rest, isBlank)
	before := len(rest) - len(item)
	// NB: the offsets in errors of a Decoder leave out what stands between items.
	if fault := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(item, new(json.RawMessage)), &fault) && fault.Error() == err.Error() {
		before += int(fault.Offset) - 1
	}
	line := r.lines.line(r.decoder.InputOffset()) + bytes.Count(rest[:before], []byte{'\n'})
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the file ends in the middle of an item")
	case errors.Is(err, io.EOF):
		err = errors.New("the file ends before its array does: a ] is missing")
	}
	return fmt.Errorf("line %d: %w", line, err)
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

type lineCounter struct {
	in     io.Reader
	read   int64   // bytes
	ends   []int64 // where the lines end that were read and not passed
	passed int     // lines
}

// Read reads on.
func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// Offsets must not become smaller.
func (l *lineCounter) line(offset int64) int {
	n, _ := slices.BinarySearch(l.ends, offset)
	l.ends = l.ends[n:]
	l.passed += n
	return l.passed + 1
}
