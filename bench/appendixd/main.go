package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"troupe/bench/process"
	"troupe/bench/record"
	"troupe/statemachine"
	"troupe/statemachine/appendixd"
	"troupe/statemachine/appendixd/comparison"
)

func main() { os.Exit(process.Main("appendixd", run)) }

// said is how many steps lie between two lines of progress.
const said = 100_000

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	var to string
	var steps, seed int
	flags := flag.NewFlagSet("appendixd", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&steps, "steps", 1_000_000, "how many steps both take at least")
	flags.IntVar(&seed, "seed", 0, "the seed of the first case")
	flags.StringVar(&to, "o", "", "the file for the record")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", process.ErrUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: there are flags only", process.ErrUsage)
	}
	facts, err := record.Collect(os.TempDir())
	if err != nil {
		return err
	}
	debug.SetGCPercent(800) // nearly all is garbage at once: collections would take half of the time
	begun := time.Now()
	tally, last, err := compare(ctx, steps, seed, errs)
	if err != nil {
		return err
	}
	text := facts.Header("The core beside Appendix D", "go run ./bench/appendixd "+strings.Join(args, " ")) + summary(&tally, seed, last, time.Since(begun))
	_, _ = io.WriteString(out, text)
	if to != "" {
		return os.WriteFile(to, []byte(text), 0o644)
	}
	return nil
}

// compare runs cases until both have taken so many steps. last is the seed of the last case.
func compare(ctx context.Context, steps, seed int, errs io.Writer) (tally comparison.Tally, last int, err error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return tally, 0, err
	}
	cases := comparison.Cases()
	for last = seed; ; last++ {
		if err := ctx.Err(); err != nil {
			return tally, last, err
		}
		c := cases.Example(last)
		one, err := comparison.Run(parser, c)
		if err != nil && !errors.Is(err, comparison.ErrRefused) {
			return tally, last, fmt.Errorf("seed %d: %w", last, comparison.Smallest(c, err))
		}
		if (tally.Steps+one.Steps)/said > tally.Steps/said {
			fmt.Fprintf(errs, "%d steps of %d charts\n", tally.Steps+one.Steps, tally.Charts+one.Charts)
		}
		if tally.Add(one); tally.Steps >= steps {
			return tally, last, nil
		}
	}
}

// summary is the body of the record.
func summary(t *comparison.Tally, first, last int, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nNo difference in %d steps of %d charts (seeds %d to %d) in %s.\n", t.Steps, t.Charts, first, last, took.Round(time.Second))
	fmt.Fprintf(&b, "%d more charts were refused by the parser; %d could not be started, because both undid the create.\n", t.Refused, t.NotStarted)
	b.WriteString("\n| Met | Times |\n|---|---|\n")
	for f, n := range t.Counts {
		fmt.Fprintf(&b, "| %v | %d |\n", appendixd.Feature(f), n)
	}
	return b.String()
}
