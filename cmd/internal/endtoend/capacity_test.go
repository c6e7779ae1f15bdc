package endtoend

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/process"
	facts "troupe/bench/record"
	"troupe/gateway/client"
)

// What a run of TestCapacity is like.
var (
	capacityNodes  = flag.String("capacity", "", "how many nodes the clusters have, with commas, the first of them to compare with; empty leaves it out")
	capacityEvents = flag.Int("events", 30_000, "how many events each cluster gets")
	capacityIdle   = flag.Duration("idle", 15*time.Second, "how long each cluster has nothing to do while that is counted")
	capacitySends  = flag.Int("senders", 64, "how many send events at once to the first cluster")
	capacityGrows  = flag.Bool("senders-grow", false, "larger clusters get as many more of them: each node has the same load")
)

// instancesPerShard: events go to each in turn, so that all shards get as many.
const instancesPerShard = 30

// used is what the process of a node has used, and what its store has.
type used struct {
	processor time.Duration
	written   uint64 // bytes, as the kernel counts them
	stored    uint64 // bytes of tables
}

// grown is a cluster that was measured.
type grown struct {
	nodes     int
	load      []used // for all events, by node
	idle      []used
	led, held []int
	took      time.Duration
}

// TestCapacity counts what clusters of several sizes use for the same number of events: processor time, written bytes and
// stored bytes of each node. Each node is a process with a network and a file system of its own (see TestAClusterUnderFaults for
// what that takes). Nothing is evaluated.
//
//	go test -count=1 -timeout 0 -v -run '^TestCapacity$' ./cmd/internal/endtoend -capacity 3,5,7
func TestCapacity(t *testing.T) {
	if *capacityNodes == "" {
		t.Skip("-capacity says how many nodes there are")
	}
	var all []grown
	about, err := facts.Collect(t.TempDir())
	require.NoError(t, err)
	for text := range strings.SplitSeq(*capacityNodes, ",") {
		var nodes int
		_, err := fmt.Sscan(text, &nodes)
		require.NoError(t, err)
		senders := *capacitySends
		if *capacityGrows && len(all) > 0 {
			senders = senders * nodes / all[0].nodes
		}
		g, err := grow(t.Context(), nodes, senders)
		require.NoError(t, err)
		all = append(all, g)
		fmt.Fprintln(t.Output(), g)
	}
	table := capacityTable(all)
	fmt.Fprint(t.Output(), table)
	if *to != "" {
		header := about.Header("Clusters of several sizes", "go test ./cmd/internal/endtoend -run TestCapacity -capacity "+*capacityNodes)
		require.NoError(t, os.WriteFile(filepath.Join("../../..", *to), []byte(header+"\n"+table), 0o644))
	}
}

// grow measures a cluster of so many nodes.
func grow(ctx context.Context, nodes, senders int) (g grown, err error) {
	dir, err := os.MkdirTemp("", "troupe-capacity-")
	if err != nil {
		return g, err
	}
	var f *Fleet
	net, err := newNetwork(ctx, dir, nodes)
	defer func() {
		f.Close()
		err = errors.Join(err, net.close(context.WithoutCancel(ctx)), os.RemoveAll(dir))
	}()
	if err != nil {
		return g, err
	}
	if f, err = Found(ctx, Options{Dir: dir, Nodes: nodes, Machines: net.machines()}); err != nil {
		return g, err
	}
	g.nodes = nodes
	if g.led, g.held, err = f.even(ctx); err != nil {
		return g, err
	}
	c, err := f.client()
	if err != nil {
		return g, err
	}
	defer c.Close()
	instances := make([]string, 64*instancesPerShard)
	err = inParallel(senders, len(instances), func(i int) error {
		made, err := c.Create(ctx, client.CreateRequest{WorkflowID: "load", Minimal: true})
		if err == nil {
			instances[i] = made.ID
		}
		return err
	})
	if err != nil {
		return g, err
	}
	if g.idle, err = f.uses(func() error { load.Sleep(ctx, *capacityIdle); return nil }); err != nil {
		return g, err
	}
	begun := time.Now()
	g.load, err = f.uses(func() error {
		return inParallel(senders, *capacityEvents, func(i int) error {
			_, err := c.Send(ctx, client.SendRequest{WorkflowID: "load", InstanceID: instances[i%len(instances)], Event: "e.x", Minimal: true})
			return err
		})
	})
	if g.took = time.Since(begun); err != nil {
		return g, err
	}
	return g, f.stored(ctx, g.load)
}

