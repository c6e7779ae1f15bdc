package diagram

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWrap: lines keep their bounds, and what was not cut is the whole text.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := clean(rapid.String().Draw(t, "text"))
		width, lines := rapid.IntRange(30, 200).Draw(t, "width"), rapid.IntRange(1, 3).Draw(t, "lines")
		got := noteFont.wrap(text, width, lines)
		if len(got) == 0 || len(got) > lines {
			t.Fatalf("%q: got %d lines, want 1 to %d", text, len(got), lines)
		}
		for _, line := range got {
			if noteFont.width(line) > width {
				t.Errorf("%q: the line %q is %d wide, want at most %d", text, line, noteFont.width(line), width)
			}
		}
		joined := strings.Join(got, "")
		if bare := strings.Join(strings.Fields(text), ""); !strings.HasSuffix(joined, "…") && strings.ReplaceAll(joined, " ", "") != bare {
			t.Errorf("%q: got %q", text, got)
		}
	})
}
