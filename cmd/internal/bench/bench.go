// Package bench is the command that measures a service under load: it reads the flags into a plan of bench/trial and
// shows what came out.
package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/bench/load"
	"troupe/bench/report"
	"troupe/bench/trial"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
)

type benchCommand struct {
	at                    connect.Connection
	as, againstAs         []string
	workflow, scenario    string
	against, againstToken string
	rates                 []string
	mix, failIf, page     string
	rounds                int
	load                  load.Options
	printWorkflow         bool
	out                   *cli.Output
}

// Command is troupe bench.
func Command() *cobra.Command {
	// NB: plan chooses the scenario. The default is a definition to compile, and every command line makes this command.
	b := &benchCommand{load: load.Options{WarmUp: 2 * time.Second, Duration: 10 * time.Second, Scenario: &load.Scenario{}}}
	b.load.EnsureDefaults()
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput and latency under load",
		Long: `Without --address or --context, it starts this program on a temporary home. A running service keeps the instances
that the load creates.

Without --rate, each connection sends its next request after the last answer (closed loop). With --rate, requests are
sent at that rate whatever the service does, and latency counts from the planned time (open loop).

The exit code is 1 if a condition of --fail-if holds or nothing could be measured.`,
		Example: "  troupe bench\n" +
			"  troupe bench --rate 1000,2000,5000 --report bench.html\n" +
			"  troupe bench --mix create=1,event=8,read=1,query=0.1 --fail-if 'p99>20ms,errors>0'\n" +
			"  troupe bench --mix job=1\n" +
			"  troupe bench --context staging --scenario load.yaml --as mary=mary.token --rate 200 --duration 5m\n" +
			"  troupe bench --against ./troupe-before --rounds 5",
	}
	b.out = cli.AddOutput(cmd, cli.AnyForm...)
	b.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if b.printWorkflow {
			return b.printDefinition()
		}
		plan, err := b.plan(cmd.Flags().Changed)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
		defer stop()
		return b.run(ctx, cmd, plan)
	}
	return cmd
}

func (b *benchCommand) addFlags(cmd *cobra.Command) {
	f, o := cmd.Flags(), &b.load
	f.StringVar(&b.at.Address, "address", "", "URL of a running service, or of several nodes of its cluster with commas between them (default: starts a server)")
	f.StringVar(&b.at.TokenFile, "token-file", "", "file with the API token for the service")
	b.at.Over.AddFlags(cmd)
	f.StringVar(&b.at.Context, "context", "", "context with address and token; see troupe context")
	f.StringArrayVar(&b.as, "as", nil, "USER=FILE: API token of another user of the scenario; may be repeated")
	f.StringVar(&b.workflow, "workflow", "", "id of the workflow at the service (default: the scenario's, else "+load.WorkflowID+")")
	f.StringVar(&b.scenario, "scenario", "", "file with the load: a workflow and a walk through its events")
	f.BoolVar(&b.printWorkflow, "print-workflow", false, "only print the workflow of the load (of --scenario, else the built-in one)")
	f.StringSliceVar(&b.rates, "rate", nil, "requests per second in an open loop (with --batch: batches); separate several by commas (default: closed loop)")
	f.Var(cli.Count(&o.Connections), "connections", "connections, with one request at a time each")
	f.Var(cli.Count(&o.Instances), "instances", "instances that events and reads go to")
	f.Var(cli.Count(&o.Preload), "preload", "events that each instance gets beforehand")
	f.Var(cli.Duration(&o.Duration), "duration", "how long to measure")
	f.Var(cli.Duration(&o.WarmUp), "warmup", "how long to run the load before measuring")
	f.StringVar(&b.mix, "mix", o.Mix.String(), "shares of create, event, read, query and job, such as create=1,event=8,query=0.1")
	f.Var(cli.Count(&o.Batch), "batch", "events per request (POST workflow/api/v1/events); 0: one request per event. Also how many jobs are taken at once (default 32)")
	f.BoolVar(&o.Minimal, "minimal", false, "ask for answers without history (Prefer: return=minimal)")
	f.StringVar(&b.against, "against", "", "path of another build or URL of another service to compare with")
	f.StringVar(&b.againstToken, "against-token-file", "", "file with the API token for the other service")
	f.StringArrayVar(&b.againstAs, "against-as", nil, "USER=FILE: API token of another user of the scenario at the other service")
	f.Var(cli.Count(&b.rounds), "rounds", "how often to measure everything (default 1; with --against 3)")
	f.StringVar(&b.failIf, "fail-if", "", "conditions for exit code 1, such as 'p99>20ms,errors>0': "+strings.Join(trial.MetricNames(), " ")+
		" (operations per second: each event of a batch counts); errors, missed and shed must be 0 unless a condition names them")
	f.StringVar(&b.page, "report", "", "write a self-contained HTML page with plots")
}

