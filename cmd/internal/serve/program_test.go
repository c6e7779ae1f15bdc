package serve

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/author"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/cluster"
	"troupe/cmd/internal/credential"
	"troupe/cmd/internal/operate"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command {
		commands := []*cobra.Command{Command(clitest.Example()), cluster.Command(clitest.Example())}
		return cli.NewRoot("", "", slices.Concat(commands, credential.Commands(), author.Commands(), operate.Commands())...)
	}
	m.Run()
}
