package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRecordsAreNoChanges: what earlier measurements wrote makes no commit doubtful.
func TestRecordsAreNoChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // as hooks have them
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if text, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	write := func(name string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bench/results/record.md")
	if got := commit(); !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(got) {
		t.Errorf("with a record: got %q, want the commit alone", got)
	}
	write("bench/other.md")
	t.Chdir("bench")
	if got := commit(); !regexp.MustCompile("^[0-9a-f]{12} with changes$").MatchString(got) {
		t.Errorf("with another file, in a folder: got %q, want the commit with changes", got)
	}
}
