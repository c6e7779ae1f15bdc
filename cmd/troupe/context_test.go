package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someToken = "tok_aaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

const otherToken = "tok_cccccccccccccccc.ddddddddddddddddddddddddddddddddddddddddddd"

func TestContextCommands(t *testing.T) {
	isolated(t)
	path := os.Getenv("TROUPE_CONTEXTS")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(otherToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = "CURRENT  NAME   ADDRESS                TOKEN\n"
	steps := []invocation{
		{name: "none yet", args: []string{"context", "list"}, stdout: "CURRENT  NAME  ADDRESS  TOKEN\n"},
		{name: "the first", stdin: someToken + "\n", args: []string{"context", "set", "local", "--address", "http://127.0.0.1:8080", "--token-stdin"}},
		{name: "it is current", args: []string{"context", "list"}, stdout: head + "*        local  http://127.0.0.1:8080  kept here\n"},
		{name: "without an address", args: []string{"context", "set", "far"}, code: exitUsage, stderr: "--address is missing"},
		{name: "a wrong address", args: []string{"context", "set", "far", "--address", "far"}, code: exitUsage, stderr: "must be a URL"},
		{name: "a wrong name", args: []string{"context", "set", "a b", "--address", "http://far"}, code: exitUsage, stderr: "a name has"},
		{name: "both kinds of token", args: []string{"context", "set", "far", "--address", "http://far", "--token-file", file, "--token-stdin"}, code: exitUsage, stderr: "exclude"},
		{name: "no token in it", stdin: "\n", args: []string{"context", "set", "far", "--address", "http://far", "--token-stdin"}, code: exitFailed, stderr: "it holds no token"},
		{name: "two lines", stdin: someToken + "\nx\n", args: []string{"context", "set", "far", "--address", "http://far", "--token-stdin"}, code: exitFailed, stderr: "this is not a token"},
		{name: "a file that is not there", args: []string{"context", "set", "far", "--address", "http://far", "--token-file", file + "x"}, code: exitFailed, stderr: "no such file"},
		{name: "a second", args: []string{"context", "set", "far", "--address", "https://far/x/", "--token-file", file}, stderr: "the current context is still local; troupe context use far\n"},
		{name: "use it", args: []string{"context", "use", "far"}},
		{name: "use another", args: []string{"context", "use", "lokal"}, code: exitFailed, stderr: `did you mean "local"?`},
		{name: "the token goes with the address", args: []string{"context", "set", "local", "--address", "http://127.0.0.1:9999"}, stderr: "is forgotten"},
		{name: "both", args: []string{"context", "list"}, stdout: head + "         local  http://127.0.0.1:9999  none\n*        far    https://far/x/         in " + file + "\n"},
		{name: "remove", args: []string{"context", "remove", "far"}, stderr: "no current context"},
		{name: "remove what is not there", args: []string{"context", "remove", "far"}, code: exitFailed, stderr: "there is no context"},
		{name: "one left", args: []string{"context", "list"}, stdout: head + "         local  http://127.0.0.1:9999  none\n"},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.run(t)
			st, err := os.Stat(path)
			if err == nil && st.Mode().Perm() != 0o600 {
				t.Errorf("got mode %v, want 0600", st.Mode())
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".contexts-*")); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v, want nothing left behind", left, err)
	}
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
			isolated(t)
			path := os.Getenv("TROUPE_CONTEXTS")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"context", "list"}, {"instance", "show", "a", "b"}} {
				code, stdout, stderr := invoke(args...)
				if code != exitFailed || stdout != "" || !strings.Contains(stderr, test.want) || strings.Contains(stderr, otherToken) {
					t.Errorf("%v: got code %d, %q and %q, want %q and no token", args, code, stdout, stderr, test.want)
				}
			}
		})
	}
}

func TestContextsPath(t *testing.T) {
	isolated(t)
	t.Setenv("TROUPE_CONTEXTS", "")
	t.Setenv("HOME", "/home/jane")
	for _, test := range []struct{ config, want string }{
		{"", "/home/jane/.config/troupe/contexts.yaml"},
		{"/etc/jane", "/etc/jane/troupe/contexts.yaml"},
		{"relative", "/home/jane/.config/troupe/contexts.yaml"},
	} {
		t.Setenv("XDG_CONFIG_HOME", test.config)
		if got, err := contextsPath(); got != test.want || err != nil {
			t.Errorf("XDG_CONFIG_HOME=%s: got %s, %v, want %s", test.config, got, err, test.want)
		}
	}
}

func TestContextsFileMayBeALink(t *testing.T) {
	isolated(t)
	target := filepath.Join(t.TempDir(), "real.yaml")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, os.Getenv("TROUPE_CONTEXTS")); err != nil {
		t.Fatal(err)
	}
	(&invocation{args: []string{"context", "set", "a", "--address", "http://a"}}).run(t)
	if text, err := os.ReadFile(target); err != nil || !bytes.Contains(text, []byte("http://a")) {
		t.Errorf("got %q, %v, want the context there", text, err)
	}
}

