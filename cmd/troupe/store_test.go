package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// wantRefusal runs a command that must be refused with all parts in its reason.
func wantRefusal(t *testing.T, args []string, parts ...string) {
	t.Helper()
	code, stdout, stderr := invoke(args...)
	if code != exitFailed || stdout != "" {
		t.Errorf("%v: got code %d and %q on stdout, want %d and nothing", args, code, stdout, exitFailed)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			t.Errorf("%v: got %q on stderr, want %q in it", args, stderr, part)
		}
	}
}

func mustInvoke(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := invoke(args...)
	if code != exitDone || stderr != "" {
		t.Fatalf("%v: got code %d and %q on stderr, want %d and nothing", args, code, stderr, exitDone)
	}
	return stdout
}

func mustRename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestAHomeDemandsTheStoreThatItHad with commands that open the store themselves.
func TestAHomeDemandsTheStoreThatItHad(t *testing.T) {
	home := exampleHome(t)
	data, away := filepath.Join(home, dataFolder), filepath.Join(home, "away")
	create := []string{"store", "create", "--home", home}
	list := []string{"token", "list", "--home", home}
	mustInvoke(t, "token", "create", "--home", home, "--user", "john.doe", "--note", "the first")
	wantRefusal(t, create, "there is a store already", data)

	check := []string{"check", "--home", home}
	if code, stdout, stderr := invoke(check...); code != exitDone || stdout != "" {
		t.Errorf("check of the store that belongs here: got code %d, %s%s", code, stdout, stderr)
	}
	checks := func(when, want string) {
		t.Helper()
		if code, stdout, _ := invoke(check...); code != exitFailed || !strings.Contains(stdout, storeIDFile+": ") || !strings.Contains(stdout, want) {
			t.Errorf("check, %s: got code %d, %s", when, code, stdout)
		}
	}
	mustRename(t, data, away)
	checks("without the store", "the store is missing")
	wantRefusal(t, list, "the store is missing", data, storeIDFile, "troupe store create --home "+home)
	if _, err := os.Stat(data); err == nil {
		t.Error("a refused command made a store")
	}
	mustRename(t, away, data)
	if text := mustInvoke(t, list...); !strings.Contains(text, "the first") {
		t.Errorf("token list after the store came back: got\n%s", text)
	}

	mustRename(t, data, away)
	if code, stdout, stderr := invoke(create...); code != exitDone || stdout != "" || stderr != data+" holds an empty store now\n" {
		t.Errorf("store create: got code %d, %q and %q", code, stdout, stderr)
	}
	if text := mustInvoke(t, list...); strings.Contains(text, "the first") {
		t.Errorf("token list of an empty store: got\n%s", text)
	}
	mustRename(t, data, data+".new")
	mustRename(t, away, data)
	wantRefusal(t, list, "this is another store", filepath.Join(home, storeIDFile))
	checks("with the store from before", "this is another store")
	wantRefusal(t, create, "there is a store already")
	putFile(t, home, storeIDFile, "")
	wantRefusal(t, list, storeIDFile+": it is empty", "remove it")
	removeFile(t, home, storeIDFile)
	if text := mustInvoke(t, list...); !strings.Contains(text, "the first") {
		t.Errorf("token list of the store that was taken over: got\n%s", text)
	}
	wantRefusal(t, []string{"store", "create", "--home", filepath.Join(home, "no")}, "there is no home in")
}

// TestAPipeInPlaceOfAFile is refused: reading it would wait for its other end, and
// SIGTERM with it.
func TestAPipeInPlaceOfAFile(t *testing.T) {
	for _, name := range []string{storeIDFile, settingsFile} {
		home := exampleHome(t)
		path := filepath.Join(home, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"store", "create"}, {"token", "list"}} {
			wantRefusal(t, append(command, "--home", home), path+" is no file but a folder, a pipe or a device")
		}
		if code, stdout, stderr := invoke("check", "--home", home); code != exitFailed || !strings.Contains(stdout+stderr, "is no file but") {
			t.Errorf("check with %s: got code %d, %s%s", name, code, stdout, stderr)
		}
	}
	home := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(home, gitIgnoreFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ignoreStoreID(home); err == nil {
		t.Error("a .gitignore that is a pipe: got no error")
	}
}

// TestASocketThatWasRemoved leaves commands without an answer while the store is in
// use; they say what to do.
func TestASocketThatWasRemoved(t *testing.T) {
	dir := exampleHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	wantRefusal(t, []string{"token", "list", "--home", dir}, "does not answer at "+adminSocket, "a restart makes it anew")
}

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
			path := filepath.Join(home, gitIgnoreFile)
			if c.before != none {
				putFile(t, home, gitIgnoreFile, c.before)
			}
			for range 2 { // the second time changes nothing
				if err := ignoreStoreID(home); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != c.after {
					t.Errorf("got %q, %v, want %q", got, err, c.after)
				}
			}
		})
	}
}
