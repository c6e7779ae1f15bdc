package trial

import (
	"context"
	"fmt"

	"troupe/bench/load"
	"troupe/bench/report"
)

// measure is one run: new instances, warm-up, window. When ctx ends in the window, what was
// measured until then comes with the error.
func (s *server) measure(ctx context.Context, p *Plan, at Progress) (*report.Run, error) {
	o := p.Load
	s.aim(&o)
	o.Rate = at.RatePerSecond
	at.Doing = fmt.Sprintf("preparing %d instances, warming up for %v", o.Instances, max(0, o.WarmUp))
	p.Progress(at)
	at.Doing = ""

	o.Tick = func(i *load.Interval) {
		at.Now, at.Failed = *i, at.Failed+i.Errors
		p.Progress(at)
	}
	result, interrupted := load.Run(ctx, o)
	if result == nil {
		return nil, interrupted
	}
	if s.process != nil {
		if err := s.process.Failure(); err != nil {
			return nil, err
		}
	}
	return &report.Run{Target: s.Name, Round: at.Round, Result: *result}, interrupted
}

// Shares of the processors above which the generator is in its own way.
const (
	generatorShareMax       = 0.8 // of the machine, when the server is elsewhere
	generatorToServerMax    = 1.0 // of what the server uses, when it is here
	busyShareMin            = 0.8 // of the machine, below which nothing was short
	gapToLatencyFactor      = 2   // a gap of so many median latencies stands out, also when the requests that waited for its end are half of all
	noticeableGapSecondsMin = 0.25
)

func warnings(r *report.Run, rep *report.Report) (all []string) {
	add := func(format string, args ...any) { all = append(all, r.Name(rep)+": "+fmt.Sprintf(format, args...)) }
	if r.Missed > 0 {
		cause := "the rate is more than the server can do"
		if r.LongestGapSeconds > noticeableGapSecondsMin && !sparse(r) {
			cause = "the server stood still, the server could not be reached"
		}
		add("%d requests were due in the window and found no free connection: %s, or %d connections are too few. They are in no latency; the latencies are those of the %d that were due in it and answered.",
			r.Missed, cause, rep.Load.Connections, r.InLatencies())
	}
	if r.ErrorsTotal > 0 {
		text, n := r.MostFrequentError()
		add("%d errors, most often %q (%d times). Figures of a run with errors say little.", r.ErrorsTotal, text, n)
	}
	if r.Shed > 0 {
		add("%d requests or events of batches were refused with 429 or 503, because the server was too busy, was starting or ending, or a quota was reached.", r.Shed)
	}
	if g := r.GeneratorCPUCores; g != nil {
		cores := float64(rep.Generator.Cores)
		switch s := r.ServerCPUCores; {
		case s == nil && *g > generatorShareMax*cores:
			add("the load generator used %.1f of %d cores and was itself the bottleneck.", *g, rep.Generator.Cores)
		case s != nil && *g > generatorToServerMax**s && *g+*s > busyShareMin*cores:
			add("the load generator used more of the processors (%.1f cores) than the server (%.1f): the throughput is not what the server can do. Look at its CPU for each operation, or measure from another machine.", *g, *s)
		}
	}
	if r.Requests > 0 && r.LongestGapSeconds > noticeableGapSecondsMin && r.LongestGapSeconds*1000 > gapToLatencyFactor*r.Latency.P50Ms && !sparse(r) {
		add("for %.2f s, from second %.1f on, there was no right answer.", r.LongestGapSeconds, r.LongestGapAtSeconds)
	}
	return all
}

// sparse reports whether the requests themselves were so far apart that gaps are natural.
func sparse(r *report.Run) bool {
	return r.RatePerSecond > 0 && r.LongestGapSeconds < 3/r.RatePerSecond
}
