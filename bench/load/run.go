package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Run puts load on a server and returns what it measured. It returns an error when the run could not be carried out: no
// connection, no instances, or ctx ended. What was measured until ctx ended comes with its error; the result is nil
// when that was before the window. Failed requests are not an error; see Result.Failed.
func Run(ctx context.Context, o Options) (*Result, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{options: o}
	var count atomic.Int64
	for i := range o.Connections {
		r.workers = append(r.workers, newWorker(&r.options, i, &count, &r.gap))
	}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Addr, err)
	}
	result, err := r.measure(ctx)
	if err != nil {
		return result, fmt.Errorf("load %s: %w", o.Addr, err)
	}
	return result, nil
}

type run struct {
	options Options // read only
	workers []*worker
	gap     gap
	used    [2]usages // at the edges of the window
}

func (r *run) close() {
	for _, w := range r.workers {
		for _, c := range w.conns {
			c.close()
		}
	}
}

// each runs work for every worker, all at once, and waits for the end. The first error ends the others. An end of ctx
// closes the connections, so that nobody waits for an answer.
func (r *run) each(ctx context.Context, work func(ctx context.Context, w *worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		for _, w := range r.workers {
			for _, c := range w.conns {
				c.interrupt()
			}
		}
	})
	defer stop()
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() {
			if err := work(ctx, w, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// prepare opens the connections, tries the list if there is one, and creates the instances.
func (r *run) prepare(ctx context.Context) error {
	err := r.each(ctx, func(ctx context.Context, w *worker, i int) error {
		return w.prepare(ctx, share(r.options.Instances, len(r.workers), i))
	})
	if err != nil {
		return err
	}
	if r.options.Instances >= len(r.workers) {
		return nil
	}
	// Too few for all: the others share them, and nobody knows their nodes.
	for i, w := range r.workers {
		if i < r.options.Instances {
			w.subjects[0].sure = false
			continue
		}
		s := r.workers[i%r.options.Instances].subjects[0]
		s.sure = false
		w.subjects = []subject{s}
	}
	return nil
}

func share(n, parts, i int) int {
	if i < n%parts {
		return n/parts + 1
	}
	return n / parts
}

func (r *run) measure(whole context.Context) (*Result, error) {
	o := &r.options
	begin := time.Now()
	win := window{begin: begin.Add(max(0, o.WarmUp)), open: o.Rate > 0}
	win.end = win.begin.Add(o.Duration)
	r.gap.window = win

	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	var beside sync.WaitGroup
	over := make(chan struct{})
	beside.Go(func() { r.watch(over, win) })
	series := sampler{workers: r.workers, window: win, options: o}
	beside.Go(func() { series.run(whole, over) })
	loop := func(ctx context.Context, w *worker, _ int) error { return w.closedLoop(ctx, win) }
	p := &pacer{rate: o.Rate, first: begin, window: win}
	if win.open {
		due := make(chan time.Time, o.QueueMax)
		beside.Go(func() { p.run(ctx, due) })
		loop = func(ctx context.Context, w *worker, _ int) error { return w.openLoop(ctx, win, due) }
	}
	err := r.each(ctx, loop)
	cancel()
	close(over)
	beside.Wait()
	length := o.Duration
	if err != nil {
		length = min(length, time.Since(win.begin))
		if whole.Err() == nil || length <= 0 {
			return nil, err
		}
		r.gap.window.end = win.begin.Add(length)
	}
	result := summarize(r.workers, length)
	gap := r.gap.end()
	result.RatePerSecond, result.Missed, result.Series = o.Rate, p.missed, series.done
	result.LongestGapSeconds, result.LongestGapAtSeconds = gap.Length.Seconds(), gap.Began.Seconds()
	result.cost(o.PID, r.used[0], r.used[1], length)
	return result, err
}

// watch tells about the edges of the window, the begin first however late it is, until
// the workers have ended. A run that is broken off may not reach the edges.
func (r *run) watch(over <-chan struct{}, win window) {
	edges := []time.Time{win.begin, win.end}
	for i, tell := range []func(){r.options.Began, r.options.Ended} {
		select {
		case <-time.After(time.Until(edges[i])):
		case <-over:
			if i == 0 && time.Now().Before(win.begin) {
				return
			}
		}
		r.used[i] = r.options.usages()
		tell()
	}
}

func summarize(workers []*worker, window time.Duration) *Result {
	var shed Histogram
	errors := causes{map[string]int64{}}
	r := &Result{DurationSeconds: window.Seconds(), Kinds: map[string]Summary{}}
	for k := range kinds {
		var one Histogram
		for _, w := range workers {
			one.Merge(&w.tally.answered[k])
		}
		r.Latencies.Merge(&one)
		if s := one.Summary(window); s.Count > 0 {
			r.Kinds[k.String()] = s
		}
	}
	for _, w := range workers {
		shed.Merge(&w.tally.shed)
		r.Requests += w.tally.requests
		r.Operations += w.tally.operations
		r.Shed += w.tally.refused
		for text, n := range w.tally.errors.of {
			errors.add(text, n)
		}
	}
	r.OperationsPerSecond, r.RequestsPerSecond = perSecond(r.Operations, window), perSecond(r.Requests, window)
	r.All, r.Refused, r.Percentiles = r.Latencies.Summary(window), shed.Summary(window), r.Latencies.Distribution()
	r.Latency, r.Errors, r.ErrorsTotal = r.All.Latency, errors.of, total(errors.of)
	return r
}

type window struct {
	begin, end time.Time
	open       bool // an open loop
}

type part struct {
	// came: it was answered inside. By that, what the server does in the window is counted:
	// requests of an open loop may have waited since the warm-up for their connection.
	came bool
	// due: its latency counts. In a closed loop that is the same; in an open one it was
	// due inside, so that a slow answer cannot fall out of the latencies.
	due bool
}

func (w *window) part(begun, ended time.Time) part {
	came := w.contains(ended)
	if !w.open {
		return part{came, came}
	}
	return part{came, w.contains(begun)}
}

func (w *window) contains(at time.Time) bool { return !at.Before(w.begin) && at.Before(w.end) }
