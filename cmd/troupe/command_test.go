package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// invoke runs one command line in this process.
func invoke(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func exampleHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if filled, err := ensureHome(dir); !filled || err != nil {
		t.Fatalf("ensureHome: got %v, %v, want a filled home", filled, err)
	}
	return dir
}

// TestEveryCommandHelps holds home.md: every command has --help with an example.
func TestEveryCommandHelps(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
			if below.Example == "" || below.Short == "" {
				t.Errorf("%s has no example or no description", below.CommandPath())
			}
			args := append(strings.Fields(below.CommandPath())[1:], "--help")
			code, stdout, stderr := invoke(args...)
			if code != exitDone || !strings.Contains(stdout, below.Example) || stderr != "" {
				t.Errorf("%v: got code %d, %q on stderr and this help:\n%s", args, code, stderr, stdout)
			}
		}
	}
	visit(newRoot())
}

func TestExitCodes(t *testing.T) {
	home := exampleHome(t)
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"no command", nil, exitUsage},
		{"an unknown command", []string{"server"}, exitUsage},
		{"a group without a command", []string{"token"}, exitUsage},
		{"an unknown command of a group", []string{"token", "make"}, exitUsage},
		{"an unknown flag", []string{"check", "--hom", home}, exitUsage},
		{"a flag without its value", []string{"check", "--home"}, exitUsage},
		{"an argument too many", []string{"check", "here"}, exitUsage},
		{"an argument too few", []string{"token", "revoke", "--home", home}, exitUsage},
		{"no user", []string{"token", "create", "--home", home}, exitUsage},
		{"a wrong time", []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "soon"}, exitUsage},
		{"no time at all", []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "0s"}, exitUsage},
		{"an unknown user", []string{"token", "create", "--home", home, "--user", "nobody"}, exitFailed},
		{"a note of two lines", []string{"token", "create", "--home", home, "--user", "john.doe", "--note", "a\nb"}, exitFailed},
		{"an unknown token", []string{"token", "revoke", "--home", home, "tok_aaaaaaaaaaaaaaaa"}, exitFailed},
		{"a home that is not there", []string{"check", "--home", filepath.Join(home, "no")}, exitFailed},
		{"a good home", []string{"check", "--home", home}, exitDone},
		{"the settings", []string{"config", "--home", home}, exitDone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := invoke(test.args...)
			if code != test.want {
				t.Errorf("got code %d, want %d\n%s%s", code, test.want, stdout, stderr)
			}
			if code != exitDone && (stdout != "" || !strings.HasPrefix(lastLines(stderr), "troupe: ")) {
				t.Errorf("got %q on stdout and %q on stderr, want nothing and a reason", stdout, stderr)
			}
		})
	}
}

// lastLines leaves out the help that comes before a reason.
func lastLines(text string) string {
	if i := strings.LastIndex(text, "troupe: "); i >= 0 {
		return text[i:]
	}
	return text
}

func TestCheckShowsAllFaults(t *testing.T) {
	home := exampleHome(t)
	spoil := func(name, old, now string) {
		path := filepath.Join(home, name)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(old)) {
			t.Fatalf("%s: %v, or it has no %q", name, err, old)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(now), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spoil("troupe.yaml", "# listen", "lissen")
	spoil("identity.yaml", "mod-form]", "mod-from]")
	spoil("workflows/leave-request.yaml", "target: approved", "target: aproved")
	spoil("forms/leave-form.yaml", "[leave-request]", "leave-request\nbound: yes")
	spoil("forms/feedback.yaml", "maxLength: 2000", "maxLength: many")
	spoil("checklists/workplace-safety.yaml", "label: All", "lable: All")
	code, stdout, _ := invoke("check", "--home", home)
	for _, want := range []string{
		`troupe\.yaml:\d+:\d+: `, `identity\.yaml:\d+:\d+: .*mod-form`, `workflows/leave-request\.yaml:\d+:\d+: .*approved`,
		`forms/leave-form\.yaml:\d+:\d+: unknown key "bound"`, `forms/feedback\.yaml:\d+:\d+: JSON Schema`, `checklists/workplace-safety\.yaml:\d+:\d+: .*label`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(stdout) {
			t.Errorf("got no fault like %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "unknown workflow") {
		t.Errorf("a workflow with faults is called unknown:\n%s", stdout)
	}
	if code != exitFailed {
		t.Errorf("got code %d, want %d", code, exitFailed)
	}
}

// TestCredentialsWithoutServer makes, lists and revokes while no server runs.
func TestCredentialsWithoutServer(t *testing.T) {
	home := exampleHome(t)
	secretForm := regexp.MustCompile(`^((?:tok|ses)_[a-z2-7]{16})\.([A-Za-z0-9_-]{43})\n$`)
	for _, kind := range []string{"token", "session"} {
		code, stdout, stderr := invoke(kind, "create", "--home", home, "--user", "john.doe", "--note", "first steps")
		parts := secretForm.FindStringSubmatch(stdout)
		if code != exitDone || parts == nil || stderr != "" {
			t.Fatalf("%s create: got code %d, %q and %q on stderr, want a secret alone", kind, code, stdout, stderr)
		}
		id, secret := parts[1], parts[2]
		list := func() string {
			code, stdout, stderr := invoke(kind, "list", "--home", home)
			if code != exitDone || stderr != "" || strings.Contains(stdout, secret) {
				t.Fatalf("%s list: got code %d, %q on stderr and\n%s", kind, code, stderr, stdout)
			}
			return stdout
		}
		before := list()
		if !strings.Contains(before, id) || !strings.Contains(before, "john.doe") || !strings.Contains(before, "first steps") {
			t.Errorf("%s list: got\n%s\nwant %s, john.doe and the note in it", kind, before, id)
		}
		if code, stdout, stderr := invoke(kind, "revoke", "--home", home, id); code != exitDone || stdout != "" {
			t.Errorf("%s revoke: got code %d, %q, %q", kind, code, stdout, stderr)
		}
		if after := list(); after == before {
			t.Errorf("%s list after the revocation: got the same as before:\n%s", kind, after)
		}
	}
	info, err := os.Stat(filepath.Join(home, dataFolder))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store's folder: got %v, %v, want mode 0700", info.Mode(), err)
	}
}

func TestHomeIsFilledOnlyWhenEmpty(t *testing.T) {
	dir := exampleHome(t)
	if filled, err := ensureHome(dir); filled || err != nil {
		t.Errorf("a home: got %v, %v, want it left alone", filled, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if filled, err := ensureHome(other); filled || err != nil {
		t.Errorf("a folder with something else: got %v, %v, want it left alone", filled, err)
	}
	empty := t.TempDir()
	if filled, err := ensureHome(empty); !filled || err != nil {
		t.Errorf("an empty folder: got %v, %v, want it filled", filled, err)
	}
}