func (b *benchCommand) plan(given func(flag string) bool) (*trial.Plan, error) {
	p := &trial.Plan{Command: commandLine(os.Args[1:]), Build: build.This().String(), Load: b.load, ScenarioFile: b.scenario, Rounds: b.rounds}
	wrong := func(flag string, err error) error { return cli.Usagef("--%s %w", flag, err) }
	o, err := &p.Load, error(nil)
	if o.WarmUp == 0 {
		o.WarmUp = -1 // in Options 0 is the default
	}
	if o.Mix, err = load.ParseMix(b.mix); err != nil {
		return nil, cli.Usagef("--%w", err)
	}
	if given("rounds") && b.rounds == 0 {
		return nil, wrong("rounds", errors.New("must be above 0"))
	}
	if p.Rates, err = parseRates(b.rates); err == nil && given("rate") && len(p.Rates) == 0 {
		_, err = parseRates([]string{""})
	}
	if err != nil {
		return nil, wrong("rate", err)
	}
	if given("fail-if") {
		if p.Thresholds, err = trial.ParseThresholds(b.failIf); err != nil {
			return nil, wrong("fail-if", err)
		}
	}
	if b.page != "" {
		if info, err := os.Stat(filepath.Dir(b.page)); err != nil || !info.IsDir() {
			return nil, wrong("report", fmt.Errorf("%q: its folder does not exist", b.page))
		}
		if info, err := os.Stat(b.page); err == nil && info.IsDir() {
			return nil, wrong("report", fmt.Errorf("%q is a folder: name a file", b.page))
		}
	}
	o.Scenario = builtIn(o)
	if b.scenario != "" {
		if o.Scenario, err = load.ReadScenario(b.scenario); err != nil {
			return nil, cli.Usagef("--scenario: %w", err)
		}
	}
	if err := checkLoad(o); err != nil {
		return nil, cli.Usage(err)
	}
	if err := b.targets(p); err != nil {
		return nil, err
	}
	if p.Rounds == 0 {
		p.Rounds = 1 + 2*(len(p.Targets)-1)
	}
	if err := p.Check(); err != nil { // what is left
		return nil, cli.Usage(err)
	}
	return p, nil
}

// builtIn is what is sent without a scenario of the user's own. Jobs are taken in batches.
func builtIn(o *load.Options) *load.Scenario {
	if o.Mix[load.Job] > 0 {
		o.Batch = cmp.Or(o.Batch, load.JobsDefault)
		return load.Jobs()
	}
	return load.BuiltIn()
}

func (b *benchCommand) printDefinition() (err error) {
	if b.load.Mix, err = load.ParseMix(b.mix); err != nil {
		return cli.Usagef("--%w", err)
	}
	definition := builtIn(&b.load).Definition
	if b.scenario != "" {
		s, err := load.ReadScenario(b.scenario)
		if err != nil {
			return cli.Usagef("--scenario: %w", err)
		}
		if definition = s.Definition; definition == "" {
			return fmt.Errorf("%s names no definition", b.scenario)
		}
	}
	_, err = io.WriteString(b.out.To, definition)
	return err
}

