package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/simulation/script"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine/document"
)

const formJUnit = "junit"

// testCommand are the flags of troupe test.
type testCommand struct {
	dir, run, coverage string
	watch              bool
	record, to         string
	private            bool
	explore            bool
	walks              script.Exploration
	out                *cli.Output
	at                 *connect.Connection // where the recorded instance is
}

func newTest() *cobra.Command {
	c, t := config.New(), &testCommand{walks: script.Exploration{Walks: 200, Steps: 50}}
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the tests of a home's workflows",
		Long: `Runs the files tests/*.yaml of a home in a simulated world: with a clock of its own, without a store, a network or a
server. A file has steps (who creates and sends what, how time goes by, what webhooks and workers answer) and what must
hold after them. DIR is a home; default: the current folder if it is one, else --home.

A test that fails is shown with file and line, what was expected and what was found, and the history up to there. The
exit code is 1 if a test fails, and 2 if the files of the home or of the tests have problems.

--coverage draws which states and transitions the tests reach, and lists what they miss.

--record prints a test that goes the way of a real instance, which the service of --address or --context has and your
token can read. Private data is masked unless --private is given.

--explore walks through each workflow at random and prints what it finds as a file of tests that fail: actions that
fail, states that nobody can leave, tasks for nobody, states and transitions that no walk reaches. Each workflow with
findings has a file of its own; a line "---" stands between two files.`,
		Example: "  troupe test ./troupe-home\n" +
			"  troupe test --run 'a large order*' --watch\n" +
			"  troupe test -o junit > tests.xml\n" +
			"  troupe test --coverage coverage.html\n" +
			"  troupe test --record leave-request/01M7YZAB2GNTJFQE62690KHSQT --to tests/recorded.yaml\n" +
			"  troupe test --explore --run purchase-order --walks 1000",
	}
	t.out = cli.AddOutput(cmd, cli.FormTable, cli.FormJSON, formJUnit)
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().StringVar(&t.run, "run", "", "run only the tests with this name; * stands for any characters")
	cmd.Flags().StringVar(&t.coverage, "coverage", "", "write what the tests reach to this file: .svg or .html")
	cmd.Flags().BoolVar(&t.watch, "watch", false, "run the tests again whenever a file changes")
	cmd.Flags().StringVar(&t.record, "record", "", "print a test made from this instance: its id, or WORKFLOW/ID")
	cmd.Flags().StringVar(&t.to, "to", "", "write the recorded test to this file, which stays as it is when that fails")
	cmd.Flags().BoolVar(&t.private, "private", false, "keep private data in the recorded test")
	cmd.Flags().BoolVar(&t.explore, "explore", false, "walk through the workflows at random; --run names one of them")
	cmd.Flags().Var(cli.Count(&t.walks.Walks), "walks", "how many walks --explore tries for each workflow, at most 100,000")
	cmd.Flags().Var(cli.Count(&t.walks.Steps), "steps", "how many steps a walk has at most, at most 1,000")
	cmd.Flags().Uint64Var(&t.walks.Seed, "seed", 1, "the same seed takes the same walks")
	t.at = connect.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if ext := filepath.Ext(t.coverage); t.coverage != "" && ext != ".svg" && ext != ".html" {
			return cli.Usagef("--coverage %s: must end in .svg or .html", t.coverage)
		}
		switch {
		case len(args) > 0:
			t.dir = args[0]
		case homedir.HasText(".") && !cmd.Flags().Changed("home"):
			t.dir = "."
		default:
			_ = c.Load() // NB: what is wrong with settings is not the tests' concern
			t.dir = c.Home
		}
		if !homedir.HasText(t.dir) {
			return cli.Usagef("there is no home in %s: it has no %s; give its folder: troupe test DIR", t.dir, home.IdentityFile)
		}
		switch {
		case t.to != "" && t.record == "":
			return cli.Usagef("--to is for --record")
		case t.record != "":
			return t.recording(cmd)
		case t.explore:
			return t.exploring(cmd)
		case t.watch:
			return t.watching(cmd)
		}
		return t.once(cmd)
	}
	return cmd
}

// once runs the tests and writes the report.
func (t *testCommand) once(cmd *cobra.Command) error {
	known, tests, err := t.load()
	if err != nil {
		return asFaulty(cmd, t.dir, err)
	}
	if len(tests) == 0 && t.run == "" {
		cli.SayNone(cmd.ErrOrStderr(), "tests")
	}
	report := &testReport{results: script.RunAll(tests, script.Options{Known: known, Covers: t.coverage != ""})}
	if t.coverage != "" {
		if t.run != "" {
			known = nil // the others are not meant
		}
		report.coverage = script.Cover(report.results, known)
		if err := writeCoverage(t.coverage, report.coverage); err != nil {
			return err
		}
	}
	if err := report.write(t.out); err != nil {
		return err
	}
	if failed := report.failed(); failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, cli.Plural(len(tests), "test"))
	}
	return nil
}

// asFaulty tells the problems of files, if it is those.
func asFaulty(cmd *cobra.Command, dir string, err error) error {
	faults := document.Faults{}
	if !errors.As(err, &faults) {
		return err
	}
	faults.Sort()
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), faults)
	return cli.Faulty(fmt.Errorf("%s in %s", cli.Plural(len(faults), "problem"), dir))
}

