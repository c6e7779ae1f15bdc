package author

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// TestComingFrom: the home of the page for users of other systems is right, its tests pass and reach everything, and the page quotes
// its files. What the page has in JSON and XML is well-formed.
func TestComingFrom(t *testing.T) {
	folder := filepath.Join(clitest.Tree(), "cmd", "troupe")
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.CopyFS(home, os.DirFS(filepath.Join(folder, "coming"))))
	code, stdout, stderr := clitest.Invoke("check", "--home", home)
	assert.True(t, code == cli.ExitDone && stdout == "", "got code %d\n%s%s", code, stdout, stderr)
	out := clitest.MustInvoke(t, "test", home, "--coverage", filepath.Join(t.TempDir(), "coverage.html"))
	assert.Equal(t, 6, strings.Count(out, "passed "), out)
	assert.Contains(t, out, "100 %")

	page, err := os.ReadFile(filepath.Join(folder, "COMING.md"))
	require.NoError(t, err)
	quoted := regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```yaml\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	require.Len(t, quoted, 2)
	for _, q := range quoted {
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(q[1])))
		require.NoError(t, err)
		assert.Equal(t, string(text), q[2], q[1])
	}
	for _, block := range regexp.MustCompile("(?s)\n```(json|xml)\n(.*?)```\n").FindAllStringSubmatch(string(page), -1) {
		if block[1] == "json" {
			assert.True(t, json.Valid([]byte(block[2])))
			continue
		}
		for decoder := xml.NewDecoder(strings.NewReader(block[2])); ; {
			if _, err := decoder.Token(); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
	}
}
