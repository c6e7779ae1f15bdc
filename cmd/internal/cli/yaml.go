package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// YAML is written from the tokens of JSON, so that members keep their order and numbers their spelling. It is YAML 1.2.
// A string that a reader of 1.1 could take for something else is quoted.

// AppendYAML appends the YAML of one JSON value, with a line end.
func AppendYAML(dst, text []byte) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errors.New("write YAML: the text is no JSON")
	}
	w := &yamlWriter{in: json.NewDecoder(bytes.NewReader(text)), out: dst}
	w.in.UseNumber()
	if err := w.value(0, atTop); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return w.out, nil
}

type yamlWriter struct {
	in  *json.Decoder
	out []byte
}

type place uint8

const (
	atTop      place = iota // nothing
	behindKey               // "key:"
	behindDash              // "-"
)

func (w *yamlWriter) value(indent int, at place) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	scalar := "null"
	switch t := token.(type) {
	case json.Delim:
		if w.in.More() {
			return w.collection(t == '{', indent, at)
		}
		_, err = w.in.Token() // the closing bracket
		scalar = map[json.Delim]string{'{': "{}", '[': "[]"}[t]
	case string:
		scalar = yamlString(t)
	case json.Number:
		scalar = t.String()
	case bool:
		scalar = strconv.FormatBool(t)
	}
	if at != atTop {
		w.out = append(w.out, ' ')
	}
	w.out = append(append(w.out, scalar...), '\n')
	return err
}

// collection writes the members of an object, or the elements of an array, that has some.
func (w *yamlWriter) collection(isMapping bool, indent int, at place) error {
	if at == behindKey {
		w.out = append(w.out, '\n')
		if !isMapping {
			indent -= 2
		}
	}
	for first := true; w.in.More(); first = false {
		if first && at == behindDash {
			w.out = append(w.out, ' ')
		} else {
			w.indent(indent)
		}
		next := behindDash
		if isMapping {
			next = behindKey
			if err := w.key(indent); err != nil {
				return err
			}
		} else {
			w.out = append(w.out, '-')
		}
		if err := w.value(indent+2, next); err != nil {
			return err
		}
	}
	_, err := w.in.Token() // the closing bracket
	return err
}

// yamlKeyCharsMax is less than what YAML allows a key on one line to have without a "?" before it.
const yamlKeyCharsMax = 1000

func (w *yamlWriter) key(indent int) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string) // the keys of JSON are strings
	key := yamlString(name)
	if len(key) > yamlKeyCharsMax {
		w.out = append(append(append(w.out, "? "...), key...), '\n')
		w.indent(indent)
		key = ""
	}
	w.out = append(append(w.out, key...), ':')
	return nil
}

func (w *yamlWriter) indent(n int) { w.out = append(w.out, strings.Repeat(" ", n)...) }

// yamlPlain is what needs no quotes: words that begin with a letter.
var yamlPlain = regexp.MustCompile(`^[A-Za-z_](?:[A-Za-z0-9_./ -]{0,62}[A-Za-z0-9_./-])?$`)

// yamlWords are words that some reader takes for a truth value or null.
var yamlWords = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null)$`)

// What does not print is escaped: every escape of Go's is one of YAML's with the same meaning.
func yamlString(s string) string {
	if yamlPlain.MatchString(s) && !yamlWords.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
