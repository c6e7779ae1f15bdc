package serve

import (
	"os"
	"runtime/debug"
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
	if err := os.Setenv("TROUPE_ADMIN", ""); err != nil { // NB: many servers run at a time, and its default is one address
		panic(err)
	}
	// A tenth of the time of these tests went to the collector: they make much garbage and keep little.
	debug.SetGCPercent(400)
	m.Run()
}
