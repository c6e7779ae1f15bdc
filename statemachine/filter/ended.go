package filter

import (
	"bytes"
	"io"
	"unicode/utf8"

	"troupe/statemachine/data"
)

const (
	lookEvery = 1 << 18
	// wholeMax is how much work an expression may be without a call of Document.Ended in between.
	wholeMax = 1 << 20
	// valueWork is what it takes to ask about one small value.
	valueWork = 16
)

// work counts work that is about to be done, and asks Document.Ended when enough
// has come together. It returns false when the match is to end.
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

// longRegular reads a text rune by rune, so that it can stop early. It looks for the
// expression's literal prefix first, because a reader cannot skip ahead.
func (m *matching) longRegular(p *predicate, text []byte) bool {
	if prefix, _ := p.regular.LiteralPrefix(); !bytes.Contains(text, []byte(prefix)) {
		return false
	}
	r := textReader{text: text, every: max(1, lookEvery/p.steps), ended: m.document.Ended}
	found := p.regular.MatchReader(&r)
	m.ended = r.left
	return found && !m.ended
}

// textReader reads a text and reports its end early when ended returns true.
type textReader struct {
	text  []byte
	at    int
	look  int // where ended is asked next
	every int
	ended func() bool
	left  bool // ended returned true before the end of the text
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
