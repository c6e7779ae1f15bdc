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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // zones of schedules, where the machine has none

	"github.com/spf13/cobra"
)

// Exit codes (cmd/troupe/HOME.md, "Exit codes and output").
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run carries out one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		hint := "'troupe --help' for the commands, 'troupe COMMAND --help' for one of them"
		if cmd != root {
			hint = "'" + cmd.CommandPath() + " --help'"
		}
		fmt.Fprintf(stderr, "troupe: %v\nRun %s.\n", err, hint)
		return exitUsage
	}
	fmt.Fprintf(stderr, "troupe: %v\n", err)
	return exitFailed
}

// endSignals are those that end a command in order. SIGHUP says that the terminal has closed,
// and is not among them where it is ignored, as nohup makes it.
func endSignals() []os.Signal {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "troupe",
		Short:         "Durable workflows as actors, in one binary with its own store",
		Version:       buildOf(buildInfo()).String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			showHelp(cmd)
			return usageError{errors.New("a command is missing")}
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newToken(), newSession(), newPassword(), newCheck(), newInit(), newNew(), newPublish(), newDefinition(), newDiagram(), newConfigCommand(), newInstance(), newTask(), newOutbox(), newIncident(), newTimer(), newSchedule(), newContext(), newImport(), newExport(), newParameters(), newSchema(), newStore(), newCluster(), newBench(), newVersion())
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}

// showHelp explains a command that was used wrongly; on standard error, because
// it is no result.
func showHelp(cmd *cobra.Command) {
	cmd.SetOut(cmd.ErrOrStderr())
	_ = cmd.Help() // what is left to do is to end with an error anyway
}

// arguments takes the arguments that the command's Use names: NAME, [NAME] for one
// that may be missing, NAME... for one or more.
func arguments(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	usage := strings.Join(append([]string{cmd.CommandPath()}, names...), " ")
	most := len(names)
	for i, name := range names {
		if strings.HasSuffix(strings.TrimSuffix(name, "]"), "...") {
			most = max(most, len(args))
		}
		if i >= len(args) && !strings.HasPrefix(name, "[") {
			return usageError{fmt.Errorf("%s is missing: %s", strings.TrimSuffix(name, "..."), usage)}
		}
	}
	switch {
	case len(args) <= most:
		return nil
	case cmd.HasSubCommands():
		var known []string
		for _, below := range cmd.Commands() {
			known = append(known, below.Name())
		}
		return usageError{fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], known))}
	}
	return usageError{fmt.Errorf("%q is one argument too many: %s", args[most], usage)}
}

// group is a command that only has others below it.
func group(name, short, example string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: name, Short: short, Example: example, Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			showHelp(cmd)
			return usageError{fmt.Errorf("%s: a command is missing", name)}
		},
	}
	g.AddCommand(commands...)
	return g
}
