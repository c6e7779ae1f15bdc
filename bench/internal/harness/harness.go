// Package harness is what all measurements share: the command with its flags, a temporary folder, the build that is
// measured, servers on homes of their own, and the record with its tables. What is measured it does not know.
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
	// Dir is where everything of the run is; empty is a temporary folder.
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

// Wrong is an error of the command line.
func Wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", process.ErrUsage, fmt.Errorf(format, args...))
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

// Measure carries out a measurement in the folder, which it removes if it made it, prints the text that
// it returns, and writes the record. One that ends with an error leaves none.
func (h *Harness) Measure(ctx context.Context, measure func(ctx context.Context) (text string, err error)) (err error) {
	if h.Dir == "" {
		if h.Dir, err = os.MkdirTemp("", "troupe-"+h.Flags.Name()+"-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(h.Dir)) }()
	}
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

// Server is a build of troupe that serves a home.
type Server struct {
	*process.Process
	Home string
	// Admin is the address of its operations listener.
	Admin string
	// Tokens are those of its users, by name.
	Tokens map[string]string
}

// Serve starts a program on a home that is there, gives tokens to some of its users, and returns when
// it is ready. Its log is beside the home.
func Serve(ctx context.Context, program, home string, users []string, args ...string) (s *Server, err error) {
	s = &Server{Home: home}
	if s.Tokens, err = process.Tokens(ctx, program, home, users); err != nil {
		return nil, err
	}
	return s, s.Start(ctx, program, args...)
}

// Start starts the server, again after it has ended.
func (s *Server) Start(ctx context.Context, program string, args ...string) (err error) {
	if s.Admin, err = process.FreeAddr(); err != nil {
		return err
	}
	s.Process, err = process.Start(ctx, s.Home+".log", program, append([]string{"serve", "--home", s.Home, "--admin", s.Admin}, args...)...)
	return err
}
