package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
)

// measure puts the load on each target in turn. Every round begins with another
// target, so that none always follows the same.
func (p *plan) measure(ctx context.Context, all []*target) ([]*sample, error) {
	var samples []*sample
	for _, c := range p.cells {
		all := slices.DeleteFunc(slices.Clone(all), func(t *target) bool { return !t.takes(c) })
		for round := range p.rounds {
			for i := range all {
				t := all[(i+round)%len(all)]
				for _, asked := range p.variants(round) {
					s, err := p.measureOne(ctx, t, c, asked)
					if err != nil {
						return nil, fmt.Errorf("%s, %s, round %d: %w\n%s", t.name, c, round+1, err, t.LastWords())
					}
					s.round = round + 1
					samples = append(samples, s)
					fmt.Fprintf(p.Errs, "%s, round %d of %d: %-8s %7.0f/s, p99 %6.2f ms, %5.1f µs%s\n",
						c, s.round, p.rounds, t.name, s.perSecond(), s.p99(), s.serverCost(), s.asked())
				}
			}
		}
	}
	return samples, nil
}

func (s *sample) asked() string {
	if s.queries == nil {
		return ""
	}
	return fmt.Sprintf("; %d queries, p50 %.1f ms, p99 %.1f ms", s.queries.All.Count, s.queries.All.P50.Milliseconds(), s.queries.All.P99.Milliseconds())
}

// measureOne is one run: new instances, warm-up, window, with queries beside it or without. Processor times are read at
// the edges of the window, to a hundredth of a second, so windows below a second say little about them.
func (p *plan) measureOne(ctx context.Context, t *target, c cell, asked bool) (*sample, error) {
	s := &sample{target: t.name, cell: c}
	var fault error
	// look adds the processor times so far, with a sign.
	look := func(sign time.Duration) {
		server, err := t.used()
		client, err2 := process.ProcessorTime(os.Getpid())
		fault = errors.Join(fault, err, err2)
		s.server += sign * server
		s.client += sign * client
	}
	o := p.load
	o.Addr, o.More, o.Token, o.Connections, o.Minimal, o.Batch = t.Addr, t.more(), t.token, c.connections, c.minimal, c.batch
	profiled := make(chan error, 1)
	o.Began, o.Ended = func() {
		look(-1)
		go func() {
			var err error
			if p.profile {
				s.shares, err = profileTarget(ctx, t, o.Duration)
			}
			profiled <- err
		}()
	}, func() { look(1) }
	loads := []load.Options{o}
	if asked {
		loads = append(loads, p.asking(t, o))
	}
	results, err := load.RunTogether(ctx, loads, func() {})
	if err != nil {
		return nil, err
	}
	if s.result = results[0]; asked {
		s.queries = results[1]
	}
	fault = errors.Join(fault, <-profiled)
	s.memory = t.bytes()
	return s, fault
}
