package endtoend

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
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
	facts "troupe/bench/record"
	"troupe/gateway/wiretest"
)

// What a run of TestAClusterUnderFaults is like; seed says where its chance comes from.
var (
	episodes = flag.Int("episodes", 0, "how often the cluster is hurt; 0 leaves it out")
	names    = flag.String("kinds", strings.Join(simple, ","), "kinds of episodes, with commas; all of them come before one comes again")
	senders  = flag.Int("workers", 16, "how many send events and batches, and read")
	every    = flag.Int("check", 10, "episodes between two reads of everything that changed")
	to       = flag.String("record", "", "the file for the record, from the top folder on")
)

const (
	// attemptMax is the patience of workers. NB: with a second, what a loaded cluster had still to do was repeated, and it did half as much.
	attemptMax = 5 * time.Second
	// pace is the pause after a request: the cluster shall be loaded and not overloaded.
	pace = 20 * time.Millisecond
)

// clusterRun is one run.
type clusterRun struct {
	t       *testing.T
	out     io.Writer
	kinds   []string
	seed    uint64
	dir     string
	over    func() error // not nil when no more episodes shall begin
	fleet   *Fleet
	network *network // nil unless each node has one of its own
	ledger  *ledger
	gate    *gate
	draw    *rand.Rand
	got     killed
	done    []episode
}

// TestAClusterUnderFaults runs a cluster of three processes under load, hurts it again and again, and looks whether anything that was
// acknowledged is missing, or there twice. -kinds chooses the kinds of episodes, see simple; and, with a network namespace and a file
// system for each node (root on Linux with iproute2, mkfs.ext4 and fsfreeze), those of apart.
//
// The workers and the ledger are those of TestKill; the workers ask any node, and what a node shows must hold all that any node has
// acknowledged or shown before. At the end all nodes are killed, and each replica is made a cluster of its own (troupe cluster
// recover) and must have everything. Times are recorded and never evaluated, except that a cluster must be whole two minutes after
// an episode. An interrupt ends the run after the episode that is under way.
func TestAClusterUnderFaults(t *testing.T) {
	if *episodes == 0 {
		t.Skip("-episodes says how often a cluster is hurt; make cluster does it")
	}
	s := seed(t)
	r := &clusterRun{
		t: t, out: t.Output(), kinds: strings.Split(*names, ","), seed: s, ledger: newLedger(), gate: newGate(),
		draw: rand.New(rand.NewPCG(s, 0)), got: killed{inCluster: true},
	}
	r.gate.pace = pace
	for _, k := range r.kinds {
		require.True(t, slices.Contains(slices.Concat(simple, moving, calm, apart), k), "there is no episode %q", k)
	}
	require.True(t, *episodes >= 1 && *senders >= 1 && *every >= 1, "numbers are at least 1")
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	require.NoError(t, r.run(ctx))
}

func (r *clusterRun) run(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "troupe-cluster-"); err != nil {
		return err
	}
	about, err := facts.Collect(r.dir)
	if err != nil {
		return err
	}
	defer func() {
		r.fleet.Close()
		err = errors.Join(err, r.network.close(context.WithoutCancel(ctx)))
		if err != nil || r.t.Failed() {
			logs, err2 := keepLogs(r.dir)
			r.t.Logf("logs in %s", logs)
			err = errors.Join(err, err2)
		}
		err = errors.Join(err, os.RemoveAll(r.dir))
	}()
	o := Options{Dir: r.dir, Nodes: 3}
	if !r.everywhere() {
		o.Nodes++
	}
	if slices.ContainsFunc(r.kinds, func(k string) bool { return slices.Contains(apart, k) }) {
		if r.network, err = newNetwork(ctx, r.dir, o.Nodes); err != nil {
			return err
		}
		o.Machines = r.network.machines()
	}
	if r.fleet, err = Found(ctx, o); err != nil {
		return err
	}
	r.over = ctx.Err
	ctx = context.WithoutCancel(ctx) // NB: who interrupts a run wants to know what came out so far
	if err := errors.Join(r.underLoad(ctx), r.replicas(ctx)); err != nil || r.t.Failed() {
		return err
	}
	text := r.report()
	fmt.Fprint(r.out, text)
	if *to == "" {
		return nil
	}
	ours := slices.DeleteFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-test.") })
	header := about.Header("A cluster under faults", "go test ./cmd/internal/endtoend "+strings.Join(ours, " "),
		[2]string{"Load", fmt.Sprintf("%d workers send single events and batches of up to 20 to %d instances at a time, and read; each pauses %s after a request; seed %d", *senders, openInstances, pace, r.seed)})
	return os.WriteFile(filepath.Join("../../..", *to), []byte(header+text), 0o644)
}

