// Command troupe is the whole product in one program: the server with its embedded store, and the commands that manage
// it; troupe --help lists them.
//
// Results go to standard output, everything else to standard error. Exit codes:
// 0 done, 1 refused or failed, 2 wrong usage.
package main

import (
	"embed"
	"io"
	"io/fs"
	"os"
	"slices"
	_ "time/tzdata" // zones of schedules, where the machine has none

	"github.com/spf13/cobra"

	"troupe/cmd/internal/author"
	"troupe/cmd/internal/bench"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/cluster"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/credential"
	"troupe/cmd/internal/operate"
	"troupe/cmd/internal/serve"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// example is the home that a first start on an empty folder makes.
//
//go:embed example
var example embed.FS

func exampleFiles() fs.FS {
	files, err := fs.Sub(example, "example")
	if err != nil {
		panic(err) // it is in the program
	}
	return files
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	return cli.NewRoot("Durable workflows as actors, in one binary with its own store", build.This().String(), slices.Concat(
		[]*cobra.Command{serve.Command(exampleFiles()), cluster.Command(exampleFiles()), config.Command(), bench.Command(), newVersion()},
		credential.Commands(), author.Commands(), operate.Commands(),
	)...)
}