// TestConnection is the order in connect.go.
func TestConnection(t *testing.T) {
	dir := t.TempDir()
	write := func(name, token string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flagFile, envFile := write("flag", "tok_flag"), write("env", "tok_envfile")
	text := "current: cur\ncontexts:\n" +
		"  cur: {address: 'http://cur', token: tok_cur}\n" +
		"  one: {address: 'http://one/', tokenFile: '" + write("one", "tok_one") + "'}\n" +
		"  bare: {address: 'http://bare'}\n"
	tests := []struct {
		name           string
		flags          connection
		env            map[string]string
		bare           bool // without the contexts file
		address, token string
		err            string
	}{
		{name: "the current context", address: "http://cur", token: "tok_cur"},
		{name: "TROUPE_CONTEXT", env: map[string]string{"TROUPE_CONTEXT": "one"}, address: "http://one/", token: "tok_one"},
		{name: "--context", flags: connection{context: "one"}, env: map[string]string{"TROUPE_CONTEXT": "cur"}, address: "http://one/", token: "tok_one"},
		{name: "TROUPE_ADDRESS without a token", env: map[string]string{"TROUPE_ADDRESS": "http://env"}, err: "the context cur is for http://cur"},
		{name: "TROUPE_ADDRESS and TROUPE_TOKEN", env: map[string]string{"TROUPE_ADDRESS": "http://env", "TROUPE_TOKEN": "tok_env", "TROUPE_CONTEXT": "one"}, address: "http://env", token: "tok_env"},
		{name: "TROUPE_TOKEN alone", env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://cur", token: "tok_env"},
		{name: "TROUPE_TOKEN_FILE", env: map[string]string{"TROUPE_TOKEN_FILE": envFile}, address: "http://cur", token: "tok_envfile"},
		{name: "--context before the environment", flags: connection{context: "one"}, env: map[string]string{"TROUPE_ADDRESS": "http://env", "TROUPE_TOKEN": "tok_env"}, address: "http://one/", token: "tok_one"},
		{name: "a context without a token", flags: connection{context: "bare"}, env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://bare", token: "tok_env"},
		{name: "a context without any token", flags: connection{context: "bare"}, err: "troupe context set bare --address http://bare --token-stdin"},
		{name: "--address that is the context's", flags: connection{address: "http://one", context: "one"}, address: "http://one", token: "tok_one"},
		{name: "--address that is not", flags: connection{address: "http://evil", context: "one"}, err: "there is no token for http://evil (that of the context one is for http://one/)"},
		{name: "--token-file", flags: connection{tokenFile: flagFile}, env: map[string]string{"TROUPE_TOKEN": "tok_env"}, address: "http://cur", token: "tok_flag"},
		{name: "both flags, no look at the file", flags: connection{address: "http://flag", tokenFile: flagFile}, env: map[string]string{"TROUPE_CONTEXT": "nowhere"}, address: "http://flag", token: "tok_flag"},
		{name: "an unknown context", flags: connection{context: "oen"}, err: `there is no context "oen"`},
		{name: "an unknown TROUPE_CONTEXT", env: map[string]string{"TROUPE_CONTEXT": "nowhere"}, err: "TROUPE_CONTEXT: there is no context"},
		{name: "nothing at all", bare: true, err: "there is no token for http://127.0.0.1:8080. Make one"},
		{name: "the standard address", bare: true, env: map[string]string{"TROUPE_TOKEN": " tok_env\n"}, address: standardAddress, token: "tok_env"},
		{name: "a token that is none", env: map[string]string{"TROUPE_TOKEN": "hidden hidden"}, err: "TROUPE_TOKEN: this is not a token"},
		{name: "a token file that is not there", flags: connection{tokenFile: flagFile + "x"}, err: "--token-file: open"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			isolated(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if !test.bare {
				if err := os.WriteFile(os.Getenv("TROUPE_CONTEXTS"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			address, token, err := test.flags.resolve()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "tok_") {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if address != test.address || token != test.token || err != nil {
				t.Errorf("got %s, %s, %v, want %s, %s", address, token, err, test.address, test.token)
			}
		})
	}
}

// TestTokensAreNotShown runs commands with tokens that do not work and looks for
// them in what is printed.
func TestTokensAreNotShown(t *testing.T) {
	s := startService(t)
	t.Setenv("TROUPE_TOKEN", otherToken)
	for _, args := range [][]string{
		{"instance", "list", "leave"},
		{"instance", "watch", "leave"},
		{"instance", "create", "leave"},
		{"instance", "list", "leave", "--address", "http://127.0.0.1:1"},
	} {
		code, stdout, stderr := invoke(args...)
		if code != exitFailed || strings.Contains(stdout+stderr, otherToken) || strings.Contains(stdout+stderr, otherToken[20:]) {
			t.Errorf("%v: got code %d, %q and %q", args, code, stdout, stderr)
		}
	}
	if _, _, stderr := invoke("instance", "list", "leave"); !strings.Contains(stderr, "401 Unauthorized") || !strings.Contains(stderr, "troupe token list") {
		t.Errorf("got %q, want a 401 and what to look at", stderr)
	}
	if len(s.Requests()) == 0 {
		t.Error("nothing was asked")
	}
}