func (r *clusterRun) underLoad(ctx context.Context) error {
	var running sync.WaitGroup
	for _, w := range newWorkers(*senders, r.ledger, r.fleet.Token, r.seed) {
		w.inCluster, w.link.patience = true, attemptMax
		running.Go(func() { r.gate.work(w) })
	}
	r.open()
	err := r.hurt(ctx)
	if err != nil {
		r.fleet.Close()
		r.gate.shut(*senders) // NB: they would ask for ever
		return err
	}
	r.gate.end()
	running.Wait()
	r.ledger.report(r.t)
	return nil
}

func (r *clusterRun) open() {
	var addresses []string
	for _, n := range r.fleet.Nodes {
		addresses = append(addresses, n.HTTP)
	}
	if n := r.fleet.spare; n != nil { // NB: as balancers do, which look at times whether somebody is there
		addresses = append(addresses, n.HTTP)
	}
	r.gate.open(addresses...)
}

// check holds the workers still, and reads through every node what was touched since the last check.
func (r *clusterRun) check() error {
	r.gate.shut(*senders)
	defer r.open()
	instances, keys := r.ledger.due(r.draw, 10, 20)
	for _, n := range r.fleet.Nodes {
		r.got.check(r.t, n.user(r.fleet.Token), r.ledger, instances, keys)
	}
	return r.found()
}

func (r *clusterRun) found() error {
	if f := &r.got.found; len(f.lost)+len(f.doubled)+len(f.broken) > 0 {
		return errors.New(f.String())
	}
	return nil
}

func (n *Node) user(token string) user {
	address := func() (string, error) { return n.HTTP, nil }
	return user{wiretest.User{Client: &wiretest.Client{Address: address}, Credential: []string{"Authorization: svc.token " + token}}}
}

// replicas kills all nodes and makes each a cluster of its own, which must have everything. Where shards are on some of the
// nodes, everything is read through each node instead.
func (r *clusterRun) replicas(ctx context.Context) error {
	if !r.everywhere() {
		instances, keys := r.ledger.all(r.draw, 100)
		for _, n := range r.fleet.Nodes {
			r.got.check(r.t, n.user(r.fleet.Token), r.ledger, instances, keys)
		}
		return r.found()
	}
	err := Again(ctx, func() error { // what only a majority has shall be everywhere
		status, err := r.fleet.Nodes[0].Status(ctx)
		for _, n := range status.Nodes {
			if n.Lag > 0 {
				err = errors.Join(err, fmt.Errorf("%s lacks %d entries", n.ID, n.Lag))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, n := range r.fleet.Nodes {
		all.Go(n.Kill)
	}
	all.Wait()
	instances, keys := r.ledger.all(r.draw, 100)
	for _, n := range r.fleet.Nodes {
		if _, err := n.Output(ctx, "cluster", "recover", "--i-accept-loss", "--home", n.Home); err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
		u := n.user(r.fleet.Token)
		err := Again(ctx, func() error {
			a, err := u.Try(request{Method: "GET", Path: "/readyz"})
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("it is not ready: %d %s", a.Status, a.Body)
			}
			return err
		})
		if err != nil {
			return err
		}
		r.got.check(r.t, u, r.ledger, instances, keys)
		r.got.checkList(r.t, u, r.ledger)
		if err := r.found(); err != nil {
			return fmt.Errorf("the replica of %s alone: %w", n.Home, err)
		}
		n.Kill()
	}
	return nil
}

// everywhere reports whether each node has every shard.
func (r *clusterRun) everywhere() bool {
	return !slices.ContainsFunc(r.kinds, func(k string) bool { return slices.Contains(moving, k) })
}

// mayPass reports whether a cluster under faults may give a status.
func mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout
}

func keepLogs(dir string) (string, error) {
	to, err := os.MkdirTemp("", "troupe-cluster-logs-")
	if err != nil {
		return "", err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, log := range logs {
		err = errors.Join(err, os.Rename(log, filepath.Join(to, filepath.Base(log))))
	}
	return to, err
}

func (r *clusterRun) hurt(ctx context.Context) error {
	draw := r.draw
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
		if err := prepare(ctx, r.fleet, e.kind); err != nil {
			return fmt.Errorf("before episode %d, %s: %w", i+1, e.kind, err)
		}
		nodes := slices.Clone(r.fleet.Nodes)
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
			if err := r.check(); err != nil {
				return fmt.Errorf("after episode %d: %w", i+1, err)
			}
		}
	}
	return nil
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func (r *clusterRun) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d episodes; %d acknowledgements for %d instances and %d reads beside them: none is missing, none is there twice, through each node%s.\n\n",
		len(r.done), r.ledger.mu.acks, len(r.ledger.mu.created), r.ledger.mu.looks, map[bool]string{true: ", and on each replica alone"}[r.everywhere()])
	b.WriteString("Seconds, middle–p99–most: nobody acknowledged anything (gap), one event or batch took with all its attempts at any node (slowest event of an episode), " +
		"from the last command of an episode until all nodes were voters again (whole).\n\n")
	b.WriteString("| Episode | how many | gap | slowest event | whole |\n|---|---|---|---|---|\n")
	for _, k := range slices.Concat(simple, moving, calm, apart) {
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