const durationMin = 100 * time.Millisecond

func checkLoad(o *load.Options) error {
	switch {
	case o.Connections == 0:
		return errors.New("--connections must be above 0")
	case o.Instances == 0:
		return errors.New("--instances must be above 0")
	case o.Duration < durationMin:
		return fmt.Errorf("--duration must be at least %v", durationMin)
	case o.Batch > load.BatchMax:
		return fmt.Errorf("--batch must be at most 10,000")
	case o.Batch > 0 && o.Mix[load.Event] == 0 && o.Mix[load.Job] == 0:
		return fmt.Errorf("--batch: --mix %s has neither events nor jobs", o.Mix)
	case o.Batch > 0 && !o.Scenario.Batches():
		return errors.New("--batch needs a scenario with one user, a `to` in every step, and a step for every node: answers to a batch do not contain states")
	case o.Instances < o.Connections && !o.Scenario.Round():
		return fmt.Errorf("--instances %d is less than --connections %d: connections can share instances only if every step of the scenario has `to` and every node has a step", o.Instances, o.Connections)
	}
	return nil
}

func parseRates(texts []string) (rates []float64, err error) {
	for _, text := range texts {
		r, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(r > 0 && r <= 10_000_000) {
			if strings.TrimSpace(text) == "" {
				text = strings.Join(texts, ",") // there is nothing to show of it alone
			}
			return nil, fmt.Errorf("%q: must be a number of requests per second above 0, such as 1000 or 1000,2000,5000", text)
		}
		rates = append(rates, r)
	}
	return rates, nil
}

func (b *benchCommand) targets(p *trial.Plan) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	mine := trial.Target{Name: "troupe", Program: self}
	if elsewhere := b.at.Address != "" || b.at.Context != ""; elsewhere {
		if mine, err = runningTarget(mine.Name, b.at, "--as", b.as, p.Load.Scenario); err != nil {
			return err
		}
	} else if b.at.TokenFile != "" || b.at.Over != (connect.TLS{}) || len(b.as) > 0 || b.workflow != "" {
		// NB: nor does the current context: nobody shall put load on it by accident.
		return cli.Usagef("--token-file, --ca, --cert, --as and --workflow need a running service: --address or --context")
	}
	p.Targets = []trial.Target{mine}
	p.Load.Scenario.WorkflowID = cmp.Or(b.workflow, p.Load.Scenario.WorkflowID)
	for _, t := range p.Thresholds {
		if t.NeedsProcess() && mine.Program == "" {
			return cli.Usagef("--fail-if %s: the processor time is known only if troupe bench starts the server", t.Text())
		}
	}
	isURL := strings.Contains(b.against, "://")
	switch {
	case (b.againstToken != "" || len(b.againstAs) > 0) && !isURL:
		return cli.Usagef("--against-token-file and --against-as are for --against with a URL")
	case b.against == "":
		p.Targets = withEvents(p.Targets, &p.Load, b.scenario)
		return nil
	case isURL:
		// NB: a token goes to the service that it was given for: not even that of the environment goes to a second one.
		if b.againstToken == "" {
			return fmt.Errorf("there is no token for %s: give one with --against-token-file FILE", b.against)
		}
		other, err := runningTarget("other", connect.Connection{Address: b.against, TokenFile: b.againstToken, Over: connect.TLS{CA: b.at.Over.CA}}, "--against-as", b.againstAs, p.Load.Scenario)
		p.Targets = append(p.Targets, other)
		return err
	}
	program, err := filepath.Abs(b.against)
	if err != nil {
		return err
	}
	if info, err := os.Stat(program); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return cli.Usagef("--against %q: must be a program, or the URL of a service", b.against)
	}
	name := filepath.Base(program)
	if name == mine.Name {
		name = "other"
	}
	p.Targets = append(p.Targets, trial.Target{Name: name, Program: program})
	return nil
}

