package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
)

const (
	// maxBytes bounds a file. The YAML library needs about a second for the worst file of this size.
	maxBytes = 1 << 20
	// maxNodes bounds the tree with every alias put in place; nested aliases multiply.
	maxNodes = 100_000
)

// adviceTwice is what to do about a key that stands twice in a mapping.
const adviceTwice = "leave one of them out"

// Parse reads a file: strict JSON when its name ends in .json, otherwise YAML.
// An empty YAML file is a Null node. src is not kept. Errors are Faults.
func Parse(file string, src []byte) (*Node, error) {
	return ParseUntil(file, src, func() error { return nil })
}

// ParseUntil gives up a YAML file when ended says why nobody waits for it any more; it asks every few kilobytes.
func ParseUntil(file string, src []byte, ended func() error) (*Node, error) {
	c := &Collector{File: file}
	if len(src) > maxBytes {
		c.at(0, 0, "the file has %d bytes, more than %d", len(src), maxBytes)
		return nil, c.Err()
	}
	var n *Node
	if strings.EqualFold(path.Ext(file), ".json") {
		n = parseJSON(c, src)
	} else {
		n = parseYAML(c, src, ended)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return n, nil
}

type builder struct {
	faults *Collector
	nodes  int
	// stopped says that a limit is reached and nothing more is built.
	stopped bool
}

func (b *builder) node(kind Kind, line, column int) *Node {
	if b.nodes++; b.nodes > maxNodes {
		if !b.stopped {
			b.faults.at(line, column, "the file has more than %d values, counting each alias as often as it is used", maxNodes)
		}
		b.stopped = true
		return nil
	}
	return &Node{Kind: kind, Line: line, Column: column}
}

func (b *builder) add(n *Node, first map[string]*Node, key, value *Node) {
	// The first one stays, so faults below it are about the first.
	if before, ok := first[key.Text]; ok {
		b.faults.Add(key, "duplicate key %s, the first is in line %d", data.Quote(key.Text), before.Line).Suggestion = adviceTwice
		return
	}
	first[key.Text] = key
	n.Fields = append(n.Fields, Field{Key: key, Value: value})
}

// place turns offsets of a text into lines and columns. Offsets must not go back; the text is read once.
type place struct {
	src          []byte
	at           int
	line, column int
}

func newPlace(src []byte) place { return place{src: src, line: 1, column: 1} }

func (p *place) move(offset int) (line, column int) {
	passed := p.src[p.at:offset]
	if n := bytes.Count(passed, []byte{'\n'}); n > 0 {
		p.line += n
		p.column = 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCount(passed)
	p.at = offset
	return p.line, p.column
}

func checkUTF8(c *Collector, src []byte) bool {
	if utf8.Valid(src) {
		return true
	}
	offset := 0
	for {
		r, size := utf8.DecodeRune(src[offset:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		offset += size
	}
	p := newPlace(src)
	line, column := p.move(offset)
	c.at(line, column, "the byte 0x%02x is not UTF-8", src[offset]).Suggestion = "save the file as UTF-8"
	return false
}

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
	r := jsonReader{builder: builder{faults: c}, src: src, in: json.NewDecoder(bytes.NewReader(src)), place: newPlace(src)}
	r.in.UseNumber()
	return r.value()
}

type jsonReader struct {
	builder
	src   []byte
	in    *json.Decoder
	place place
}

// value reads the next value. It returns nil when a limit is reached.
func (r *jsonReader) value() *Node {
	start := int(r.in.InputOffset())
	for strings.IndexByte(" \t\r\n,:", r.src[start]) >= 0 {
		start++
	}
	token, _ := r.in.Token() // data.Clean has seen the text
	kind := Number
	switch token {
	case json.Delim('{'):
		kind = Mapping
	case json.Delim('['):
		kind = Sequence
	case true, false:
		kind = Bool
	case nil:
		kind = Null
	}
	text, isText := token.(string)
	if isText {
		kind = String
	} else if kind < Sequence {
		text = string(r.src[start:r.in.InputOffset()])
	}
	line, column := r.place.move(start)
	n := r.node(kind, line, column)
	if n == nil {
		return nil
	}
	n.Text = text
	first := map[string]*Node{}
	for kind >= Sequence && r.in.More() {
		item := r.value()
		if kind == Mapping && !r.stopped {
			key := item
			if item = r.value(); !r.stopped {
				r.add(n, first, key, item)
			}
		} else if !r.stopped {
			n.Items = append(n.Items, item)
		}
		if r.stopped {
			return n
		}
	}
	if kind >= Sequence {
		_, _ = r.in.Token() // what closes it
	}
	return n
}
