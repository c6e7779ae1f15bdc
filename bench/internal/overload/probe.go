package overload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

// probe is something that must be answered whatever else is going on.
type probe struct {
	name   string
	client *http.Client
	// method, url, body and token are the request.
	method, url, body, token string

	mu      sync.Mutex
	latency load.Histogram // of right answers
	failed  int64
}

// probes are asked in turn.
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
	// recoverMax is how long the end of an overload is waited for.
	recoverMax = 15 * time.Second
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
			ok := one.ask(ctx)
			if ctx.Err() == nil {
				one.count(ok, time.Since(due))
			}
		})
	})
}

func (p *probe) count(ok bool, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.latency.Record(took)
	} else {
		p.failed++
	}
}

// ask sends the request. It is true when the answer is 200 and complete.
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
		if one.failed > 0 {
			errors[fmt.Sprintf("%s without an answer", one.name)] += one.failed
		}
		slowest = max(slowest, one.latency.Summary(time.Second).P99.Milliseconds())
	}
	return slowest
}

// recovered is how long after now the quick probes are all answered in quickMax again;
// recoverMax when they are not.
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
