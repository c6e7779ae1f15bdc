package diagram_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"troupe/statemachine"
	"troupe/statemachine/diagram"
	"troupe/statemachine/document"
)

// TestFaultyFilesAreDrawn leaves out each line of a definition in turn, and what stands behind it, and draws the rest.
func TestFaultyFilesAreDrawn(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../cmd/troupe/example/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	drawn, nothing := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		for at := range lines {
			for _, draft := range []string{
				strings.Join(lines[:at], "") + strings.Join(lines[at+1:], ""),
				strings.Join(lines[:at], ""),
				strings.Join(lines[:at], "") + "  }: [\n" + strings.Join(lines[at:], ""),
			} {
				chart, err := parser.Sketch(statemachine.Source{File: "w.yaml", Text: []byte(draft)})
				if faults := document.Faults(nil); err != nil && !errors.As(err, &faults) {
					t.Fatalf("%s without line %d: %v, want Faults", file, at+1, err)
				}
				if chart == nil {
					nothing++
					continue
				}
				drawn++
				picture := &diagram.Picture{Chart: chart}
				if len(picture.SVG()) == 0 || len(picture.Mermaid()) == 0 || len(picture.DOT()) == 0 {
					t.Fatalf("%s without line %d: an empty picture", file, at+1)
				}
			}
		}
	}
	if drawn < nothing {
		t.Errorf("%d drafts are drawn and %d are not", drawn, nothing)
	}
}
