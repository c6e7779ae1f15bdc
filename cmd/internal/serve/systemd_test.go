package serve

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSystemdIsTold what deploy/troupe.service needs: Type=notify and WatchdogSec.
func TestSystemdIsTold(t *testing.T) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	require.NoError(t, err)
	defer func() { _ = socket.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "3000")
	told := func() string {
		text := make([]byte, 100)
		n, err := socket.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
	s := superviseBy(zerolog.Nop())
	assert.Equal(t, "READY=1", told())
	assert.Equal(t, "WATCHDOG=1", told())
	assert.Equal(t, "WATCHDOG=1", told())
	require.NoError(t, s.Stop(context.Background()))
	last := told()
	for last == "WATCHDOG=1" {
		last = told()
	}
	assert.Equal(t, "STOPPING=1", last)
}
