package overload

import (
	"context"
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
		got := one.got.Outcome(time.Second)
		for text, n := range got.Errors {
			errors[text] += n
		}
		slowest = max(slowest, got.P99.Milliseconds())
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
