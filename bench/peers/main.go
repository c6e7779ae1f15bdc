// Command peers measures the same workflow on Restate, DBOS, Temporal and troupe: an order is placed, two steps are done, and it is paid. From
// the folder of the repository:
//
//	go -C bench/peers run . -o FILE      # about 11 minutes; the first run fetches and builds the servers
//	go -C bench/peers run . -rounds 1 -duration 2s
//
// Each system has the application that somebody would write for it, with settings of which some were tried and the best was kept. The
// data of an order and the results of its steps are kept by the system, and durable when the caller hears that the order is paid. In each round each
// system is started with an empty store, alone, and has 64 and then 256 orders under way. The order of the systems is another one in each
// round. It needs npm and PostgreSQL in /usr/lib/postgresql, as Debian's package has it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"troupe/bench/process"
	"troupe/bench/record"
)

// inFlights is how many orders are under way.
var inFlights = []int{64, 256}

// warmup is the shortest one: a window begins when as many orders are done as are under way.
const warmup = 3 * time.Second

// system is what is measured.
type system struct {
	name  string
	batch int // orders that begin at once
	about string
	tool  func(t *tools, ctx context.Context) (program string, err error)
	start func(ctx context.Context, s *started) error
}

// systems begin with the one that the others are compared with.
var systems = []system{
	{"troupe, jobs", 1, "a create; two jobs that a worker made of `gateway/client` takes; the caller watches for the end", (*tools).troupe, startJobs},
	{"troupe, events", 1, "a create and two events, a request each", (*tools).troupe, startEvents},
	{"troupe, batches", 32, "the same in batches of 32: one of creates, two of events. CPU is for each order, p50 and p99 are of the three batches", (*tools).troupe, startBatches},
	{"Restate", 1, "a workflow with two `Run` steps; the caller waits at the ingress. One partition; the log is synced", (*tools).restate, startRestate},
	{"DBOS", 1, "a workflow with two steps in a service on PostgreSQL; the caller waits for the service's answer. Commits are synced", (*tools).postgres, startDBOS},
	{"Temporal", 1, "a workflow with two activities; the caller waits for its result. The development server on SQLite, with a log that is synced at each commit", (*tools).temporal, startTemporal(runTemporal)},
	{"Temporal, local", 1, "the same with local activities, which the worker does in the workflow's own task", (*tools).temporal, startTemporal(runTemporalLocal)},
}

func main() {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == "worker" {
		os.Exit(process.Main("peers worker", func(ctx context.Context, args []string, _, _ io.Writer) error { return work(ctx, args[1:]) }))
	}
	os.Exit(process.Main("peers", compare))
}

// work is a worker, which is told whose and where the server is.
func work(ctx context.Context, args []string) error {
	args = append(args, "", "")
	switch args[0] {
	case "restate":
		return restateWorker(ctx, args[1])
	case "temporal":
		return temporalWorker(ctx, args[1])
	case "dbos":
		return dbosWorker(ctx, args[1], args[2])
	case "troupe":
		return troupeWorker(ctx, args[1], args[2])
	}
	return fmt.Errorf("no worker is called %q", args[0])
}

