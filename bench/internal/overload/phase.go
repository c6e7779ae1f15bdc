package overload

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

const (
	// capacityConnections are those of the closed loop that finds the capacity, and of a load below it.
	capacityConnections = 256
	// hotConnections fill the queue of one instance to a quarter.
	hotConnections = 64

	politeRate        = 50 // of the polite user's events
	politeConnections = 64
	probeRate         = 60 // a second, over all
	probeWaitMax      = 5 * time.Second
	recoverMax        = 15 * time.Second
	// quickMax is what counts as quick once the load is over, and the goal under it.
	quickMax = 50 * time.Millisecond
)

func (m *measurement) options(t *harness.Server, user string) load.Options {
	return load.Options{
		Addr: t.Addr, Token: t.Tokens[user], Minimal: true, WarmUp: m.warmUp, Duration: m.duration, QueueMax: -1,
		Connections: min(capacityConnections, m.connections), Instances: m.connections,
	}
}

func (m *measurement) measure(ctx context.Context, t *harness.Server, p *phase, capacity float64) (*result, error) {
	r := &result{phase: p, due: p.rate * capacity}
	main, polite, storm := m.options(t, load.UserID), m.options(t, "polite"), m.options(t, "storm")
	main.Rate, main.Heed, main.PID = r.due, !p.deaf, t.PID()
	if p.rate >= 1 {
		main.Connections = m.connections
	}
	if p.hot {
		main.Instances = 1
	}
	polite.Rate, polite.Connections, polite.Instances, polite.QueueMax = politeRate, politeConnections, politeConnections, 0
	storm.Connections = m.connections
	loads := []load.Options{polite, main, storm}
	if !p.storm {
		loads = loads[:2]
	}
	if p.idle {
		end, err := hold(ctx, t.Addr, m.idle)
		defer end()
		if err != nil {
			return nil, err
		}
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	probes := newProbes(t, m.probeWaitMax)
	defer probes.close()
	beside.Go(func() { r.peakBytes = process.PeakBytes(probing, t.PID()) })
	results, err := load.RunTogether(ctx, loads, func() { beside.Go(func() { probes.run(probing) }) })
	stop()
	beside.Wait()
	if err != nil {
		return nil, err
	}
	r.recovered = probes.recovered(ctx)
	r.polite, r.loads, r.health, r.failed = results[0], results[1:], probes.worst(), probes.failed
	return r, ctx.Err()
}

// hold opens connections that send nothing, until end is called.
func hold(ctx context.Context, addr string, n int) (end func(), err error) {
	all := make([]net.Conn, n)
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	err = load.Each(ctx, 64, n, func(ctx context.Context, i int) (err error) {
		all[i], err = d.DialContext(ctx, "tcp", addr)
		return err
	})
	return func() {
		for _, conn := range all {
			if conn != nil {
				_ = conn.Close() // nothing was sent
			}
		}
	}, err
}

// probe is something that must be answered whatever else is going on.
type probe struct {
	name, url string
	token     string // of a create; empty: it is a GET
	client    *http.Client
	latency   load.Histogram // of right answers; probes has the lock
}

type probes struct {
	all []*probe
	// quick are asked when the load is over: a new connection, and something durable.
	quick []*probe

	mu     sync.Mutex
	failed map[string]int64 // without a right answer, by name
}

func newProbes(t *harness.Server, waitMax time.Duration) *probes {
	fresh := &http.Client{Timeout: waitMax, Transport: &http.Transport{DisableKeepAlives: true}}
	kept := &http.Client{Timeout: waitMax, Transport: &http.Transport{}}
	p := &probes{failed: map[string]int64{}, all: []*probe{
		{name: "livez on a new connection", client: fresh, url: "http://" + t.Addr + "/livez"},
		{name: "readyz", client: kept, url: "http://" + t.Addr + "/readyz"},
		{name: "metrics", client: kept, url: "http://" + t.Admin + "/metrics"},
	}}
	p.quick = []*probe{p.all[0], {name: "create", client: kept, url: "http://" + t.Addr + "/workflow/api/v1/create", token: t.Tokens["polite"]}}
	return p
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
			if ok := one.ask(ctx); ctx.Err() == nil {
				p.count(one, ok, time.Since(due))
			}
		})
	})
}

func (p *probes) count(one *probe, ok bool, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		one.latency.Record(took)
	} else {
		p.failed[one.name+" without an answer"]++
	}
}

func (p *probe) ask(ctx context.Context) bool {
	method, body := http.MethodGet, ""
	if p.token != "" {
		method, body = http.MethodPost, `{"workflowId":"`+load.WorkflowID+`"}`
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url, strings.NewReader(body))
	if err != nil {
		panic(err) // our own request
	}
	if p.token != "" {
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"svc.token " + p.token}}
	}
	reply, err := p.client.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	return err == nil && reply.StatusCode == http.StatusOK
}

// worst is the p99 of the slowest probe in ms.
func (p *probes) worst() (slowest float64) {
	for _, one := range p.all {
		slowest = max(slowest, one.latency.Summary(0).Latency.P99Ms)
	}
	return slowest
}

// recovered is how long after now the quick probes are all answered in quickMax again; recoverMax when they are not.
func (p *probes) recovered(ctx context.Context) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, recoverMax)
	defer cancel()
	for ctx.Err() == nil {
		quick := true
		for _, one := range p.quick {
			asked := time.Now()
			quick = one.ask(ctx) && time.Since(asked) <= quickMax && quick
		}
		if quick {
			return time.Since(begun)
		}
		load.Sleep(ctx, 10*time.Millisecond)
	}
	return recoverMax
}

func (p *probes) close() {
	for _, one := range p.quick {
		one.client.CloseIdleConnections()
	}
}
