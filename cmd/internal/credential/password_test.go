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

// TestPasswordSet: the line end is no part of the password, and a long line is refused. The rest is in testdata/transcripts;
// beside a server it is held end to end.
func TestPasswordSet(t *testing.T) {
	home := clitest.ExampleHome(t)
	john := []string{"password", "set", "--home", home, "--user", "john.doe"}
	code, stdout, stderr := clitest.InvokeWith(oak+"\r\n", john...)
	require.True(t, code == cli.ExitDone && stdout+stderr == "", stdout+stderr)
	c := config.New()
	require.NoError(t, errors.Join(c.Flags.Parse([]string{"--home", home}), c.Load()))
	c.LogLevel = "warn"
	d, err := openAdminClient(t.Context(), c)
	require.NoError(t, err)
	_, p, err := d.(*localClient).SignIn(t.Context(), "john.doe", oak, netip.Addr{})
	assert.True(t, err == nil && p.ID == "john.doe", "sign in: got %+v, %v", p, err)
	assert.NoError(t, d.Close())
	code, stdout, stderr = clitest.InvokeWith(strings.Repeat("acorn ", 1<<20/6), john...)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "too long") && !strings.Contains(stdout+stderr, "acorn"), stdout+stderr)
	_, stdout, stderr = clitest.InvokeWith(strings.Repeat("acorn ", 100), john...)
	assert.NotContains(t, stdout+stderr, "acorn", "what was read is shown")
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
