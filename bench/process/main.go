package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes: done, failed, wrong usage.
const (
	ExitDone = iota
	ExitFailed
	ExitUsage
)

// ErrUsage is in the errors of a command line that is not as it should be.
var ErrUsage = errors.New("wrong usage")

// Run is the work of a program. Its errors are those of Exit.
type Run func(ctx context.Context, args []string, out, errs io.Writer) error

// Main runs a program with its command line and returns its exit code. An interrupt or
// SIGTERM ends the context.
func Main(name string, run Run) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Exit(name, run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr)
}

// Exit says how the run of a program ended, and returns its exit code. A flag.ErrHelp
// is wrong usage of which package flag has said everything.
func Exit(name string, err error, errs io.Writer) int {
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, flag.ErrHelp):
		return ExitUsage
	}
	fmt.Fprintf(errs, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return ExitUsage
	}
	return ExitFailed
}
