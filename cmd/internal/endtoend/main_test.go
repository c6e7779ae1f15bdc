package endtoend

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"troupe/cmd/internal/backup"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/cluster"
	"troupe/cmd/internal/credential"
	"troupe/cmd/internal/operate"
	"troupe/cmd/internal/serve"
)

// asProgram makes a process of this test the program: nothing else is built. It says where the example is.
const asProgram = "TROUPE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if example := os.Getenv(asProgram); example != "" {
		return cli.Run(commands(os.DirFS(example)), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	clitest.Program = func() *cobra.Command { return commands(clitest.Example()) }
	if err := os.Setenv(asProgram, filepath.Join(clitest.Tree(), "cmd", "troupe", "example")); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// commands are those of the program that are asked for here.
func commands(example fs.FS) *cobra.Command {
	return cli.NewRoot("", "", slices.Concat([]*cobra.Command{serve.Command(example), cluster.Command(example), cli.Group("store", "", "", backup.Commands()...)}, credential.Commands(), operate.Commands())...)
}

func binary() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self
}
