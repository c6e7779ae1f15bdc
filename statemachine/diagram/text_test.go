package diagram

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWrap: lines keep their bounds, and what was not cut is the whole text.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := clean(rapid.String().Draw(t, "text"))
		width, lines := rapid.IntRange(30, 200).Draw(t, "width"), rapid.IntRange(1, 3).Draw(t, "lines")
		got := noteFont.wrap(text, width, lines)
		require.True(t, len(got) != 0 && len(got) <= lines, "%q: got %d lines, want 1 to %d", text, len(got), lines)
		for _, line := range got {
			assert.LessOrEqual(t, noteFont.width(line), width, "%q: the line %q", text, line)
		}
		joined := strings.Join(got, "")
		assert.False(t, !strings.HasSuffix(joined, "…") && strings.ReplaceAll(joined, " ", "") != strings.Join(strings.Fields(text), ""), "%q: got %q", text, got)
	})
}
