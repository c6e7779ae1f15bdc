package fairness

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

type kind struct {
	name  string
	share int  // of a round of the mix
	fresh bool // on a connection of its own
	// make makes the request with a number, which goes up.
	make func(ctx context.Context, p *polite, n int) *http.Request
}

const signIn = "sign-in"

// byNode is a query that an index answers, with few hits.
var byNode = workflowPath + "/instances/ticket?limit=50&filter=" + url.QueryEscape(`{"states.nodeId":"closed"}`)

var kinds = []kind{
	{name: "event", share: 30, make: func(ctx context.Context, p *polite, n int) *http.Request {
		return p.request(ctx, workflowPath+"/event", event(p.ids[n%len(p.ids)], `{"comment":"a line that somebody wrote, number `+strconv.Itoa(n)+`"}`))
	}},
	{name: "read", share: 30, make: func(ctx context.Context, p *polite, n int) *http.Request {
		return p.request(ctx, workflowPath+"/instance/ticket/"+p.ids[n%len(p.ids)], "")
	}},
	{name: "query", share: 10, make: func(ctx context.Context, p *polite, _ int) *http.Request { return p.request(ctx, byNode, "") }},
	{name: "tasks", share: 10, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		return p.request(ctx, workflowPath+"/tasks?limit=50", "")
	}},
	{name: "forms", share: 10, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		return p.request(ctx, "/form-portal/forms/mycurrent", "")
	}},
	{name: "files", share: 5, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		return p.request(ctx, "/repository/api/v1/list-files?extension=rml", "")
	}},
	{name: "parameters", share: 5, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		return p.request(ctx, "/rml-engine/api/v1/parameters?rml=/reports/summary.rml", "")
	}},
	{name: signIn, share: 1, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		return p.with("", "").request(ctx, "/session", `{"user":"polite","password":"`+politePassword+`"}`)
	}},
	{name: "livez, new connection", share: 10, fresh: true, make: func(ctx context.Context, p *polite, _ int) *http.Request {
		r := p.with("", "").request(ctx, "/livez", "")
		r.Close = true
		return r
	}},
}

type polite struct {
	*caller
	ids      []string // of the instances for events and reads
	fresh    *caller  // keeps no connection
	waitMax  time.Duration
	observed []harness.Observed
	all      harness.Observed // of all kinds but signIn
}

const politeConnections = 32

func newPolite(addr string, h *home) *polite {
	return &polite{
		caller: newCaller(addr, politeAddr, politeConnections, nil).with(h.polite.token, h.polite.cookie),
		fresh:  newCaller(addr, politeAddr, 0, nil), ids: h.politeIDs, waitMax: answerWaitMax, observed: make([]harness.Observed, len(kinds)),
	}
}

// run sends rate requests per second from first on, whatever happens to them, and returns when the last one was answered
// or given up. What is due after the warm-up is measured, for the duration: it is counted from when it was due.
func (p *polite) run(ctx context.Context, rate float64, first time.Time, warmUp, duration time.Duration) {
	begin := first.Add(warmUp)
	var sent sync.WaitGroup
	defer sent.Wait() // rate × waitMax bounds how many there are
	turns := mix()
	n := 0
	load.Pace(ctx, rate, first, begin.Add(duration), func(due time.Time) {
		k, number := turns[n%len(turns)], n
		n++
		sent.Go(func() { p.send(ctx, k, number, due, !due.Before(begin)) })
	})
}

// mix is one round of kinds by their shares, always in the same random order.
func mix() []int {
	var turns []int
	for i, k := range kinds {
		for range k.share {
			turns = append(turns, i)
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	return turns
}

func (p *polite) send(ctx context.Context, k, number int, due time.Time, measured bool) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(p.waitMax))
	defer cancel()
	status, body, err := p.ask(ctx, k, number)
	elapsed := time.Since(due)
	o := &p.observed[k]
	switch {
	case !measured:
	case err != nil:
		o.Count(cause(err))
	case status != http.StatusOK:
		o.Count(statusText(status, body))
	default:
		o.Answered(elapsed)
		if kinds[k].name != signIn {
			p.all.Answered(elapsed)
		}
	}
}

func (p *polite) ask(ctx context.Context, k, number int) (status int, body []byte, err error) {
	c := p.caller
	if kinds[k].fresh {
		c = p.fresh
	}
	return c.do(kinds[k].make(ctx, p, number))
}

// recovered is how long after now a request on a new connection and an event are answered again.
func (p *polite) recovered(ctx context.Context) time.Duration {
	return harness.Recovered(ctx, func(ctx context.Context) bool {
		good := 0
		for _, k := range []int{0, len(kinds) - 1} {
			if status, _, err := p.ask(ctx, k, 0); err == nil && status == http.StatusOK {
				good++
			}
		}
		return good == 2
	})
}

func (p *polite) close() {
	p.caller.close()
	p.fresh.close()
}

type measurement struct {
	*harness.Harness
	attacks     []attack
	duration    time.Duration // of the measured window of each attack
	warmUp      time.Duration // before it, already under attack
	rate        float64       // of the polite user's requests
	loops       int           // hostile requests at a time
	connections int           // hostile connections that are only held
	records     int           // hostile instances that are there before
	tasks       int           // hostile tasks, and events of a long history
	serve       []string      // arguments of troupe serve
}

// home is a server with a home of its own, its users and what they have in it. It does not run between attacks.
type home struct {
	*harness.Server
	polite, hostile credentials
	politeIDs       []string
	hostileIDs      []string
	hot             string
}

type credentials struct{ token, cookie string }

type phase struct {
	Attack string
	What   string
	// Kinds are the polite user's requests.
	Kinds map[string]*harness.Outcome
	// All are those of all kinds but sign-in, which costs a password's hash no matter who is there.
	All load.Summary
	// Hostile counts what the hostile one was answered.
	Hostile map[string]int64
	// Recovered is how long after the attack the polite user waited until a new
	// connection and an event were answered again.
	Recovered time.Duration
	// Cores is the server's processor time for each second, and PeakBytes the most memory that it had.
	Cores     float64
	PeakBytes int64
	// Died says how the server ended before it was told to; empty: it did not.
	Died string
}
