package main

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"

	"troupe/actors/failure"
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
		{name: "an argument", stdin: "", args: set("--user", "john.doe", oak), code: exitUsage, stderr: "unknown command"},
		{name: "nothing", stdin: "", args: john, code: exitFailed, stderr: "no password on standard input"},
		{name: "an empty line", stdin: "\n", args: john, code: exitFailed, stderr: "no password on standard input"},
		{name: "two lines", stdin: oak + "\n" + oak, args: john, code: exitFailed, stderr: "more than one line"},
		{name: "an empty line more", stdin: oak + "\n\n", args: john, code: exitFailed, stderr: "more than one line"},
		{name: "a long line", stdin: strings.Repeat("x", 1<<20), args: john, code: exitFailed, stderr: "too long"},
		{name: "a short password", stdin: "acorn\n", args: john, code: exitFailed, stderr: "troupe: set password of \"john.doe\": the password is shorter than 8 characters\n"},
		{name: "a long password", stdin: strings.Repeat("oak ", 65), args: john, code: exitFailed, stderr: "longer than 256 characters"},
		{name: "the login name", stdin: "john.doe", args: john, code: exitFailed, stderr: "tried first"},
		{name: "a tab", stdin: "an old\toak", args: john, code: exitFailed, stderr: "control character"},
		{name: "no UTF-8", stdin: "an old oak\xff", args: john, code: exitFailed, stderr: "UTF-8"},
		{name: "an unknown user", stdin: oak, args: set("--user", "nobody"), code: exitFailed, stderr: "no such user"},
		{name: "a home that is not there", stdin: oak, args: []string{"password", "set", "--home", home + "/no", "--user", "john.doe"}, code: exitFailed, stderr: "troupe: "},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
	for _, stdin := range []string{"acorn", "acorn\nacorn", "acorn\tacorn", strings.Repeat("acorn ", 100), "acorn\xffacorn"} {
		var stdout, stderr strings.Builder
		if invokeWith(t.Context(), stdin, &stdout, &stderr, john...); strings.Contains(stdout.String()+stderr.String(), "acorn") {
			t.Errorf("what was read is shown: %q and %q", stdout.String(), stderr.String())
		}
	}
}

// TestPasswordOpensTheHome holds that what the command has set signs in.
func TestPasswordOpensTheHome(t *testing.T) {
	home := exampleHome(t)
	for _, password := range []string{"Café crème 🐎"} {
		(&invocation{stdin: password + "\n", args: []string{"password", "set", "--home", home, "--user", "john.doe"}}).run(t)
		c := newConfig()
		if err := c.flags.Set("home", home); err != nil {
			t.Fatal(err)
		}
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		d, err := openAdminClient(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, p, err := d.(*localClient).service.SignIn(t.Context(), "john.doe", password, netip.Addr{})
		if err != nil || p.ID != "john.doe" {
			t.Errorf("sign in with %q: got %+v, %v", password, p, err)
		}
		if _, _, err := d.(*localClient).service.SignIn(t.Context(), "john.doe", password+"\n", netip.Addr{}); !errors.Is(err, failure.ErrUnauthorized) {
			t.Errorf("with the line end: got %v, want ErrUnauthorized", err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
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

func TestTrustedProxies(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"10.0.0.5":                     "10.0.0.5/32",
		"10.0.0.5/8":                   "10.0.0.0/8",
		" 10.0.0.5 , fd00::/8,::1":     "10.0.0.5/32,fd00::/8,::1/128",
		"::ffff:10.0.0.5":              "10.0.0.5/32",
		"127.0.0.1,::1,192.168.0.0/16": "127.0.0.1/32,::1/128,192.168.0.0/16",
	} {
		v := new(prefixesValue)
		if err := v.Set(text); err != nil || v.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, v.String(), err, want)
		}
		again := new(prefixesValue)
		if err := again.Set(v.String()); err != nil || again.String() != want {
			t.Errorf("%q does not come back: got %q, %v", want, again.String(), err)
		}
	}
	for _, text := range []string{",", "10.0.0.5,", "proxy.example", "10.0.0.5/33", "10.0.0", "*", "::ffff:10.0.0.0/104", "10.0.0.5:80", "fe80::1%eth0/64", "fe80::1%eth0"} {
		if v := new(prefixesValue); v.Set(text) == nil {
			t.Errorf("%q: got %q, want an error", text, v.String())
		}
	}
}
