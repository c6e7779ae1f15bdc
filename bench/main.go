// Command bench measures the program from outside:
//
//	go run ./bench COMMAND [flags]
//
// Each command is a package below internal, on the same harness; bench/README.md says what each shows and how to read it.
// The load generator (load), what `troupe bench` does with it (trial, report) and what starts servers (process) are for
// others, too. The benchmarks of the layers stand beside this file. Everything sends the workflow of package load.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"troupe/bench/internal/compare"
	"troupe/bench/internal/harness"
	"troupe/bench/internal/million"
	"troupe/bench/internal/overload"
	"troupe/bench/internal/soak"
	"troupe/bench/process"
)

var commands = slices.Concat(
	compare.Commands,
	overload.Commands,
	million.Commands,
	soak.Commands,
)

func main() { os.Exit(process.Main("bench", run)) }

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) > 0 {
		if i := slices.IndexFunc(commands, func(c harness.Command) bool { return c.Name == args[0] }); i >= 0 {
			return commands[i].Main(ctx, args[1:], out, errs)
		}
	}
	fmt.Fprint(errs, "Usage: go run ./bench COMMAND [flags]\n\n")
	for _, c := range commands {
		if c.About != "" {
			fmt.Fprintf(errs, "  %-9s %s\n", c.Name, c.About)
		}
	}
	return harness.Wrong("there is no command %q", args)
}
