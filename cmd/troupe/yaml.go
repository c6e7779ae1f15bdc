package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf16"
)

// YAML is written from the tokens of JSON, so that members keep their order and
// numbers their spelling. It is YAML 1.2. A string that a reader of 1.1 could
// take for something else is quoted.

// appendYAML appends the YAML of one JSON value, with a line end.
func appendYAML(dst, text []byte) ([]byte, error) {
	w, err := newYAMLWriter(dst, text)
	if err != nil {
		return nil, err
	}
	err = w.value(0, atTop)
	return w.end(err)
}

// appendYAMLItem appends it as an element of a sequence in a mapping at the top.
func appendYAMLItem(dst, text []byte) ([]byte, error) {
	w, err := newYAMLWriter(append(dst, '-'), text)
	if err != nil {
		return nil, err
	}
	err = w.value(2, behindDash)
	return w.end(err)
}

// yamlWriter turns one JSON text into YAML.
type yamlWriter struct {
	in  *json.Decoder
	out []byte
}

func newYAMLWriter(dst, text []byte) (*yamlWriter, error) {
	if !json.Valid(text) {
		return nil, errors.New("write YAML: the text is no JSON")
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	return &yamlWriter{in: in, out: dst}, nil
}

func (w *yamlWriter) end(err error) ([]byte, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return w.out, nil
}

// place is what stands before a value on its line.
type place uint8

const (
	atTop      place = iota // nothing
	behindKey               // "key:"
	behindDash              // "-"
)

// value writes the next value, whose lines are indented by indent.
func (w *yamlWriter) value(indent int, at place) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if !w.in.More() {
			w.scalar(map[json.Delim]string{'{': "{}", '[': "[]"}[t], at)
			_, err = w.in.Token() // the closing bracket
			return err
		}
		if t == '{' {
			return w.mapping(indent, at)
		}
		return w.sequence(indent, at)
	case string:
		w.scalar(yamlString(t), at)
	case json.Number:
		w.scalar(t.String(), at)
	case bool:
		w.scalar(strconv.FormatBool(t), at)
	default:
		w.scalar("null", at)
	}
	return nil
}

func (w *yamlWriter) scalar(text string, at place) {
	if at != atTop {
		w.out = append(w.out, ' ')
	}
	w.out = append(append(w.out, text...), '\n')
}

// mapping writes the members of an object that has some. Behind a dash the
// first stands on the same line.
func (w *yamlWriter) mapping(indent int, at place) error {
	if at == behindKey {
		w.out = append(w.out, '\n')
	}
	for first := true; w.in.More(); first = false {
		token, err := w.in.Token()
		if err != nil {
			return err
		}
		if first && at == behindDash {
			w.out = append(w.out, ' ')
		} else {
			w.indent(indent)
		}
		name, _ := token.(string) // the keys of JSON are strings
		key := yamlString(name)
		if len(key) > yamlKeyCharsMax {
			w.out = append(append(append(w.out, "? "...), key...), '\n')
			w.indent(indent)
			key = ""
		}
		w.out = append(append(w.out, key...), ':')
		if err := w.value(indent+2, behindKey); err != nil {
			return err
		}
	}
	_, err := w.in.Token()
	return err
}

// sequence writes the elements of an array that has some. A sequence in a
// sequence begins on the same line; one in a mapping is not indented.
func (w *yamlWriter) sequence(indent int, at place) error {
	if at == behindKey {
		w.out = append(w.out, '\n')
		indent -= 2
	}
	for first := true; w.in.More(); first = false {
		if first && at == behindDash {
			w.out = append(w.out, ' ')
		} else {
			w.indent(indent)
		}
		w.out = append(w.out, '-')
		if err := w.value(indent+2, behindDash); err != nil {
			return err
		}
	}
	_, err := w.in.Token()
	return err
}

func (w *yamlWriter) indent(n int) {
	for range n {
		w.out = append(w.out, ' ')
	}
}

// yamlPlain is what needs no quotes: words that begin with a letter. A dash
// inside is common in names.
var yamlPlain = regexp.MustCompile(`^[A-Za-z_](?:[A-Za-z0-9_./ -]{0,62}[A-Za-z0-9_./-])?$`)

// yamlWords are words that some reader takes for a truth value or null.
var yamlWords = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null)$`)

func yamlString(s string) string {
	if yamlPlain.MatchString(s) && !yamlWords.MatchString(s) {
		return s
	}
	return string(appendYAMLQuoted(nil, s))
}

// yamlKeyCharsMax is less than what YAML allows a key on one line to have
// without a "?" before it.
const yamlKeyCharsMax = 1000

// appendYAMLQuoted appends a string between double quotes; what does not print
// is escaped.
func appendYAMLQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case strconv.IsPrint(r):
			dst = append(dst, string(r)...)
		case r > 0xffff:
			dst = append(dst, fmt.Sprintf(`\U%08X`, r)...)
		default:
			dst = appendUnicodeEscape(dst, r)
		}
	}
	return append(dst, '"')
}

// appendUnicodeEscape appends \u…, two of them beyond the basic plane, as JSON
// has it.
func appendUnicodeEscape(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); r > 0xffff {
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
