package config

import (
	"testing"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command {
		return cli.NewRoot("", "", Command())
	}
	m.Run()
}

func TestTranscripts(t *testing.T) { clitest.Transcripts(t, "testdata/transcripts", nil) }
