package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

func TestTheStoreIDStaysOutOfGit(t *testing.T) {
	const none = "\x00"
	for name, c := range map[string]struct{ before, after string }{
		"no file":         {none, "/data/\n/admin.sock\n/.store\n"},
		"an empty file":   {"", "/.store\n"},
		"other lines":     {"*.bak\n# mine\n", "*.bak\n# mine\n/.store\n"},
		"no end of line":  {"*.bak", "*.bak\n/.store\n"},
		"there already":   {"a\n/.store\nb\n", "a\n/.store\nb\n"},
		"without a slash": {".store \r\n", ".store \r\n"},
		"only mentioned":  {"# .store\n", "# .store\n/.store\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, homedir.GitIgnoreFile)
			if c.before != none {
				clitest.PutFile(t, home, homedir.GitIgnoreFile, c.before)
			}
			for range 2 { // the second time changes nothing
				require.NoError(t, ignoreStoreID(home))
				got, err := os.ReadFile(path)
				assert.True(t, err == nil && string(got) == c.after, "got %q, %v, want %q", got, err, c.after)
			}
		})
	}
}
