package filter

import (
	"bytes"
	"io"
	"unicode/utf8"

	"troupe/statemachine/data"
)

const (
	// lookEvery is the work between two calls of Document.Ended, in steps of an
	// expression for one byte: some milliseconds.
	lookEvery = 1 << 18
	// wholeMax is the work of an expression that is done without a look.
	wholeMax = 1 << 20
	// valueWork is what it takes to ask about one small value.
	valueWork = 16
)

// work counts what is about to be done, and now and then asks whether the match
// is still wanted; false: it is not.
func (m *matching) work(n int) bool {
	if m.ended || m.document.Ended == nil {
		return !m.ended
	}
	if m.worked += n; m.worked >= lookEvery {
		m.worked, m.ended = 0, m.document.Ended()
	}
	return !m.ended
}

// regular is opRegular. It decodes a text only when it has escapes.
func (m *matching) regular(p *predicate, v data.Value) bool {
	if v.Kind() != data.String || len(v) < 2 {
		return false
	}
	work := p.steps * len(v)
	long := work > wholeMax && m.document.Ended != nil
	if !long && !m.work(work) {
		return false
	}
	text := []byte(v[1 : len(v)-1])
	if bytes.IndexByte(text, '\\') >= 0 {
		decoded := v.Text()
		if !long {
			return p.regular.MatchString(decoded)
		}
		text = []byte(decoded)
	}
	if !long {
		return p.regular.Match(text)
	}
	return m.longRegular(p, text)
}

// longRegular reads a text rune by rune, so that it can be left. What begins
// with letters is looked for first, which takes no time: readers cannot skip.
func (m *matching) longRegular(p *predicate, text []byte) bool {
	if prefix, _ := p.regular.LiteralPrefix(); !bytes.Contains(text, []byte(prefix)) {
		return false
	}
	r := textReader{text: text, every: max(1, lookEvery/p.steps), ended: m.document.Ended}
	found := p.regular.MatchReader(&r)
	m.ended = r.left
	return found && !m.ended
}

// textReader is a text that ends early when nobody wants to know any more.
type textReader struct {
	text  []byte
	at    int
	look  int // where ended is asked next
	every int
	ended func() bool
	left  bool // it was not read to its end because it ended
}

var _ io.RuneReader = (*textReader)(nil)

// ReadRune implements io.RuneReader. NB: regexp takes each error for the end.
func (r *textReader) ReadRune() (letter rune, size int, err error) {
	if r.left || r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	if r.at >= r.look {
		if r.left = r.ended(); r.left {
			return 0, 0, io.EOF
		}
		r.look = r.at + r.every
	}
	letter, size = utf8.DecodeRune(r.text[r.at:])
	r.at += size
	return letter, size, nil
}
