package harness

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAFolderIsNoControlGroup: only the kernel makes the files of one.
func TestAFolderIsNoControlGroup(t *testing.T) {
	root := t.TempDir()
	_, err := groupBelow(root, "cpu", "mine", nil, []Setting{{"cpu.max", "1 2"}})
	assert.ErrorIs(t, err, os.ErrNotExist, "a group was made in a plain folder")
	left, err := os.ReadDir(root)
	assert.True(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}
