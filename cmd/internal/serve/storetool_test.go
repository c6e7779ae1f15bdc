package serve

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// openWithCommands is mustOpenService with the admin socket.
func openWithCommands(t *testing.T, dir string) *opened {
	t.Helper()
	o := mustOpenService(t, dir)
	o.config.Admin = ""
	require.NoError(t, o.takeCommands())
	return o
}

// newest is the file of the store with a suffix or prefix that comes last.
func newest(t *testing.T, dir string, is func(name, part string) bool, part string) string {
	t.Helper()
	entries, err := os.ReadDir(homedir.Data(dir))
	require.NoError(t, err)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !is(e.Name(), part) })
	require.NotEmpty(t, entries, part)
	return filepath.Join(homedir.Data(dir), entries[len(entries)-1].Name())
}

// whileDamaged flips a bit in the middle of a file, in place, as long as it calls do.
func whileDamaged(t *testing.T, path string, do func()) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	at := int64(len(bytes.TrimRight(text, "\x00")) / 3)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	put := func(b byte) {
		_, err := f.WriteAt([]byte{b}, at)
		require.NoError(t, err)
	}
	put(text[at] ^ 0x10)
	do()
	put(text[at])
}

// TestStoreCommands holds cmd/troupe/HOME.md, "Checking and compacting the store": damage in a table, in the live log and in the MANIFEST is found,
// while a server runs and while none does, one line each.
func TestStoreCommands(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := openWithCommands(t, dir)
	create := func() {
		t.Helper()
		_, err := o.router.Create(t.Context(), &message.Create{Caller: o.identities.Directory().Principal("john.doe"), WorkflowID: "leave-request"})
		require.NoError(t, err)
	}
	for range 20 {
		create()
	}
	run := func(command string, more ...string) (code int, stdout, stderr string) {
		return clitest.Invoke(append([]string{"store", command, "--home", dir}, more...)...)
	}
	whole := func(when string) {
		t.Helper()
		code, stdout, stderr := run("verify")
		assert.True(t, code == cli.ExitDone && strings.HasPrefix(stdout, "read ") && stderr == "", "%s: %d %s %s", when, code, stdout, stderr)
	}
	damaged := func(file string) {
		t.Helper()
		whileDamaged(t, file, func() {
			code, stdout, stderr := run("verify")
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			assert.Equal(t, cli.ExitFailed, code)
			assert.True(t, strings.HasPrefix(lines[0], "damaged: "+filepath.Base(file)), stdout)
			assert.Equal(t, 1, strings.Count(stdout, filepath.Base(file)+":")+strings.Count(stdout, filepath.Base(file)+" at"), stdout)
			assert.Regexp(t, `^troupe: \d damages?[:,]`, stderr)
		})
	}
	all := func() {
		t.Helper()
		damaged(newest(t, dir, strings.HasPrefix, "MANIFEST-"))
		damaged(newest(t, dir, strings.HasSuffix, ".log"))
		damaged(newest(t, dir, strings.HasSuffix, ".sst"))
	}
	whole("at first")
	code, stdout, stderr := run("compact")
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, "are now 1 table") && strings.Contains(stdout, "MANIFEST-"), "%s %s", stdout, stderr)
	create()
	require.NoError(t, o.store.AwaitDurable())
	whole("with a table and a log")
	damaged(newest(t, dir, strings.HasPrefix, "MANIFEST-"))
	damaged(newest(t, dir, strings.HasSuffix, ".sst"))
	code, stdout, stderr = run("stats", "-o", "json")
	var sizes struct {
		Workflows []struct {
			WorkflowID string
			Instances  int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &sizes), "%d %s", code, stderr)
	assert.Equal(t, "leave-request", sizes.Workflows[0].WorkflowID)
	assert.Equal(t, 21, sizes.Workflows[0].Instances)
	code, stdout, stderr = run("export")
	require.Equal(t, cli.ExitDone, code, stderr)
	lines := filepath.Join(t.TempDir(), "instances.jsonl")
	require.NoError(t, os.WriteFile(lines, []byte(stdout), 0o600))
	code, stdout, stderr = run("import", lines)
	assert.True(t, code == cli.ExitDone && stdout == "imported 0 instances, skipped 21 that were there\n" && stderr == "", "%d %s %s", code, stdout, stderr)
	o.close()

	whole("without a server")
	all()
	code, stdout, _ = run("stats")
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, "\nhistory "), stdout)
	code, stdout, stderr = run("compact")
	assert.True(t, code == cli.ExitDone && stderr == "" && !strings.Contains(stdout, "MANIFEST"), "%s %s", stdout, stderr)
	whole("compacted without a server")
	code, _, stderr = clitest.Invoke("store", "verify", "--home", t.TempDir())
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "there is no home in"), stderr)
}