// withEvents adds, to a program that gets the built-in jobs and nothing else, the same instances driven by events.
func withEvents(targets []trial.Target, o *load.Options, scenario string) []trial.Target {
	mine := &targets[0]
	if scenario != "" || mine.Program == "" || o.Mix != (load.Mix{load.Job: o.Mix[load.Job]}) || o.Mix[load.Job] == 0 {
		return targets
	}
	mine.Name = "jobs"
	return append(targets, trial.Target{Name: "events", Program: mine.Program, Scenario: load.BuiltIn(), Mix: load.Mix{load.Event: 1}})
}

func runningTarget(name string, at connect.Connection, as string, further []string, scenario *load.Scenario) (trial.Target, error) {
	check := func(address string) error {
		first, others := connect.Nodes(address)
		if err := trial.CheckAddresses(first, others...); err != nil {
			return cli.Usage(err)
		}
		return nil
	}
	if at.Address != "" { // before its token is asked for
		if err := check(at.Address); err != nil {
			return trial.Target{}, err
		}
	}
	address, token, err := at.Resolve()
	var none connect.NoTokenError
	if errors.As(err, &none) {
		return trial.Target{}, fmt.Errorf("%w.\ntroupe bench uses a context only with --context, such as --context local", err)
	} else if err != nil {
		return trial.Target{}, err
	}
	if err := check(address); err != nil {
		return trial.Target{}, err
	}
	t := trial.Target{Name: name, Token: token, Tokens: map[string]string{}}
	if t.TLS, err = at.TLS(address); err != nil {
		return t, err
	}
	t.Address, t.Others = connect.Nodes(address)
	for _, text := range further {
		user, file, ok := strings.Cut(text, "=")
		if !ok || !scenario.HasUser(user) {
			return t, cli.Usagef("%s %q: must be USER=FILE with a user of the scenario", as, text)
		}
		if t.Tokens[user], err = connect.ReadTokenFile(as, file); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Secrets are not in it: they come in files and in the environment.
func commandLine(args []string) string {
	words := []string{"troupe"}
	for _, arg := range args {
		words = append(words, cli.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

func (b *benchCommand) run(ctx context.Context, cmd *cobra.Command, plan *trial.Plan) error {
	live := &progressLine{live: cli.NewLiveLine(cmd.ErrOrStderr()), parts: cmd.ErrOrStderr()}
	plan.Progress = live.show
	rep, interrupted := plan.Run(ctx)
	live.live.Clear()
	if ctx.Err() != nil && interrupted != nil {
		interrupted = cli.ErrInterrupted // and not what broke off because of it
	}
	switch {
	case rep == nil && ctx.Err() != nil:
		return fmt.Errorf("%w: nothing was measured", interrupted)
	case rep == nil:
		return interrupted
	}
	var err error
	if b.out.Form == cli.FormTable {
		err = benchTables(b.out, rep)
	} else {
		err = b.out.Marshaled(json.MarshalIndent(rep, "", "  "))
	}
	if b.page != "" { // behind the figures: they are shown also when there is no place for the page
		err = errors.Join(err, writePage(b.page, rep))
	}
	for _, w := range rep.Warnings {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
	}
	if err = errors.Join(err, interrupted); err != nil {
		return err
	}
	if slices.ContainsFunc(rep.Runs, func(r *report.Run) bool { return !r.Answered() }) {
		return errors.New("no request was answered as expected")
	}
	var failed []string
	for _, t := range rep.Thresholds {
		if t.Failed {
			failed = append(failed, fmt.Sprintf("%s (%s)", t.Text, t.By))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("--fail-if: %s", strings.Join(failed, "; "))
	}
	return nil
}

func writePage(name string, rep *report.Report) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(rep.WriteHTML(file), file.Close())
}

func benchTables(o *cli.Output, rep *report.Report) error {
	rows := [][]string{{"RUN", "PER SECOND", "P50 MS", "P90 MS", "P99 MS", "P99.9 MS", "MAX MS", "CPU µS", "ERRORS", "SHED", "MISSED", "LONGEST GAP S"}}
	kinds := [][]string{{"RUN", "KIND", "REQUESTS", "P50 MS", "P90 MS", "P99 MS", "P99.9 MS", "MAX MS"}}
	for _, r := range rep.Runs {
		cpu := "-"
		if r.ServerCPUMicrosPerOperation != nil {
			cpu = decimals(*r.ServerCPUMicrosPerOperation, 1)
		}
		row := append([]string{r.Name(rep), decimals(r.OperationsPerSecond, 0)}, latencyCells(&r.Latency)...)
		rows = append(rows, append(row, cpu, strconv.FormatInt(r.ErrorsTotal, 10), strconv.FormatInt(r.Shed, 10),
			strconv.FormatInt(r.Missed, 10), decimals(r.LongestGapSeconds, 3)))
		for _, name := range []string{"create", "event", "read", "query", "job"} {
			if k, ok := r.Kinds[name]; ok && len(r.Kinds) > 1 {
				kinds = append(kinds, append([]string{r.Name(rep), name, strconv.FormatInt(k.Count, 10)}, latencyCells(&k.Latency)...))
			}
		}
	}
	ratios := [][]string{{"RATE", "RATIO", "LEAST", "MEDIAN", "MOST"}}
	for _, r := range rep.Ratios {
		rate := "closed loop"
		if r.RatePerSecond > 0 {
			rate = strconv.FormatFloat(r.RatePerSecond, 'f', -1, 64) + "/s"
		}
		ratios = append(ratios, []string{
			rate, rep.Targets[0].Name + " / " + rep.Targets[1].Name + ", " + r.Text(),
			decimals(r.Spread.Least, 2), decimals(r.Spread.Middle, 2), decimals(r.Spread.Most, 2),
		})
	}
	for i, table := range [][][]string{rows, kinds, ratios} {
		if len(table) == 1 {
			continue
		}
		if i > 0 {
			if _, err := fmt.Fprintln(o.To); err != nil {
				return err
			}
		}
		if err := o.Table(table); err != nil {
			return err
		}
	}
	return nil
}

func latencyCells(l *load.Latency) []string {
	if !l.Known() {
		return []string{"-", "-", "-", "-", "-"}
	}
	return []string{decimals(l.P50Ms, 2), decimals(l.P90Ms, 2), decimals(l.P99Ms, 2), decimals(l.P999Ms, 2), decimals(l.MaxMs, 2)}
}

func decimals(f float64, n int) string { return strconv.FormatFloat(f, 'f', n, 64) }

// progressLine is a live line on a terminal; elsewhere there is a line for each part of a measurement.
type progressLine struct {
	live  *cli.LiveLine
	parts io.Writer
	last  string // of the parts
}

func (l *progressLine) show(p trial.Progress) {
	if l.live.IsLive() {
		l.live.Say(liveText(&p))
		return
	}
	if p.Doing == "" {
		p.Doing = fmt.Sprintf("measuring for %v", p.Total)
	}
	if text := liveText(&p); text != l.last {
		l.last = text
		_, _ = fmt.Fprintln(l.parts, text)
	}
}

func liveText(p *trial.Progress) string {
	where := p.Target
	if p.RatePerSecond > 0 {
		where += fmt.Sprintf(" %g/s", p.RatePerSecond)
	}
	if p.Rounds > 1 {
		where += fmt.Sprintf(" %d/%d", p.Round, p.Rounds)
	}
	if p.Doing != "" {
		return where + ": " + p.Doing
	}
	grain := 100 * time.Millisecond
	if p.Total >= time.Minute {
		grain = time.Second
	}
	return fmt.Sprintf("%s: %.0f/s  p50 %.1f ms  p99 %.1f ms  errors %d  %s of %s", where, p.Now.OperationsPerSecond,
		p.Now.Latency.P50Ms, p.Now.Latency.P99Ms, p.Failed,
		time.Duration(p.Now.EndedSeconds*float64(time.Second)).Round(grain), p.Total)
}
