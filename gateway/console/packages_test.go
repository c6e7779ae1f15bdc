package console

import (
	"bytes"
	"testing"
)

// TestPackages: every package of the licences is read, with all three parts.
func TestPackages(t *testing.T) {
	all := Packages()
	if want := bytes.Count(licenses(), []byte("\n## ")); len(all) != want || want == 0 {
		t.Errorf("got %d packages of %d", len(all), want)
	}
	if first := (Package{Name: "@cfworker/json-schema", Version: "4.1.6", License: "MIT"}); all[0] != first {
		t.Errorf("got %+v, want %+v", all[0], first)
	}
}
