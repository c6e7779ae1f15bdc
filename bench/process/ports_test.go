package process

import (
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoPortIsGivenTwice: a port that was drawn is let go until the server listens, so that another draw or a
// connection could have it. 32768 is where the systems' own begin.
func TestNoPortIsGivenTwice(t *testing.T) {
	before := map[string]bool{}
	for range 500 {
		addr, err := FreeAddr()
		require.NoError(t, err)
		assert.True(t, !before[addr] && netip.MustParseAddrPort(addr).Port() < 32_768, "got %s", addr)
		before[addr] = true
	}
}

// TestAPortOfAnotherProgramIsNotGiven: the tests of packages run beside each other, and each draws.
func TestAPortOfAnotherProgramIsNotGiven(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has names that leave no file")
	}
	const port = 11_999 // none that is drawn
	other, err := net.Listen("unix", claimName(port))
	require.NoError(t, err)
	assert.False(t, claim(port), "it is given while another program has it")
	require.NoError(t, other.Close())
	assert.True(t, claim(port) && !claim(port), "it is not given once when nobody has it")
}
