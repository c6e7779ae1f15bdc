package overload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

func usefulOf(r *load.Result) float64 {
	return r.All.PerSecond * float64(r.Latencies.AtMost(usefulMax)) / float64(max(1, r.All.Count))
}

// capacityConnections are those of the closed loop that finds the capacity, and of a load below it.
const capacityConnections = 256

// Rates and connections of the polite user.
const (
	politeRate        = 50
	politeConnections = 64
)

func (m *measurement) options(t *harness.Server, user string) load.Options {
	return load.Options{
		Addr: t.Addr, Token: t.Tokens[user], Minimal: true, WarmUp: m.warmUp, Duration: m.duration, QueueMax: -1,
		Connections: min(capacityConnections, m.connections), Instances: m.connections,
	}
}

func (m *measurement) round(ctx context.Context, home string) (_ []*outcome, err error) {
	t, err := m.start(ctx, home)
	if err != nil {
		return nil, err
	}
	end := func() error { return nil }
	defer func() {
		t.Stop()
		err = errors.Join(err, end())
	}()
	m.shared = "all of them: no share was asked for"
	if m.share > 0 {
		if limited, err := limitShare("/sys/fs/cgroup", t.PID(), m.share); err != nil {
			m.shared = "**all of them: it could not be limited**: " + err.Error()
		} else {
			end, m.shared = limited, fmt.Sprintf("%g of a processor in each period of %d ms", m.share, sharePeriodMicros/1000)
		}
	}
	var all []*outcome
	capacity := map[bool]float64{} // of all instances, and of one
	for _, p := range m.loads {
		if capacity[p.hot] == 0 {
			o := m.options(t, load.UserID)
			if p.hot {
				o.Connections, o.Instances = hotConnections, 1
			}
			r, err := load.Run(ctx, o)
			if err != nil {
				return nil, err
			}
			if capacity[p.hot] = r.OperationsPerSecond; r.OperationsPerSecond == 0 {
				return nil, fmt.Errorf("%w: %v", errNoEvent, r.Errors)
			}
			fmt.Fprintf(m.Errs, "capacity %.0f/s (one instance: %v), p50 %.0f ms\n", r.OperationsPerSecond, p.hot, r.Latency.P50Ms)
		}
		o, err := m.measure(ctx, t, p, capacity[p.hot])
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", p.name, err)
		}
		all = append(all, o)
		fmt.Fprintln(m.Errs, o.line(p))
	}
	m.comparePeak(all, capacity)
	return all, nil
}

// errNoEvent ends a round: without a capacity there is no load.
var errNoEvent = errors.New("no event was answered")

// hotConnections fill the queue of one instance to a quarter.
const hotConnections = 64

// comparePeak sets peakPart: of the most useful answers of all loads, the closed loop
// included. A load below the capacity can have no more than was due.
func (m *measurement) comparePeak(all []*outcome, capacity map[bool]float64) {
	peak := maps.Clone(capacity)
	for i, o := range all {
		hot := m.loads[i].hot
		peak[hot] = max(peak[hot], o.figures[useful])
	}
	for i, o := range all {
		o.figures[peakPart] = o.figures[useful] / peak[m.loads[i].hot]
	}
}

