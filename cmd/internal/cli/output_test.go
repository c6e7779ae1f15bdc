package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJSONOnATerminal holds that JSON cannot steer a terminal, and stays the
// same JSON.
func TestJSONOnATerminal(t *testing.T) {
	text := "{\"a\\n\": \"\u009b2J\u202e\U000e0001\x7f é\",\n \"b\": 1.50}"
	var b bytes.Buffer
	o := Output{Form: FormJSON, To: &b, terminal: true}
	require.NoError(t, o.Document([]byte(text)))
	assert.Equal(t, "{\"a\\n\": \"\\u009b2J\\u202e\\udb40\\udc01\\u007f é\",\n \"b\": 1.50}\n", b.String())
	var got, want map[string]any
	err := errors.Join(json.Unmarshal(b.Bytes(), &got), json.Unmarshal([]byte(text), &want))
	assert.True(t, err == nil && maps.Equal(got, want), "got %v, %v, want %v", got, err, want)
	b.Reset()
	o.terminal = false
	err = o.Document([]byte(text))
	assert.True(t, err == nil && strings.TrimSuffix(b.String(), "\n") == text, "to a file: got %q, %v, want the same bytes", b.String(), err)
}
