package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

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

// TestTimesOnATerminal holds that people see how long ago something was, and that nothing else in a table changes.
func TestTimesOnATerminal(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	rows := [][]string{{"2026-12-01T09:28:00.000Z", "2026-12-04T09:30:00Z"}, {"2026-12-01", "at 2026-12-01T09:28:00Z"}}
	relateTimes(rows, now)
	assert.Equal(t, [][]string{{"2 minutes ago", "3 days from now"}, {"2026-12-01", "at 2026-12-01T09:28:00Z"}}, rows)
}
