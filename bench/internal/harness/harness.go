// Package harness is what all measurements share: the command with its flags, a temporary folder, the build that is
// measured, and the record with its tables. What is measured it does not know.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"troupe/bench/process"
	"troupe/bench/record"
)

// Command is a word behind `go run ./bench`.
type Command struct {
	Name string
	// About says in a line what it does. A command without one is for the program itself, which starts itself with it.
	About string
	Run   func(ctx context.Context, h *Harness) error
}

// Main runs the command with its arguments.
func (c Command) Main(ctx context.Context, args []string, out, errs io.Writer) error {
	return c.Run(ctx, New(c.Name, args, out, errs))
}

// Harness is one run of a command.
type Harness struct {
	Args      []string
	Out, Errs io.Writer
	// Flags are those of the command; -o is there already.
	Flags *flag.FlagSet
	// Dir is a temporary folder for everything of the run.
	Dir string
	// Program is the build of troupe that is measured; empty is that of this tree.
	Program string
	// Title and Rows stand in the head of the record.
	Title string
	Rows  [][2]string
	// Record is the file for it; empty is none.
	Record string
}

// New returns the run of a command with some arguments.
func New(name string, args []string, out, errs io.Writer) *Harness {
	h := &Harness{Args: args, Out: out, Errs: errs, Flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	h.Flags.SetOutput(errs)
	h.Flags.StringVar(&h.Record, "o", "", "write a record to this file")
	return h
}

// ErrUsage is in the errors of a command line that is not as it should be.
var ErrUsage = errors.New("wrong usage")

// Wrong is an error of the command line.
func Wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// Parse reads the flags. rest names the words that may follow them, such as "-- flags of troupe serve";
// empty: there may be none.
func (h *Harness) Parse(rest string) error {
	h.Flags.Usage = func() {
		fmt.Fprintln(h.Errs, strings.TrimSpace("Usage: go run ./bench "+h.Flags.Name()+" [flags] "+rest))
		h.Flags.PrintDefaults()
	}
	if err := h.Flags.Parse(h.Args); err != nil {
		return Wrong("%w", err)
	}
	if rest == "" && h.Flags.NArg() > 0 {
		return Wrong("unexpected %q", h.Flags.Args())
	}
	return nil
}

// Measure carries out a measurement, prints the text that
// it returns, and writes the record. One that ends with an error leaves none.
func (h *Harness) Measure(ctx context.Context, measure func(ctx context.Context) (text string, err error)) (err error) {
	if h.Dir, err = os.MkdirTemp("", "troupe-"+h.Flags.Name()+"-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(h.Dir)) }()
	facts, err := record.Collect(h.Dir)
	if err != nil {
		return err
	}
	text, err := measure(ctx)
	fmt.Fprint(h.Out, text)
	if err != nil || h.Record == "" {
		return err
	}
	command := "go run ./bench " + strings.Join(append([]string{h.Flags.Name()}, h.Args...), " ")
	return os.WriteFile(h.Record, []byte(facts.Header(h.Title, command, h.Rows...)+text), 0o644)
}

// Build builds this tree if no other program was named.
func (h *Harness) Build(ctx context.Context) (err error) {
	if h.Program == "" {
		h.Program, err = process.Build(ctx, h.Dir)
	}
	return err
}
