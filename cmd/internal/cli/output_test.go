package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

// TestJSONOnATerminal holds that JSON cannot steer a terminal, and stays the
// same JSON.
func TestJSONOnATerminal(t *testing.T) {
	text := "{\"a\\n\": \"\u009b2J\u202e\U000e0001\x7f é\",\n \"b\": 1.50}"
	var b bytes.Buffer
	o := Output{Form: FormJSON, To: &b, terminal: true}
	if err := o.Document([]byte(text)); err != nil {
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
	if err := o.Document([]byte(text)); err != nil || strings.TrimSuffix(b.String(), "\n") != text {
		t.Errorf("to a file: got %q, %v, want the same bytes", b.String(), err)
	}
}
