package serve

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
)

const oak = "an old oak, 1843"

// TestPasswordSet: the line end is no part of the password, a line may come in pieces, and a long line or a fault while reading is no
// password. The rest is in testdata/transcripts; beside a server it is held end to end.
func TestPasswordSet(t *testing.T) {
	home := clitest.SmallHome(t)
	set := func(stdin io.Reader) (code int, said string) {
		var out strings.Builder
		code = cli.Run(clitest.Program(), []string{"password", "set", "--home", home, "--user", "john.doe"}, stdin, &out, &out)
		return code, out.String()
	}
	code, said := set(iotest.OneByteReader(strings.NewReader(oak + "\r\n")))
	require.True(t, code == cli.ExitDone && said == "", said)
	service := nodeOn(t, home)
	_, p, err := service.identities.SignIn(t.Context(), "john.doe", oak, netip.Addr{})
	assert.True(t, err == nil && p.ID == "john.doe", "sign in: got %+v, %v", p, err)
	require.NoError(t, service.stop())
	code, said = set(strings.NewReader(strings.Repeat("acorn ", 1<<20/6)))
	assert.True(t, code == cli.ExitFailed && strings.Contains(said, "too long") && !strings.Contains(said, "acorn"), said)
	_, said = set(strings.NewReader(strings.Repeat("acorn ", 100)))
	assert.NotContains(t, said, "acorn", "what was read is shown")
	code, said = set(io.MultiReader(strings.NewReader(oak), iotest.ErrReader(errors.New("the pipe is broken"))))
	assert.True(t, code == cli.ExitFailed && strings.Contains(said, "the pipe is broken"), "a broken pipe: got %d, %s", code, said)
}
