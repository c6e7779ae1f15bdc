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
	exitDone = iota
	exitFailed
	exitUsage
)

// ErrUsage is in the errors of a command line that is not as it should be.
var ErrUsage = errors.New("wrong usage")

// Main runs a program with its command line and returns its exit code. An interrupt or SIGTERM ends the context. Of the
// errors of run, one that wraps ErrUsage has a code of its own.
func Main(name string, run func(ctx context.Context, args []string, out, errs io.Writer) error) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return exit(name, run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr)
}

// exit says how the run of a program ended, and returns its exit code. A flag.ErrHelp
// is wrong usage of which package flag has said everything.
func exit(name string, err error, errs io.Writer) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, flag.ErrHelp):
		return exitUsage
	}
	fmt.Fprintf(errs, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return exitUsage
	}
	return exitFailed
}
