package operate

import (
	"sync"
	"time"

	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
)

// vitalsEvery bounds how often Services.Vitals is asked: it takes locks of the store.
const vitalsEvery = time.Second

// vitalsReading is the last answer of Services.Vitals. It is safe for concurrent use.
type vitalsReading struct {
	mu   sync.Mutex
	at   time.Time
	last *api.Vitals
}

// read asks again when the last answer is old.
func (v *vitalsReading) read(ask func() api.Vitals) *api.Vitals {
	if ask == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); v.last == nil || now.Sub(v.at) >= vitalsEvery {
		vitals := ask()
		v.at, v.last = now, &vitals
	}
	return v.last
}

// showHealth answers GET admin/api/v1/health. It is about this node, so it is never forwarded.
func (g *Group) showHealth(x *kernel.Exchange) error {
	s := x.Kernel
	answer := api.Health{
		TS: show.Time(time.Now()), Started: show.Time(s.Started), Ready: true, Build: api.Build(s.Options.Build),
		Requests: requestCounts(s), Vitals: g.vitals.read(g.Vitals),
	}
	for _, p := range g.readiness(x) {
		part := api.HealthPart{Name: p.name, Ready: p.reason == "", Optional: p.optional}
		if !part.Ready {
			part.Reason = parse.Clip(p.reason)
		}
		answer.Ready = answer.Ready && (part.Ready || part.Optional)
		answer.Parts = append(answer.Parts, part)
	}
	if g.Cluster != nil {
		answer.Cluster = g.Cluster()
	}
	return x.AnswerJSON(answer)
}

// requestCounts sums the answers of all routes up.
func requestCounts(s *kernel.Kernel) api.RequestCounts {
	m := s.Snapshot()
	counts := api.RequestCounts{Shed: m.Shed, InFlight: m.InFlight, Places: m.Places, Connections: m.Connections, Watchers: m.Watchers}
	for _, route := range m.Routes {
		for _, n := range route.Answers {
			counts.Answered += n
		}
		counts.Failed += route.Answers[0] + route.Answers[5]
	}
	return counts
}
