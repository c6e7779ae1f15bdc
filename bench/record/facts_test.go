package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordsAreNoChanges: what earlier measurements wrote makes no commit doubtful.
func TestRecordsAreNoChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // as hooks have them
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		text, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		require.NoError(t, err, "git %v, %s", args, text)
	}
	write := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(name), 0o600))
	}
	write("bench/results/record.md")
	got := commit()
	assert.True(t, regexp.MustCompile("^[0-9a-f]{12}$").MatchString(got), "with a record: got %q, want the commit alone", got)
	write("bench/other.md")
	t.Chdir("bench")
	got = commit()
	assert.True(t, regexp.MustCompile("^[0-9a-f]{12} with changes$").MatchString(got), "with another file, in a folder: got %q, want the commit with changes", got)
}

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		want    Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{3, 1}, Spread{1, 2, 3}},
		{[]float64{9, 1, 4}, Spread{1, 4, 9}},
	} {
		assert.Equal(t, c.want, SpreadOf(c.figures), c.figures)
	}
}
