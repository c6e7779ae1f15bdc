package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/connect"
)

// TestContextsPath: the file is in the folder that the environment names, if that is absolute.
func TestContextsPath(t *testing.T) {
	clitest.Isolated(t)
	t.Setenv("TROUPE_CONTEXTS", "")
	jane := t.TempDir()
	t.Setenv("HOME", filepath.Join(jane, "home"))
	for _, folder := range []string{"home/.config", "etc"} {
		file := filepath.Join(folder, "troupe", "contexts.yaml")
		clitest.PutFile(t, jane, file, "current: here\ncontexts: {here: {address: 'http://here', token: 'tok_"+folder+"'}}\n")
		require.NoError(t, os.Chmod(filepath.Join(jane, file), 0o600))
	}
	for config, folder := range map[string]string{"": "home/.config", filepath.Join(jane, "etc"): "etc", "relative": "home/.config"} {
		t.Setenv("XDG_CONFIG_HOME", config)
		_, token, err := (&connect.Connection{}).Resolve()
		assert.True(t, token == "tok_"+folder && err == nil, "XDG_CONFIG_HOME=%s: got %s, %v, want that of %s", config, token, err, folder)
	}
}

// TestConnection is the order in connect.go.
func TestConnection(t *testing.T) {
	dir := t.TempDir()
	write := func(name, token string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
		return path
	}
	flagFile, envFile := write("flag", "tok_flag"), write("env", "tok_envfile")
	text := "current: cur\ncontexts:\n" +
		"  cur: {address: 'http://cur', token: tok_cur}\n" +
		"  one: {address: 'http://one/', tokenFile: '" + write("one", "tok_one") + "'}\n" +
		"  bare: {address: 'http://bare'}\n"
	tests := []struct {
		name           string
		flags          connect.Connection
		env            map[string]string
		bare           bool // without the contexts file
		address, token string
		err            string
	}{
		{name: "the current context", address: "http://cur", token: "tok_cur"},
		{name: "TROUPE_CONTEXT", env: map[string]string{"TROUPE_CONTEXT": "one"}, address: "http://one/", token: "tok_one"},
		{name: "--context", flags: connect.Connection{Context: "one"}, env: map[string]string{"TROUPE_CONTEXT": "cur"}, address: "http://one/", token: "tok_one"},
		{name: "TROUPE_ADDRESS without a token", env: map[string]string{"TROUPE_ADDRESS": "http://env"}, err: "the context cur is for http://cur"},
		{name: "TROUPE_ADDRESS and TROUPE_TOKEN", env: map[string]string{"TROUPE_ADDRESS": "http://env", "TROUPE_TOKEN": "tok_env", "TROUPE_CONTEXT": "one"}, address: "http://env", token: "tok_env"},
		{name: "TROUPE_TOKEN alone", env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://cur", token: "tok_env"},
		{name: "TROUPE_TOKEN_FILE", env: map[string]string{"TROUPE_TOKEN_FILE": envFile}, address: "http://cur", token: "tok_envfile"},
		{name: "--context before the environment", flags: connect.Connection{Context: "one"}, env: map[string]string{"TROUPE_ADDRESS": "http://env", "TROUPE_TOKEN": "tok_env"}, address: "http://one/", token: "tok_one"},
		{name: "a context without a token", flags: connect.Connection{Context: "bare"}, env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://bare", token: "tok_env"},
		{name: "a context without any token", flags: connect.Connection{Context: "bare"}, err: "troupe context set bare --address http://bare --token-stdin"},
		{name: "--address that is the context's", flags: connect.Connection{Address: "http://one", Context: "one"}, address: "http://one", token: "tok_one"},
		{name: "--address that is not", flags: connect.Connection{Address: "http://evil", Context: "one"}, err: "there is no token for http://evil (that of the context one is for http://one/)"},
		{name: "--token-file", flags: connect.Connection{TokenFile: flagFile}, env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://cur", token: "tok_flag"},
		{name: "both flags, no look at the file", flags: connect.Connection{Address: "http://flag", TokenFile: flagFile}, env: map[string]string{"TROUPE_CONTEXT": "nowhere"}, address: "http://flag", token: "tok_flag"},
		{name: "an unknown context", flags: connect.Connection{Context: "oen"}, err: `there is no context "oen"`},
		{name: "an unknown TROUPE_CONTEXT", env: map[string]string{"TROUPE_CONTEXT": "nowhere"}, err: "TROUPE_CONTEXT: there is no context"},
		{name: "nothing at all", bare: true, err: "there is no token for http://127.0.0.1:8080. Create one"},
		{name: "the standard address", bare: true, env: map[string]string{"TROUPE_TOKEN": " tok_env\n"}, address: "http://127.0.0.1:8080", token: "tok_env"},
		{name: "a token that is none", env: map[string]string{"TROUPE_TOKEN": "hidden hidden"}, err: "TROUPE_TOKEN: not a token"},
		{name: "a token file that is not there", flags: connect.Connection{TokenFile: flagFile + "x"}, err: "--token-file: open"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clitest.Isolated(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if !test.bare {
				require.NoError(t, os.WriteFile(os.Getenv("TROUPE_CONTEXTS"), []byte(text), 0o600))
			}
			address, token, err := test.flags.Resolve()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "tok_") {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			assert.True(t, address == test.address && token == test.token && err == nil, "got %s, %s, %v, want %s, %s", address, token, err, test.address, test.token)
		})
	}
}
