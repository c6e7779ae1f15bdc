package cluster

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/record"
)

// What a run is like.
var (
	episodes = flag.Int("episodes", 0, "how often the cluster is hurt; 0 leaves it out")
	names    = flag.String("kinds", strings.Join(simple, ","), "kinds of episodes, with commas; all of them come before one comes again")
	seed     = flag.Uint64("seed", 0, "what the episodes are drawn from; 0 draws it")
	senders  = flag.Int("workers", 16, "how many send events and batches to instances of their own")
	every    = flag.Int("check", 10, "episodes between two reads of everything that changed")
	to       = flag.String("record", "", "the file for the record, from the top folder on")
)

// run is one run.
type run struct {
	out   io.Writer
	kinds []string
	seed  uint64
	dir   string
	over  func() error // not nil when no more episodes shall begin

	fleet   *Fleet
	network *network // nil unless each node has one of its own
	ledger  ledger
	pool    pool
	checked map[*instance]uint64 // entries at the last check
	done    []episode
}

// TestAClusterUnderFaults is what the package is for. An interrupt ends it early.
func TestAClusterUnderFaults(t *testing.T) {
	if *episodes == 0 {
		t.Skip("-episodes says how often a cluster is hurt; make cluster does it")
	}
	r := &run{out: t.Output(), kinds: strings.Split(*names, ","), seed: cmp.Or(*seed, rand.Uint64()), checked: map[*instance]uint64{}}
	for _, k := range r.kinds {
		require.False(t, !slices.Contains(simple, k) && !slices.Contains(apart, k), "there is no episode %q", k)
	}
	require.True(t, *episodes >= 1 && *senders >= 1 && *every >= 1, "numbers are at least 1")
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	require.NoError(t, r.run(ctx))
}

func (r *run) run(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "troupe-cluster-"); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "seed %d, %s\n", r.seed, r.dir)
	facts, err := record.Collect(r.dir)
	if err != nil {
		return err
	}
	defer func() {
		r.fleet.Close()
		err = errors.Join(err, r.network.close(context.WithoutCancel(ctx)))
		if err != nil {
			logs, err2 := keepLogs(r.dir)
			err = errors.Join(fmt.Errorf("seed %d, logs in %s: %w", r.seed, logs, err), err2)
		}
		err = errors.Join(err, os.RemoveAll(r.dir))
	}()
	program, err := process.Build(ctx, r.dir)
	if err != nil {
		return err
	}
	o := Options{Program: program, Dir: r.dir, Workflows: map[string]string{counterID + ".yaml": counter}}
	if slices.ContainsFunc(r.kinds, func(k string) bool { return slices.Contains(apart, k) }) {
		if r.network, err = newNetwork(ctx, r.dir); err != nil {
			return err
		}
		o.Machines = r.network.machines()
	}
	if r.fleet, err = Found(ctx, o); err != nil {
		return err
	}
	r.over = ctx.Err
	ctx = context.WithoutCancel(ctx) // NB: who interrupts a run wants to know what came out so far
	if err := r.underLoad(ctx); err != nil {
		return err
	}
	if err := r.replicas(ctx); err != nil {
		return err
	}
	text := r.report()
	fmt.Fprint(r.out, text)
	if *to == "" {
		return nil
	}
	ours := slices.DeleteFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-test.") })
	header := facts.Header("A cluster under faults", "go test ./cmd/internal/endtoend/cluster "+strings.Join(ours, " "),
		[2]string{"Load", fmt.Sprintf("%d workers, each with %d instances, send single events and batches of up to %d; %d more send to and read %d shared instances; each pauses %s after a request; seed %d", *senders, held, batchMax, sharers, sharedNow, pace, r.seed)})
	return os.WriteFile(filepath.Join("../../../..", *to), []byte(header+text), 0o644)
}