func compare(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(errs)
	file := flags.String("o", "", "write a record to this file, which is named from the top of the repository")
	rounds := flags.Int("rounds", 3, "how often each system is measured")
	only := flags.String("systems", "", "only those whose names begin so, with commas, and the first, with which they are compared")
	window := flags.Duration("duration", 8*time.Second, "how long each measurement lasts, after the warm-up")
	if err := flags.Parse(args); err != nil {
		return err
	}
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(top, "bench", "peers")); err != nil {
		return errors.New("not in bench/peers: run it with go -C bench/peers run . in the folder of the repository")
	}
	dir, err := os.MkdirTemp("", "troupe-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL's user comes through
		return err
	}
	all, err := newTools(top, dir)
	if err != nil {
		return err
	}
	measured, programs := []system{systems[0]}, map[string]string{}
	for i, s := range systems {
		if i > 0 && !slices.ContainsFunc(strings.Split(*only, ","), func(name string) bool { return strings.HasPrefix(s.name, name) }) {
			continue
		}
		if programs[s.name], err = s.tool(all, ctx); err != nil {
			return err
		}
		if i > 0 {
			measured = append(measured, s)
		}
	}
	facts, err := record.Collect(dir)
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil { // PostgreSQL's user has no right to the folder of the repository
		return err
	}
	results := map[int][][]run{} // by orders in flight: for each system, of each round
	for _, n := range inFlights {
		results[n] = make([][]run, len(measured))
	}
	for round := range *rounds {
		for i := range measured {
			i = (i + round*3) % len(measured)
			if err := measureSystem(ctx, measured[i], programs[measured[i].name], filepath.Join(dir, fmt.Sprint(round, "-", i)), *window, func(n int, r run) {
				results[n][i] = append(results[n][i], r)
				fmt.Fprintf(errs, "round %d, %s, %d in flight: %.0f/s, %.2f ms CPU, p50 %.1f ms\n", round+1, measured[i].name, n, r.rate, r.used, r.middle)
			}); err != nil {
				return fmt.Errorf("%s: %w", measured[i].name, err)
			}
		}
	}
	text := tables(measured, results)
	fmt.Fprint(out, text)
	if *file == "" {
		return nil
	}
	command := strings.Join(append([]string{"go -C bench/peers run ."}, args...), " ")
	load := fmt.Sprintf("closed loop, %d rounds, each window %v after %v or more: as many orders were done as are under way", *rounds, *window, warmup)
	text = facts.Header("An order on Restate, DBOS, Temporal and troupe", command, [2]string{"Versions", all.versions(ctx)}, [2]string{"Load", load}) + text
	return os.WriteFile(filepath.Join(top, *file), []byte(text), 0o644)
}

// measureSystem starts a system, measures it with all numbers of orders in flight, and ends it.
func measureSystem(ctx context.Context, of system, program, dir string, window time.Duration, report func(inFlight int, r run)) error {
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	s := &started{dir: dir, program: program}
	defer s.stop()
	if err := of.start(ctx, s); err != nil {
		return err
	}
	var numbers atomic.Int64
	number := func() string { return fmt.Sprintf("2026-%07d", numbers.Add(1)) }
	first := make([]Order, of.batch)
	for i := range first {
		first[i] = newOrder(number())
	}
	if err := s.ready(ctx, func(ctx context.Context) error { return s.run(ctx, first) }); err != nil { // workers and partitions take a moment
		return err
	}
	total := of.batch
	for _, n := range inFlights {
		r, done, err := measure(ctx, s, n, of.batch, warmup, window, number)
		if err != nil {
			return err
		}
		total += done
		report(n, r)
	}
	if s.check != nil {
		return s.check(ctx, total)
	}
	return nil
}

// tables writes what the rounds gave.
func tables(systems []system, results map[int][][]run) string {
	var b strings.Builder
	b.WriteString("\n| System | An order is |\n|---|---|\n")
	for _, s := range systems {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.about)
	}
	for _, n := range inFlights {
		spread := func(runs []run, format string, of func(i int, r run) float64) string {
			var figures []float64
			for i, r := range runs {
				figures = append(figures, of(i, r))
			}
			return record.SpreadOf(figures).Text(format)
		}
		fmt.Fprintf(&b, "\n## %d orders in flight\n\n| System | orders/s | CPU ms an order | p50 ms | p99 ms | generator CPU ms |\n|---|---|---|---|---|---|\n", n)
		for i, s := range systems {
			runs := results[n][i]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.name,
				spread(runs, "%.0f", func(_ int, r run) float64 { return r.rate }),
				spread(runs, "%.3f", func(_ int, r run) float64 { return r.used }),
				spread(runs, "%.1f", func(_ int, r run) float64 { return r.middle }),
				spread(runs, "%.1f", func(_ int, r run) float64 { return r.almost }),
				spread(runs, "%.3f", func(_ int, r run) float64 { return r.generator }))
		}
		base := results[n][0]
		fmt.Fprintf(&b, "\n| Beside it | orders/s of %s are N times its | its CPU an order is N times that of %s |\n|---|---|---|\n", systems[0].name, systems[0].name)
		for i, s := range systems[1:] {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", s.name,
				spread(results[n][i+1], "%.2f", func(i int, r run) float64 { return base[i].rate / r.rate }),
				spread(results[n][i+1], "%.2f", func(i int, r run) float64 { return r.used / base[i].used }))
		}
	}
	b.WriteString("\nFigures are least–median–most of the rounds. CPU is user and system time of server, worker and database, and of the load generator, for each order that was paid in the window.\n")
	return b.String()
}
