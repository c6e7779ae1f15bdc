package treecheck

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVulnerabilities: the step of .ci/run says when it looks at nothing, takes no
// folder for a database that is none, and fails when govulncheck finds something
// (persistence/PROMISES.md, "F19").
func TestVulnerabilities(t *testing.T) {
	script, err := filepath.Abs("../../../.ci/vulnerabilities")
	require.NoError(t, err)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^version=(v\S+)`).FindSubmatch(text)
	require.NotNil(t, version, "the script names no version")
	// In place of govulncheck: it shows what it is asked, and finds something.
	tools := t.TempDir()
	folder := filepath.Join(tools, "govulncheck-"+string(version[1])+"-"+runtime.Version())
	write := func(name, content string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o755))
	}
	write(filepath.Join(folder, "govulncheck"), "#!/bin/sh\necho \"asked: $*\"\nexit 3\n")
	database, empty := t.TempDir(), t.TempDir()
	write(filepath.Join(database, "index", "db.json"), "{}")
	write(filepath.Join(database, "index", "modules.json"), "[]")
	for _, c := range []struct {
		database string
		code     int
		part     string
	}{
		{"", 0, "no database: skipped"},
		{empty, 1, "has no index/db.json"},
		{"file://" + filepath.Join(empty, "nowhere"), 1, "has no index/db.json"},
		{database, 3, "asked: -db file://" + database + " ./..."},
		{"file://" + database, 3, "asked: -db file://" + database + " ./..."},
		{"https://vuln.example", 3, "asked: -db https://vuln.example ./..."},
	} {
		cmd := exec.Command(script)
		cmd.Env = append(os.Environ(), "GOVULNDB="+c.database, "TROUPE_TOOLS="+tools)
		out, err := cmd.CombinedOutput()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		assert.True(t, code == c.code && strings.Contains(string(out), c.part), "GOVULNDB=%q: got code %d and %s, want %d and %q", c.database, code, out, c.code, c.part)
	}
}
