package trial

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/report"
)

// usage is the processor time that the server and this program have used, read at the edges of the window.
type usage struct {
	server, generator time.Duration
	// serverKnown and generatorKnown are false when it cannot be read here.
	serverKnown, generatorKnown bool
}

func (s *server) look() (u usage) {
	var err error
	if s.process != nil {
		u.server, err = process.ProcessorTime(s.process.PID())
		u.serverKnown = err == nil
	}
	u.generator, err = process.ProcessorTime(os.Getpid())
	u.generatorKnown = err == nil
	return u
}

// measure is one run: new instances, warm-up, window. When ctx ends in the window, what was
// measured until then comes with the error.
func (s *server) measure(ctx context.Context, p *Plan, at Progress) (*report.Run, error) {
	o := p.Load
	s.aim(&o)
	o.Rate = at.RatePerSecond
	at.Doing = fmt.Sprintf("preparing %d instances, warming up for %v", o.Instances, max(0, o.WarmUp))
	p.Progress(at)
	at.Doing = ""

	r := &report.Run{Target: s.Name, Round: at.Round, RatePerSecond: at.RatePerSecond}
	var mu sync.Mutex // of what follows: the edges and the intervals are told by different goroutines
	var begun, last, ended usage
	o.Began = func() {
		mu.Lock()
		defer mu.Unlock()
		begun = s.look()
		last = begun
	}
	o.Ended = func() { ended = s.look() }
	o.Tick = func(i *load.Interval) {
		mu.Lock()
		defer mu.Unlock()
		now := s.look()
		r.Series = append(r.Series, s.interval(i, now, last))
		last = now
		at.Now, at.Failed = *i, at.Failed+i.Failed()
		p.Progress(at)
	}
	result, interrupted := load.Run(ctx, o)
	if result == nil {
		return nil, interrupted
	}
	if err := s.alive(); err != nil {
		return nil, err
	}
	fill(r, result)
	cost(r, begun, ended, result.Window)
	if s.process != nil {
		if bytes := process.ResidentBytes(s.process.PID()); bytes > 0 {
			r.ServerResidentBytes = &bytes
		}
	}
	return r, interrupted
}

func (s *server) alive() error {
	if s.process == nil {
		return nil
	}
	select {
	case <-s.process.Ended():
		return fmt.Errorf("the server has ended. The end of its log:\n%s", s.process.LastWords())
	default:
		return nil
	}
}

func (s *server) interval(i *load.Interval, now, last usage) report.Interval {
	out := report.Interval{
		BeganSeconds: i.Began.Seconds(), EndedSeconds: i.Ended.Seconds(),
		OperationsPerSecond: perSecond(i.Operations, i.Ended-i.Began),
		Requests:            i.Latency.Count, Latency: latency(i.Latency), Shed: i.Shed, Errors: i.Failed(),
	}
	if now.serverKnown && last.serverKnown {
		cores := (now.server - last.server).Seconds() / max((i.Ended-i.Began).Seconds(), 1e-9)
		bytes := process.ResidentBytes(s.process.PID())
		out.ServerCPUCores, out.ServerResidentBytes = &cores, &bytes
	}
	return out
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func latency(s load.Summary) report.Latency {
	return report.Latency{
		MeanMs: s.Mean.Milliseconds(), P50Ms: s.P50.Milliseconds(), P90Ms: s.P90.Milliseconds(),
		P99Ms: s.P99.Milliseconds(), P999Ms: s.P999.Milliseconds(), MaxMs: s.Max.Milliseconds(),
	}
}

func fill(r *report.Run, result *load.Result) {
	r.DurationSeconds = result.Window.Seconds()
	r.Operations, r.OperationsPerSecond = result.Operations, result.PerSecond
	r.Requests, r.RequestsPerSecond = result.Requests, perSecond(result.Requests, result.Window)
	r.Latency, r.Kinds = latency(result.All), map[string]report.Kind{}
	for k, s := range result.Kinds {
		r.Kinds[k.String()] = report.Kind{Requests: s.Count, Latency: latency(s)}
	}
	r.Shed, r.Missed, r.ErrorsTotal = result.Refused, result.Missed, result.Failed()
	r.Errors = map[string]int64{}
	for text, n := range result.Errors {
		r.Errors[text] = n
	}
	r.LongestGapSeconds, r.LongestGapAtSeconds = result.Gap.Length.Seconds(), result.Gap.Began.Seconds()
	for _, q := range result.Latencies.Distribution() {
		r.Percentiles = append(r.Percentiles, report.Percentile{Percentile: 100 * q.Part, Ms: q.Latency.Milliseconds()})
	}
}

func cost(r *report.Run, begun, ended usage, window time.Duration) {
	one := func(used time.Duration, known bool) (perOperation, cores *float64) {
		if !known {
			return nil, nil
		}
		c := used.Seconds() / window.Seconds()
		if r.Operations > 0 {
			each := float64(used.Microseconds()) / float64(r.Operations)
			perOperation = &each
		}
		return perOperation, &c
	}
	r.ServerCPUMicrosPerOperation, r.ServerCPUCores = one(ended.server-begun.server, begun.serverKnown && ended.serverKnown)
	r.GeneratorCPUMicrosPerOperation, r.GeneratorCPUCores = one(ended.generator-begun.generator, begun.generatorKnown && ended.generatorKnown)
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
