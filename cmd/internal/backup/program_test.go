package backup

import (
	"os"
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command { return cli.NewRoot("", "", cli.Group("store", "", "", Commands()...)) }
	m.Run()
}

// TestTranscripts plays testdata/transcripts: what cmd/troupe/HOME.md, "Backup" and "Exit codes and output" say. "store HOME"
// makes the store of a home; "flip FILE N" changes a byte of a file.
func TestTranscripts(t *testing.T) {
	clitest.Transcripts(t, "testdata/transcripts", clitest.Commands{
		"store": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			makeStore(s.T, cmd.CmdArgs[0].String())
			return ""
		},
		"flip": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			path := cmd.CmdArgs[0].String()
			text, err := os.ReadFile(path)
			require.NoError(s, err)
			at, err := strconv.Atoi(cmd.CmdArgs[1].String())
			require.NoError(s, err)
			text[at] ^= 4
			require.NoError(s, os.WriteFile(path, text, 0o600))
			return ""
		},
	})
}
