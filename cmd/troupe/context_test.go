package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

const someToken = "tok_aaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

const otherToken = "tok_cccccccccccccccc.ddddddddddddddddddddddddddddddddddddddddddd"

func TestContextCommands(t *testing.T) {
	clitest.Isolated(t)
	path := os.Getenv("TROUPE_CONTEXTS")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(otherToken+"\n"), 0o600))
	const head = "CURRENT  NAME   ADDRESS                TOKEN\n"
	steps := []clitest.Invocation{
		{Name: "none yet", Args: []string{"context", "list"}, Stdout: "CURRENT  NAME  ADDRESS  TOKEN\n"},
		{Name: "the first", Stdin: someToken + "\n", Args: []string{"context", "set", "local", "--address", "http://127.0.0.1:8080", "--token-stdin"}},
		{Name: "it is current", Args: []string{"context", "list"}, Stdout: head + "*        local  http://127.0.0.1:8080  kept here\n"},
		{Name: "without an address", Args: []string{"context", "set", "far"}, Code: cli.ExitUsage, Stderr: "--address is missing"},
		{Name: "a wrong address", Args: []string{"context", "set", "far", "--address", "far"}, Code: cli.ExitUsage, Stderr: "must be a URL"},
		{Name: "a wrong name", Args: []string{"context", "set", "a b", "--address", "http://far"}, Code: cli.ExitUsage, Stderr: "a name has"},
		{Name: "both kinds of token", Args: []string{"context", "set", "far", "--address", "http://far", "--token-file", file, "--token-stdin"}, Code: cli.ExitUsage, Stderr: "cannot be combined"},
		{Name: "no token in it", Stdin: "\n", Args: []string{"context", "set", "far", "--address", "http://far", "--token-stdin"}, Code: cli.ExitFailed, Stderr: "it has no token"},
		{Name: "two lines", Stdin: someToken + "\nx\n", Args: []string{"context", "set", "far", "--address", "http://far", "--token-stdin"}, Code: cli.ExitFailed, Stderr: "not a token"},
		{Name: "a file that is not there", Args: []string{"context", "set", "far", "--address", "http://far", "--token-file", file + "x"}, Code: cli.ExitFailed, Stderr: "no such file"},
		{Name: "a second", Args: []string{"context", "set", "far", "--address", "https://far/x/", "--token-file", file}, Stderr: "the current context is still local; to select this one: troupe context use far\n"},
		{Name: "use it", Args: []string{"context", "use", "far"}},
		{Name: "use another", Args: []string{"context", "use", "lokal"}, Code: cli.ExitFailed, Stderr: `did you mean "local"?`},
		{Name: "the token goes with the address", Args: []string{"context", "set", "local", "--address", "http://127.0.0.1:9999"}, Stderr: "was removed"},
		{Name: "both", Args: []string{"context", "list"}, Stdout: head + "         local  http://127.0.0.1:9999  none\n*        far    https://far/x/         in " + file + "\n"},
		{Name: "remove", Args: []string{"context", "remove", "far"}, Stderr: "no current context"},
		{Name: "remove what is not there", Args: []string{"context", "remove", "far"}, Code: cli.ExitFailed, Stderr: "there is no context"},
		{Name: "one left", Args: []string{"context", "list"}, Stdout: head + "         local  http://127.0.0.1:9999  none\n"},
	}
	for _, step := range steps {
		t.Run(step.Name, func(t *testing.T) {
			step.Run(t)
			st, err := os.Stat(path)
			if err == nil && st.Mode().Perm() != 0o600 {
				t.Errorf("got mode %v, want 0600", st.Mode())
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".contexts-*"))
	assert.True(t, err == nil && len(left) == 0, "got %v, %v, want nothing left behind", left, err)
}

func TestContextsFileIsRefused(t *testing.T) {
	tests := []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"readable by a group", "", 0o640, "chmod 600"},
		{"readable by all", "", 0o604, "chmod 600"},
		{"writable by a group", "", 0o620, "chmod 600"},
		{"no YAML", "a: [" + otherToken, 0o600, "not valid YAML"},
		{"an unknown key", "contests: {}", 0o600, "contests"},
		{"a list", "contexts: [a]", 0o600, "must be a mapping"},
		{"no address", "contexts: {a: {}}", 0o600, "the address is missing"},
		{"a token that is none", "contexts: {a: {address: 'http://a', token: {" + otherToken + ": 1}}}", 0o600, "must be a string"},
		{"two tokens", "contexts: {a: {address: 'http://a', token: " + otherToken + ", tokenFile: b}}", 0o600, "both"},
		{"a current one that is not there", "current: b\ncontexts: {a: {address: 'http://a'}}", 0o600, "there is no context of this name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clitest.Isolated(t)
			path := os.Getenv("TROUPE_CONTEXTS")
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			require.NoError(t, os.Chmod(path, test.mode))
			for _, args := range [][]string{{"context", "list"}, {"instance", "show", "a", "b"}} {
				code, stdout, stderr := clitest.Invoke(args...)
				assert.True(t, code == cli.ExitFailed && stdout == "" && strings.Contains(stderr, test.want) && !strings.Contains(stderr, otherToken),
					"%v: got code %d, %q and %q, want %q and no token", args, code, stdout, stderr, test.want)
			}
		})
	}
}

func TestContextsFileMayBeALink(t *testing.T) {
	clitest.Isolated(t)
	target := filepath.Join(t.TempDir(), "real.yaml")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	require.NoError(t, os.Symlink(target, os.Getenv("TROUPE_CONTEXTS")))
	(&clitest.Invocation{Args: []string{"context", "set", "a", "--address", "http://a"}}).Run(t)
	text, err := os.ReadFile(target)
	assert.True(t, err == nil && bytes.Contains(text, []byte("http://a")), "got %q, %v, want the context there", text, err)
}

// TestTokensAreNotShown runs commands with tokens that do not work and looks for
// them in what is printed.
func TestTokensAreNotShown(t *testing.T) {
	s := clitest.StartService(t)
	t.Setenv("TROUPE_TOKEN", otherToken)
	for _, args := range [][]string{
		{"instance", "list", "leave"},
		{"instance", "watch", "leave"},
		{"instance", "create", "leave"},
		{"instance", "list", "leave", "--address", "http://127.0.0.1:1"},
	} {
		code, stdout, stderr := clitest.Invoke(args...)
		assert.True(t, code == cli.ExitFailed && !strings.Contains(stdout+stderr, otherToken) && !strings.Contains(stdout+stderr, otherToken[20:]),
			"%v: got code %d, %q and %q", args, code, stdout, stderr)
	}
	_, _, stderr := clitest.Invoke("instance", "list", "leave")
	assert.True(t, strings.Contains(stderr, "401 Unauthorized") && strings.Contains(stderr, "troupe token list"), "got %q, want a 401 and what to look at", stderr)
	assert.NotEmpty(t, s.Requests(), "nothing was asked")
}
