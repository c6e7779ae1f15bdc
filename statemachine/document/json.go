package document

import (
	"errors"
	"strings"

	"troupe/statemachine/data"
)

// parseJSON builds the tree of a JSON text. data.Clean decides what JSON is; so the walk behind it can trust the text,
// and files and requests are held to the same rules.
func parseJSON(c *Collector, src []byte) *Node {
	if !checkUTF8(c, src) {
		return nil
	}
	if _, err := data.Clean(src); err != nil {
		var syntax *data.SyntaxError
		if !errors.As(err, &syntax) {
			c.at(0, 0, "%v", err)
			return nil
		}
		// Clean stops at the first fault; there is no second place.
		p := newPlace(src)
		line, column := p.move(syntax.Offset)
		f := c.at(line, column, "%s", syntax.Reason)
		if strings.HasPrefix(syntax.Reason, "duplicate key") {
			f.Suggestion = adviceTwice
		}
		return nil
	}
	r := jsonReader{builder: builder{faults: c}, src: src, place: newPlace(src)}
	return r.value()
}

type jsonReader struct {
	builder
	src   []byte
	at    int
	place place
}

func (r *jsonReader) peek() byte {
	for {
		switch c := r.src[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c
		}
	}
}

// value reads the next value. It returns nil when a limit is reached.
func (r *jsonReader) value() *Node {
	kind := Number
	switch r.peek() {
	case '{':
		kind = Mapping
	case '[':
		kind = Sequence
	case '"':
		kind = String
	case 't', 'f':
		kind = Bool
	case 'n':
		kind = Null
	}
	line, column := r.place.move(r.at)
	n := r.node(kind, line, column)
	if n == nil {
		return nil
	}
	switch kind {
	case Mapping:
		r.fields(n)
	case Sequence:
		r.items(n)
	case String:
		n.Text = data.Value(r.scalar()).Text()
	default:
		n.Text = string(r.scalar())
	}
	return n
}

// fields reads the members of the object whose brace is next.
func (r *jsonReader) fields(n *Node) {
	first := make(map[string]*Node)
	r.at++
	for r.peek() != '}' {
		key := r.value()
		if r.stopped {
			return
		}
		r.peek()
		r.at++ // the colon
		value := r.value()
		if r.stopped {
			return
		}
		r.add(n, first, key, value)
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// items reads the elements of the array whose bracket is next.
func (r *jsonReader) items(n *Node) {
	r.at++
	for r.peek() != ']' {
		item := r.value()
		if r.stopped {
			return
		}
		n.Items = append(n.Items, item)
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// scalar returns the text of the scalar at r.at and moves behind it.
func (r *jsonReader) scalar() []byte {
	start := r.at
	if r.src[r.at] == '"' {
		for r.at++; r.src[r.at] != '"'; r.at++ {
			if r.src[r.at] == '\\' {
				r.at++
			}
		}
		r.at++
		return r.src[start:r.at]
	}
	for r.at < len(r.src) {
		switch r.src[r.at] {
		case ' ', '\t', '\r', '\n', ',', '}', ']':
			return r.src[start:r.at]
		}
		r.at++
	}
	return r.src[start:]
}
