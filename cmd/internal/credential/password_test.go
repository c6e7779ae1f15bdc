package credential

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
)

const oak = "an old oak, 1843"

// TestPasswordSet goes through the command while no server runs; beside one it is
// held end to end.
func TestPasswordSet(t *testing.T) {
	home := clitest.ExampleHome(t)
	set := func(args ...string) []string { return append([]string{"password", "set", "--home", home}, args...) }
	john := set("--user", "john.doe")
	tests := []clitest.Invocation{
		{Name: "one line", Stdin: oak + "\n", Args: john},
		{Name: "a line without its end", Stdin: oak, Args: john},
		{Name: "a line of Windows", Stdin: oak + "\r\n", Args: john},
		{Name: "no user", Stdin: oak, Args: set(), Code: cli.ExitUsage, Stderr: "--user is missing"},
		{Name: "an argument", Stdin: "", Args: set("--user", "john.doe", oak), Code: cli.ExitUsage, Stderr: "unexpected argument"},
		{Name: "nothing", Stdin: "", Args: john, Code: cli.ExitFailed, Stderr: "no password on standard input"},
		{Name: "an empty line", Stdin: "\n", Args: john, Code: cli.ExitFailed, Stderr: "no password on standard input"},
		{Name: "two lines", Stdin: oak + "\n" + oak, Args: john, Code: cli.ExitFailed, Stderr: "more than one line"},
		{Name: "an empty line more", Stdin: oak + "\n\n", Args: john, Code: cli.ExitFailed, Stderr: "more than one line"},
		{Name: "a long line", Stdin: strings.Repeat("x", 1<<20), Args: john, Code: cli.ExitFailed, Stderr: "too long"},
		{Name: "a much used password", Stdin: "password1234\n", Args: john, Code: cli.ExitFailed, Stderr: "the password is among the first guesses: a much used one, the login name, "},
		{Name: "a password that identity refuses", Stdin: "acorn\n", Args: john, Code: cli.ExitFailed, Stderr: "troupe: set password of \"john.doe\": the password is shorter than 8 characters\n"},
		{Name: "an unknown user", Stdin: oak, Args: set("--user", "nobody"), Code: cli.ExitFailed, Stderr: "no such user"},
		{Name: "a home that is not there", Stdin: oak, Args: []string{"password", "set", "--home", home + "/no", "--user", "john.doe"}, Code: cli.ExitFailed, Stderr: "troupe: "},
	}
	clitest.RunAll(t, tests)
	// The line end is no part of the password.
	c := config.New()
	require.NoError(t, errors.Join(c.Flags.Parse([]string{"--home", home}), c.Load()))
	c.LogLevel = "warn"
	d, err := openAdminClient(t.Context(), c)
	require.NoError(t, err)
	_, p, err := d.(*localClient).SignIn(t.Context(), "john.doe", oak, netip.Addr{})
	assert.True(t, err == nil && p.ID == "john.doe", "sign in: got %+v, %v", p, err)
	assert.NoError(t, d.Close())
	for _, stdin := range []string{"acorn", "acorn\nacorn", "acorn\tacorn", strings.Repeat("acorn ", 100), "acorn\xffacorn"} {
		_, stdout, stderr := clitest.InvokeWith(stdin, john...)
		assert.NotContains(t, stdout+stderr, "acorn", "what was read is shown: %q and %q", stdout, stderr)
	}
}

// TestReadPassword holds that a line may come in pieces, and that a fault while
// reading is no password.
func TestReadPassword(t *testing.T) {
	got, err := readPassword(iotest.OneByteReader(strings.NewReader(oak + "\r\n")))
	assert.True(t, got == oak && err == nil, "byte by byte: got %q, %v", got, err)
	broken := errors.New("the pipe is broken")
	got, err = readPassword(io.MultiReader(strings.NewReader(oak), iotest.ErrReader(broken)))
	assert.True(t, got == "" && errors.Is(err, broken), "a broken pipe: got %q, %v, want %v", got, err, broken)
}