// underLoad runs the episodes beside the workers. The first error of anybody ends it.
func (r *run) underLoad(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	r.ledger.begin()
	r.pool.begun = time.Now()
	var workers []*worker
	var running sync.WaitGroup
	for i := range *senders + sharers {
		w := &worker{fleet: r.fleet, ledger: &r.ledger, number: i, node: i % Count}
		if i >= *senders {
			w.pool = &r.pool
		}
		workers = append(workers, w)
		running.Go(func() {
			if err := w.run(ctx); err != nil {
				stop(err)
			}
		})
	}
	err := r.hurt(ctx, workers)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stop(err)
	if err != nil {
		r.fleet.Close() // NB: or the workers would insist
		return err
	}
	running.Wait()
	return r.check(context.WithoutCancel(ctx), workers)
}

// hurt does the episodes.
func (r *run) hurt(ctx context.Context, workers []*worker) error {
	draw := rand.New(rand.NewPCG(r.seed, 0))
	var bag []string
	for i := range *episodes {
		if r.over() != nil {
			break
		}
		if len(bag) == 0 {
			bag = slices.Clone(r.kinds)
			draw.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		e := episode{kind: bag[0]}
		bag = bag[1:]
		nodes := slices.Clone(r.fleet.Nodes[:])
		draw.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		r.ledger.begin()
		err := hurt(ctx, r.fleet, r.network, draw, e.kind, nodes, func(what string) {
			fmt.Fprintf(r.out, "%s episode %d: %s %s", time.Now().UTC().Format("15:04:05.000"), i+1, e.kind, strings.ReplaceAll(what, r.dir+"/", ""))
		})
		back := time.Now()
		if err == nil {
			err = r.fleet.Whole(ctx)
		}
		if err != nil {
			return fmt.Errorf("episode %d, %s: %w", i+1, e.kind, err)
		}
		e.whole = time.Since(back)
		load.Sleep(ctx, time.Duration(draw.Int64N(int64(time.Second))))
		var acks int
		e.gap, e.slowest, acks = r.ledger.times()
		fmt.Fprintf(r.out, ": whole after %s, gap %s, slowest event %s, %d acknowledged\n",
			short(e.whole), short(e.gap), short(e.slowest), acks)
		r.done = append(r.done, e)
		if (i+1)%*every == 0 {
			if err := r.check(ctx, workers); err != nil {
				return fmt.Errorf("after episode %d: %w", i+1, err)
			}
		}
	}
	return nil
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// report is the table of a record.
func (r *run) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d episodes; %d acknowledgements for %d instances: none is missing, none is there twice, on each replica alone too. %d operations on %d shared instances are linearizable.\n\n",
		len(r.done), r.ledger.acks, len(r.ledger.made)+len(r.pool.all), r.pool.operations, len(r.pool.all))
	b.WriteString("Seconds, middle–p99–most: nobody acknowledged anything (gap), one event or batch took with all its attempts at any node (slowest event of an episode), " +
		"from the last command of an episode until all nodes were voters again (whole).\n\n")
	b.WriteString("| Episode | how many | gap | slowest event | whole |\n|---|---|---|---|---|\n")
	for _, k := range slices.Concat(simple, apart) {
		var gaps, slowest, whole []time.Duration
		for _, e := range r.done {
			if e.kind == k {
				gaps, slowest, whole = append(gaps, e.gap), append(slowest, e.slowest), append(whole, e.whole)
			}
		}
		if len(gaps) > 0 {
			fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", k, len(gaps), spread(gaps), spread(slowest), spread(whole))
		}
	}
	return b.String()
}

// spread shows middle, p99 and most in seconds.
func spread(d []time.Duration) string {
	d = slices.Sorted(slices.Values(d))
	at := func(part float64) float64 { return d[int(part*float64(len(d)-1)+0.5)].Seconds() }
	return fmt.Sprintf("%.1f–%.1f–%.1f", at(0.5), at(0.99), at(1))
}
