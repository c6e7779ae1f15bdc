package console

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPackages: every package of the licences is read, with all three parts.
func TestPackages(t *testing.T) {
	all := Packages()
	want := bytes.Count(licenses(), []byte("\n## "))
	assert.True(t, len(all) == want && want != 0, "got %d packages of %d", len(all), want)
	first := (Package{Name: "@cfworker/json-schema", Version: "4.1.6", License: "MIT"})
	assert.Equal(t, first, all[0])
}
