// Command troupe is the whole product in one program: the server with its
// embedded store, and the commands that look after it.
//
//	troupe serve      run the server
//	troupe token      create, list and revoke API tokens
//	troupe session    create, list and revoke sessions
//	troupe password   set the passwords that people sign in with
//	troupe cluster    make several nodes one service, and look after it
//	troupe store      make an empty store in place of one that is gone
//	troupe instance   work with instances of a running service
//	troupe task       list and do what waits for you
//	troupe outbox     list, retry and drop what has not been delivered
//	troupe incident   list, retry and drop what failed
//	troupe timer      list what is due later
//	troupe schedule   list, pause, resume and run schedules
//	troupe context    name services and keep the tokens for them
//	troupe bench      measure a service under load
//	troupe diagram    draw a workflow, and where an instance is
//	troupe check      check the text files of a home
//	troupe init       make a small home to begin with
//	troupe new        add a workflow to a home
//	troupe publish    give a cluster the files that all its nodes use
//	troupe definition remove versions of workflows that nothing uses
//	troupe import     make definitions of files of other tools
//	troupe export     write a definition in the format of another tool
//	troupe parameters list the parameters of template files
//	troupe schema     print the JSON Schema of a text file, for editors
//	troupe config     show every setting, its value and where it comes from
//	troupe version    show what the program was built from
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

// exampleFiles are its files.
func exampleFiles() fs.FS {
	files, err := fs.Sub(example, "example")
	if err != nil {
		panic(err) // it is in the program
	}
	return files
}

// run carries out one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	return cli.NewRoot("Durable workflows as actors, in one binary with its own store", build.This().String(), slices.Concat(
		[]*cobra.Command{serve.Command(exampleFiles()), cluster.Command(exampleFiles()), config.Command(), bench.Command(), newVersion()},
		credential.Commands(), author.Commands(), operate.Commands(),
	)...)
}
