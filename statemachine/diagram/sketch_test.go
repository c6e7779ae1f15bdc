package diagram_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/diagram"
	"troupe/statemachine/document"
)

// TestFaultyFilesAreDrawn leaves out each line of a definition in turn, and in turns what stands behind it or writes what is no YAML, and draws
// the rest.
func TestFaultyFilesAreDrawn(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	files, err := filepath.Glob("../../cmd/troupe/example/workflows/*.yaml")
	require.True(t, err == nil && len(files) != 0, "%v %v", files, err)
	drawn, nothing := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := strings.SplitAfter(string(text), "\n")
		for at := range lines {
			before, behind := strings.Join(lines[:at], ""), strings.Join(lines[at+1:], "")
			for _, draft := range []string{before + behind, before + []string{"", "  }: [\n" + behind}[at%2]} {
				chart, err := parser.Sketch(statemachine.Source{File: "w.yaml", Text: []byte(draft)})
				faults := document.Faults(nil)
				require.False(t, err != nil && !errors.As(err, &faults), "%s without line %d: %v, want Faults", file, at+1, err)
				if chart == nil {
					nothing++
					continue
				}
				drawn++
				picture := &diagram.Picture{Chart: chart}
				require.True(t, len(picture.SVG()) != 0 && len(picture.Mermaid()) != 0 && len(picture.DOT()) != 0, "%s without line %d: an empty picture", file, at+1)
			}
		}
	}
	assert.GreaterOrEqual(t, drawn, nothing, "drafts are drawn")
}