// even waits until leaderships are as even as they become.
func (f *Fleet) even(ctx context.Context) (led, held []int, err error) {
	for same := 0; same < 8; load.Sleep(ctx, time.Second) {
		status, err := f.Nodes[0].Status(ctx)
		if err != nil || ctx.Err() != nil {
			return nil, nil, errors.Join(err, ctx.Err())
		}
		before := led
		led, held = nil, nil
		for _, n := range status.Nodes {
			led, held = append(led, n.Led), append(held, n.Held)
		}
		if same++; !slices.Equal(before, led) {
			same = 0
		}
	}
	return led, held, nil
}

// client asks the leaders.
func (f *Fleet) client() (*client.Client, error) {
	o := client.Options{Token: f.Token, RetryMax: 1000, CallMax: WholeMax, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}}
	for i, n := range f.Nodes {
		if address := "http://" + n.HTTP; i == 0 {
			o.Address = address
		} else {
			o.Others = append(o.Others, address)
		}
	}
	return client.New(o)
}

// inParallel does something so many times, some at once.
func inParallel(workers, times int, do func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < times && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// uses counts what the nodes use while something happens.
func (f *Fleet) uses(do func() error) (all []used, err error) {
	before := make([]used, len(f.Nodes))
	for i, n := range f.Nodes {
		if before[i], err = n.used(); err != nil {
			return nil, err
		}
	}
	if err := do(); err != nil {
		return nil, err
	}
	for i, n := range f.Nodes {
		after, err := n.used()
		if err != nil {
			return nil, err
		}
		all = append(all, used{processor: after.processor - before[i].processor, written: after.written - before[i].written})
	}
	return all, nil
}

func (n *Node) used() (u used, err error) {
	pid := n.Process().PID()
	if u.processor, err = process.ProcessorTime(pid); err != nil {
		return u, err
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return u, err
	}
	io, err := p.IO()
	u.written = io.WriteBytes
	return u, err
}

// stored starts all nodes again, so that what their logs had is in tables, and counts those.
func (f *Fleet) stored(ctx context.Context, all []used) error {
	for _, n := range f.Nodes {
		n.Stop()
	}
	for _, n := range f.Nodes {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	if err := f.Whole(ctx); err != nil {
		return err
	}
	for i, n := range f.Nodes {
		err := filepath.WalkDir(n.Home, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".sst" {
				return nil //nolint:nilerr // a table that a merge has removed
			}
			info, err := d.Info()
			if err == nil {
				all[i].stored += uint64(info.Size()) //nolint:gosec // a size
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g grown) String() string {
	return fmt.Sprintf("%d nodes: %v for %d events; led %v, held %v; load %v; idle %v", g.nodes, g.took.Round(time.Second), *capacityEvents, g.led, g.held, g.load, g.idle)
}

// capacityTable has for each cluster what a node uses for an event of the cluster, and how that is to the first cluster's,
// times their nodes: 1.00 is as replicas ÷ nodes.
func capacityTable(all []grown) string {
	var b strings.Builder
	events := float64(*capacityEvents)
	fmt.Fprintf(&b, "| Nodes | shards of a node | led by a node | processor µs | of that, as idle | × | written bytes | × | stored bytes | × |\n|---|---|---|---|---|---|---|---|---|---|\n")
	var first [3]float64
	for _, g := range all {
		row := [3]float64{}
		spread := [3][2]float64{}
		idle := 0.0
		for i := range g.load {
			u := [3]float64{float64(g.load[i].processor.Microseconds()) / events, float64(g.load[i].written) / events, float64(g.load[i].stored) / events}
			for k, x := range u {
				row[k] += x / float64(g.nodes)
				if spread[k][0] == 0 || x < spread[k][0] {
					spread[k][0] = x
				}
				spread[k][1] = max(spread[k][1], x)
			}
			idle += float64(g.idle[i].processor.Microseconds()) / capacityIdle.Seconds() * g.took.Seconds() / events / float64(g.nodes)
		}
		if first == [3]float64{} {
			for k := range first {
				first[k] = row[k] * float64(g.nodes)
			}
		}
		cell := func(k, digits int) string {
			return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, row[k], digits, spread[k][0], digits, spread[k][1])
		}
		ratio := func(k int) string { return fmt.Sprintf("%.2f", row[k]*float64(g.nodes)/first[k]) }
		fmt.Fprintf(&b, "| %d | %d–%d | %d–%d | %s | %.1f | %s | %s | %s | %s | %s |\n", g.nodes, slices.Min(g.held), slices.Max(g.held), slices.Min(g.led), slices.Max(g.led),
			cell(0, 1), idle, ratio(0), cell(1, 0), ratio(1), cell(2, 0), ratio(2))
	}
	return b.String()
}
