package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"troupe/bench/process"
)

// run is what one window of a system gave.
type run struct {
	rate           float64 // orders per second that were done
	used           float64 // ms of processor time for each, of the servers, the worker and the database
	generator      float64 // the same of this program
	middle, almost float64 // ms from the start of a workflow, or of a batch, until it is known to be done: p50 and p99
}

// measure keeps so many orders under way: first for the warm-up and until as many are done, then for the window, in which it counts
// those that are done.
func measure(ctx context.Context, s *started, inFlight, batch int, warmup, window time.Duration, number func() string) (r run, done int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var waits []time.Duration // in the window
	inWindow, over, warm := false, false, make(chan struct{})
	var group sync.WaitGroup
	for range inFlight / batch {
		group.Go(func() {
			for last := false; !last && ctx.Err() == nil; {
				orders := make([]Order, batch)
				for i := range orders {
					orders[i] = newOrder(number())
				}
				begun := time.Now()
				if err := s.run(ctx, orders); err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				if done += batch; done-batch < inFlight && done >= inFlight {
					close(warm)
				}
				if inWindow {
					waits = append(waits, time.Since(begun))
				}
				last = over
				mu.Unlock()
			}
		})
	}
	var used, own [2]time.Duration
	var errs [4]error
	var at [2]time.Time
	mark := func(i int) {
		select {
		case <-time.After([]time.Duration{warmup, window}[i]):
		case <-ctx.Done():
		}
		select {
		case <-warm:
		case <-ctx.Done():
		}
		mu.Lock()
		at[i], inWindow, over = time.Now(), i == 0, i == 1
		mu.Unlock()
		used[i], errs[i] = s.processorTime()
		own[i], errs[2+i] = process.ProcessorTime(os.Getpid())
	}
	mark(0)
	mark(1)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		for _, p := range s.processes {
			if failure := p.Failure(); failure != nil {
				err = fmt.Errorf("%w: %w", err, failure)
			}
		}
		return run{}, done, err
	}
	for _, err := range errs {
		if err != nil {
			return run{}, done, err
		}
	}
	if len(waits) == 0 {
		return run{}, done, fmt.Errorf("no order was done in %v", window)
	}
	slices.Sort(waits)
	of := float64(len(waits) * batch)
	return run{
		rate: of / at[1].Sub(at[0]).Seconds(), used: milliseconds(used[1]-used[0]) / of, generator: milliseconds(own[1]-own[0]) / of,
		middle: milliseconds(waits[len(waits)/2]), almost: milliseconds(waits[len(waits)*99/100]),
	}, done, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
