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
	"troupe/cmd/internal/doctor"
	"troupe/cmd/internal/operate"
	"troupe/cmd/internal/serve"
	"troupe/cmd/internal/work"
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
	root := cli.NewRoot("Durable workflows as actors, in one binary with its own store", build.This().String(), slices.Concat(
		[]*cobra.Command{serve.Command(exampleFiles()), cluster.Command(exampleFiles()), config.Command(), doctor.Command(), bench.Command(), newVersion(), newManual()},
		credential.Commands(), author.Commands(), operate.Commands(), work.Commands(),
	)...)
	for _, g := range groups {
		cli.Arrange(root, g.title, g.commands...)
	}
	return root
}

// groups is how the help of troupe lists its commands.
var groups = []struct {
	title    string
	commands []string
}{
	{"Run a service", []string{"serve", "init", "config", "doctor", "store", "cluster", "actors", "audit"}},
	{"Write workflows", []string{"new", "check", "test", "simulate", "publish", "diagram", "definition", "import", "export", "parameters", "schema"}},
	{"Work with instances and tasks", []string{"workflow", "instance", "task"}},
	{"Operate workflows", []string{"incident", "outbox", "timer", "schedule", "bulk", "job"}},
	{"Work on jobs", []string{"worker"}},
	{"Manage access", []string{"user", "role", "token", "session", "password", "context"}},
	{"Measure and find out more", []string{"bench", "version", "help", "man", "completion"}},
}