// load reads the home and the tests that are to run.
func (t *testCommand) load() (*script.Known, []*script.Test, error) {
	set, err := homedir.Load(t.dir)
	if err != nil {
		return nil, nil, err
	}
	files, err := home.LoadTests(os.DirFS(t.dir), set)
	if err != nil {
		return nil, nil, err
	}
	var tests []*script.Test
	for _, f := range files {
		tests = append(tests, f.Tests...)
	}
	if t.run == "" {
		return set.Known(), tests, nil
	}
	var names []string
	for _, of := range tests {
		names = append(names, of.Name)
	}
	tests = slices.DeleteFunc(tests, func(of *script.Test) bool { return !t.isMeant(of.Name) })
	if len(tests) == 0 {
		return nil, nil, cli.Usagef("--run: no test has the name %q%s", t.run, cli.DidYouMean(t.run, names))
	}
	return set.Known(), tests, nil
}

// isMeant reports whether --run has the name.
func (t *testCommand) isMeant(name string) bool {
	pattern := regexp.MustCompile("^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(t.run), `\*`, ".*") + ")$")
	return t.run == "" || pattern.MatchString(name)
}

// watching runs the tests whenever a file of the home changes, until a signal comes.
func (t *testCommand) watching(cmd *cobra.Command) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
	defer stop()
	changed := make(chan struct{}, 1)
	note := func() bool {
		select {
		case changed <- struct{}{}:
		default:
		}
		return false
	}
	watcher, err := home.NewWatcher(home.WatchOptions{Dir: t.dir, Access: note, Definitions: note, Tests: true, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	watcher.Start()
	defer func() { _ = watcher.Stop(context.WithoutCancel(ctx)) }()
	note()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		verdict := "All tests passed."
		if err := t.once(cmd); err != nil {
			verdict = err.Error() + "."
		}
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), verdict+" Waiting for changes.")
	}
}

// testReport is what tests have come to.
type testReport struct {
	results  []*script.Result
	coverage []*script.Coverage // nil: nobody has asked
}

func (r *testReport) failed() (n int) {
	for _, of := range r.results {
		if of.Failure != nil {
			n++
		}
	}
	return n
}

func (r *testReport) write(o *cli.Output) error {
	switch o.Form {
	case cli.FormJSON:
		return o.Marshaled(r.json())
	case formJUnit:
		text, err := r.junit()
		if err == nil {
			_, err = o.To.Write(text)
		}
		return err
	}
	return r.table(o)
}

func (r *testReport) table(o *cli.Output) error {
	if len(r.results) > 0 {
		rows := [][]string{{"RESULT", "TEST", "FILE"}}
		for _, of := range r.results {
			verdict := "passed"
			if of.Failure != nil {
				verdict = "FAILED"
			}
			rows = append(rows, []string{verdict, of.Name, fmt.Sprintf("%s:%d", of.File, of.Line)})
		}
		if err := o.Table(rows); err != nil {
			return err
		}
	}
	for _, of := range r.results {
		if of.Failure != nil {
			_, _ = fmt.Fprintf(o.To, "\n%s\n", of.Name)
			writeFailure(o.To, of)
		}
	}
	if r.coverage == nil {
		return nil
	}
	rows := [][]string{{"WORKFLOW", "STATES", "TRANSITIONS", "GUARDS", "ACTIONS", "REACHED"}}
	share := func(s script.Share) string { return fmt.Sprintf("%d/%d", s.Reached, s.Of) }
	for _, c := range r.coverage {
		rows = append(rows, []string{c.Workflow, share(c.States), share(c.Transitions), share(c.Guards), share(c.Actions), fmt.Sprintf("%.0f %%", c.Percent())})
	}
	_, _ = fmt.Fprintln(o.To)
	if err := o.Table(rows); err != nil {
		return err
	}
	for _, c := range r.coverage {
		for _, m := range c.Missed {
			_, _ = fmt.Fprintf(o.To, "%s:%d: %s\n", m.File, m.Line, missedText(&m))
		}
	}
	return nil
}

func missedText(m *script.Missed) string {
	at := m.StateMachineID
	if m.NodeID != m.StateMachineID {
		at += "." + m.NodeID
	}
	return strings.TrimSpace(m.Kind + " " + at + " " + m.Text)
}

// writeFailure says what went wrong, and how the instance came there.
func writeFailure(to io.Writer, of *script.Result) {
	f := of.Failure
	if f.Message != "" {
		_, _ = fmt.Fprintf(to, "  %s:%d: step %d: %s\n", of.File, f.Line, f.Step, f.Message)
	}
	for _, d := range f.Differences {
		_, _ = fmt.Fprintf(to, "  %s:%d: %s\n    expected  %s\n    found     %s\n", of.File, cmp.Or(d.Line, f.Line), d.Path, d.Expected, d.Found)
	}
	if len(f.History) > 0 {
		_, _ = fmt.Fprintln(to, "  history:")
	}
	for _, line := range f.History {
		_, _ = fmt.Fprintln(to, "    "+line)
	}
}
