package operate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command {
		return cli.NewRoot("", "", Commands()...)
	}
	m.Run()
}

// TestTranscripts plays testdata/transcripts. "notes FILE N" makes a file of N notes to $1, with the input as its end;
// "tree" starts a server on the folder home whose actors are those of the input.
func TestTranscripts(t *testing.T) {
	clitest.Transcripts(t, "testdata/transcripts", clitest.Commands{
		"notes": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			n, err := strconv.Atoi(cmd.CmdArgs[1].String())
			require.NoError(t, err)
			note := `{"workflowId":"leave","instanceId":"` + s.Meant("$1") + `","event":{"name":"note"}}` + "\n"
			require.NoError(t, os.WriteFile(cmd.CmdArgs[0].String(), []byte(strings.Repeat(note, n)+cmd.Input), 0o600))
			return ""
		},
		"tree": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			var tree actors.Branch
			require.NoError(t, errors.Join(json.Unmarshal([]byte(cmd.Input), &tree), os.Mkdir("home", 0o700)))
			server, err := admin.Start(admin.Options{Path: filepath.Join("home", homedir.AdminSocket), Actors: func() any { return tree }, Log: zerolog.Nop()})
			require.NoError(t, err)
			s.Cleanup(func() { assert.NoError(t, server.Stop(context.Background())) })
			return ""
		},
	})
}
