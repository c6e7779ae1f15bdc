package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "Ana é 日本 😀 a\\b", "Ana é 日本 😀 a\\b"},
		{"control characters", "a\tb\nc\x1b[31m\x00\x7f", `a\tb\nc\x1b[31m\x00\x7f`},
		{"C1", "\u009b31m", `\u009b31m`},
		{"direction", "a\u202eb\u2066", `a\u202eb\u2066`},
		{"line separators", "\u2028\u2029\u0085", `\u2028\u2029\u0085`},
		{"no UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"a real replacement character", "�", "�"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := printable(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestJSONOnATerminal holds that JSON cannot steer a terminal, and stays the
// same JSON.
func TestJSONOnATerminal(t *testing.T) {
	text := "{\"a\\n\": \"\u009b2J\u202e\U000e0001\x7f é\",\n \"b\": 1.50}"
	var b bytes.Buffer
	o := output{form: formJSON, to: &b, terminal: true}
	if err := o.document([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if want := "{\"a\\n\": \"\\u009b2J\\u202e\\udb40\\udc01\\u007f é\",\n \"b\": 1.50}\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(b.Bytes(), &got), json.Unmarshal([]byte(text), &want)); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	b.Reset()
	o.terminal = false
	if err := o.document([]byte(text)); err != nil || strings.TrimSuffix(b.String(), "\n") != text {
		t.Errorf("to a file: got %q, %v, want the same bytes", b.String(), err)
	}
}
