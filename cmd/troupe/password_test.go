package main

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

const oak = "an old oak, 1843"

// TestPasswordSet goes through the command while no server runs; beside one it is
// held end to end.
func TestPasswordSet(t *testing.T) {
	home := exampleHome(t)
	set := func(args ...string) []string { return append([]string{"password", "set", "--home", home}, args...) }
	john := set("--user", "john.doe")
	tests := []invocation{
		{name: "one line", stdin: oak + "\n", args: john},
		{name: "a line without its end", stdin: oak, args: john},
		{name: "a line of Windows", stdin: oak + "\r\n", args: john},
		{name: "no user", stdin: oak, args: set(), code: exitUsage, stderr: "--user is missing"},
		{name: "an argument", stdin: "", args: set("--user", "john.doe", oak), code: exitUsage, stderr: "is one argument too many"},
		{name: "nothing", stdin: "", args: john, code: exitFailed, stderr: "no password on standard input"},
		{name: "an empty line", stdin: "\n", args: john, code: exitFailed, stderr: "no password on standard input"},
		{name: "two lines", stdin: oak + "\n" + oak, args: john, code: exitFailed, stderr: "more than one line"},
		{name: "an empty line more", stdin: oak + "\n\n", args: john, code: exitFailed, stderr: "more than one line"},
		{name: "a long line", stdin: strings.Repeat("x", 1<<20), args: john, code: exitFailed, stderr: "too long"},
		{name: "a much used password", stdin: "password1234\n", args: john, code: exitFailed, stderr: "the password is among the first guesses: a much used one, the login name, "},
		{name: "a password that identity refuses", stdin: "acorn\n", args: john, code: exitFailed, stderr: "troupe: set password of \"john.doe\": the password is shorter than 8 characters\n"},
		{name: "an unknown user", stdin: oak, args: set("--user", "nobody"), code: exitFailed, stderr: "no such user"},
		{name: "a home that is not there", stdin: oak, args: []string{"password", "set", "--home", home + "/no", "--user", "john.doe"}, code: exitFailed, stderr: "troupe: "},
	}
	runAll(t, tests)
	// The line end is no part of the password.
	c, err := loaded(t, home)
	if err != nil {
		t.Fatal(err)
	}
	c.logLevel = "warn"
	d, err := openAdminClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, p, err := d.(*localClient).SignIn(t.Context(), "john.doe", oak, netip.Addr{}); err != nil || p.ID != "john.doe" {
		t.Errorf("sign in: got %+v, %v", p, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, stdin := range []string{"acorn", "acorn\nacorn", "acorn\tacorn", strings.Repeat("acorn ", 100), "acorn\xffacorn"} {
		if _, stdout, stderr := invokeWith(stdin, john...); strings.Contains(stdout+stderr, "acorn") {
			t.Errorf("what was read is shown: %q and %q", stdout, stderr)
		}
	}
}

// TestReadPassword holds that a line may come in pieces, and that a fault while
// reading is no password.
func TestReadPassword(t *testing.T) {
	if got, err := readPassword(iotest.OneByteReader(strings.NewReader(oak + "\r\n"))); got != oak || err != nil {
		t.Errorf("byte by byte: got %q, %v", got, err)
	}
	broken := errors.New("the pipe is broken")
	if got, err := readPassword(io.MultiReader(strings.NewReader(oak), iotest.ErrReader(broken))); got != "" || !errors.Is(err, broken) {
		t.Errorf("a broken pipe: got %q, %v, want %v", got, err, broken)
	}
}