func (m *measurement) measure(ctx context.Context, t *harness.Server, p phase, capacity float64) (*outcome, error) {
	o := &outcome{errors: map[string]int64{}}
	main := m.options(t, load.UserID)
	main.Rate, main.Heed = p.rate*capacity, !p.deaf
	if p.rate >= 1 {
		main.Connections = m.connections
	}
	if p.hot {
		main.Instances = 1
	}
	polite := m.options(t, "polite")
	polite.Rate, polite.Connections, polite.Instances, polite.QueueMax = politeRate, politeConnections, politeConnections, 0
	loads := []load.Options{main, polite}
	if p.storm {
		storm := m.options(t, "storm")
		storm.Connections = m.connections
		loads = append(loads, storm)
	}
	if p.idle {
		held, err := hold(ctx, t.Addr, m.idle)
		defer held.close()
		if err != nil {
			return nil, err
		}
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	probes := newProbes(t, m.probeWaitMax)
	defer probes.close()
	loads[0].PID = t.PID()
	beside.Go(func() { o.figures[peakMB] = float64(process.PeakBytes(probing, t.PID()) >> 20) })
	results, err := load.RunTogether(ctx, loads, func() { beside.Go(func() { probes.run(probing) }) })
	stop()
	beside.Wait()
	if err != nil {
		return nil, err
	}
	o.figures[recovered] = harness.Milliseconds(probes.recovered(ctx))
	o.figures[demanded] = main.Rate
	o.take(results[0])
	if p.storm {
		o.add(results[2])
	}
	o.figures[politePart] = usefulOf(results[1]) / polite.Rate
	o.figures[polite99] = results[1].Latency.P99Ms
	o.figures[health99] = probes.worst(o.errors)
	for _, r := range results {
		for text, n := range r.Errors {
			o.errors[text] += n
		}
	}
	return o, ctx.Err()
}

func (o *outcome) take(r *load.Result) {
	f := &o.figures
	f[offered] = r.All.PerSecond + r.Refused.PerSecond
	f[useful] = usefulOf(r)
	if r.ServerCPUCores != nil {
		f[processorCores] = *r.ServerCPUCores
	}
	f[accepted50], f[accepted99] = r.Latency.P50Ms, r.Latency.P99Ms
	f[refused], f[refused50], f[refused99] = r.Refused.PerSecond, r.Refused.Latency.P50Ms, r.Refused.Latency.P99Ms
}

// add notes what those beside it got, whose requests are as many as are answered.
func (o *outcome) add(r *load.Result) {
	f := &o.figures
	f[demanded] += r.All.PerSecond + r.Refused.PerSecond
	f[offered] += r.All.PerSecond + r.Refused.PerSecond
	f[useful] += usefulOf(r)
	f[refused] += r.Refused.PerSecond
	f[refused50], f[refused99] = max(f[refused50], r.Refused.Latency.P50Ms), max(f[refused99], r.Refused.Latency.P99Ms)
}

type connections []net.Conn

func hold(ctx context.Context, addr string, n int) (connections, error) {
	all := make(connections, n)
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	err := load.Each(ctx, 64, n, func(ctx context.Context, i int) (err error) {
		all[i], err = d.DialContext(ctx, "tcp", addr)
		return err
	})
	return all, err
}

func (c connections) close() {
	for _, conn := range c {
		if conn != nil {
			_ = conn.Close() // nothing was sent
		}
	}
}

// probe is something that must be answered whatever else is going on.
type probe struct {
	name   string
	client *http.Client
	// method, url, body and token are the request.
	method, url, body, token string

	got harness.Observed
}

type probes struct {
	all []*probe
	// quick are asked when the load is over: a new connection, and something durable.
	quick []*probe
}

const (
	probeRate = 60 // a second, over all
	// probeWaitMax is when a probe counts as not answered.
	probeWaitMax = 5 * time.Second
	// quickMax is what counts as quick once the load is over, and the goal under it.
	quickMax = 50 * time.Millisecond
)

func newProbes(t *harness.Server, waitMax time.Duration) *probes {
	client := func(fresh bool) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: fresh}, Timeout: waitMax}
	}
	p := &probes{all: []*probe{
		{name: "livez on a new connection", client: client(true), method: http.MethodGet, url: "http://" + t.Addr + "/livez"},
		{name: "readyz", client: client(false), method: http.MethodGet, url: "http://" + t.Addr + "/readyz"},
		{name: "metrics", client: client(false), method: http.MethodGet, url: "http://" + t.Admin + "/metrics"},
	}}
	p.quick = []*probe{p.all[0], {
		name: "create", client: client(false), method: http.MethodPost, url: "http://" + t.Addr + "/workflow/api/v1/create",
		body: `{"workflowId":"` + load.WorkflowID + `"}`, token: t.Tokens["polite"],
	}}
	return p
}

func (p *probes) close() {
	for _, one := range append(p.all, p.quick...) {
		one.client.CloseIdleConnections()
	}
}

// run asks until ctx ends. What is on its way then is not counted.
func (p *probes) run(ctx context.Context) {
	var sent sync.WaitGroup
	defer sent.Wait()
	n := 0
	now := time.Now()
	load.Pace(ctx, probeRate, now, now.Add(10*time.Minute), func(due time.Time) {
		one := p.all[n%len(p.all)]
		n++
		sent.Go(func() {
			switch ok := one.ask(ctx); {
			case ctx.Err() != nil:
			case ok:
				one.got.Answered(time.Since(due))
			default:
				one.got.Count(one.name + " without an answer")
			}
		})
	})
}

func (p *probe) ask(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, p.method, p.url, strings.NewReader(p.body))
	if err != nil {
		panic(err) // our own request
	}
	r.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		r.Header.Set("Authorization", "svc.token "+p.token)
	}
	reply, err := p.client.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	return err == nil && reply.StatusCode == http.StatusOK
}

// worst is the p99 of the slowest probe in ms. Probes that failed become errors.
func (p *probes) worst(errors map[string]int64) (slowest float64) {
	for _, one := range p.all {
		got := one.got.Outcome(time.Second)
		for text, n := range got.Errors {
			errors[text] += n
		}
		slowest = max(slowest, got.Latency.P99Ms)
	}
	return slowest
}

// recovered is how long after now the quick probes are all answered in quickMax again.
func (p *probes) recovered(ctx context.Context) time.Duration {
	return harness.Recovered(ctx, func(ctx context.Context) bool {
		quick := true
		for _, one := range p.quick {
			asked := time.Now()
			quick = one.ask(ctx) && time.Since(asked) <= quickMax && quick
		}
		return quick
	})
}
