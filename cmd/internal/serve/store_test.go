package serve

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// TestAPipeInPlaceOfAGitIgnore is refused, as those of testdata/transcripts/store.txt are.
func TestAPipeInPlaceOfAGitIgnore(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(home, homedir.GitIgnoreFile), 0o600))
	assert.Error(t, ignoreStoreID(home))
}

// TestASocketThatWasRemoved leaves commands without an answer while the store is in
// use; they say what to do.
func TestASocketThatWasRemoved(t *testing.T) {
	dir := bareHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	code, stdout, stderr := clitest.Invoke("token", "list", "--home", dir)
	assert.True(t, code == cli.ExitFailed && stdout == "" && strings.Contains(stderr, "does not answer at "+homedir.AdminSocket) && strings.Contains(stderr, "restart the server"), stderr)
}
