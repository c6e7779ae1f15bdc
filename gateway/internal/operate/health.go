package operate

import (
	"encoding/json"
	"net/http"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

func appendBuild(dst []byte, b kernel.Build) []byte {
	dst = append(dst, `,"build":{"version":`...)
	dst = data.AppendString(dst, b.Version)
	dst = append(dst, `,"commit":`...)
	dst = data.AppendString(dst, b.Commit)
	dst = append(dst, `,"go":`...)
	dst = data.AppendString(dst, b.Go)
	return append(dst, '}')
}

// answerLive answers GET /livez: always 200. A restart would not repair what is broken outside the process.
func answerLive(x *kernel.Exchange) error {
	x.Out = append(x.Out, `{"status":"ok"}`...)
	x.Send(http.StatusOK)
	return nil
}

// answerReady answers GET /readyz: 200 when requests are taken, otherwise 503 with the first reason. "verbose" in the
// query adds all parts, the build, and the nodes of a cluster.
func (g *Group) answerReady(x *kernel.Exchange) error {
	parts := g.readiness(x)
	status, reason := http.StatusOK, ""
	for _, part := range parts {
		if part.reason != "" && !part.optional {
			status, reason = http.StatusServiceUnavailable, part.name+": "+part.reason
			break
		}
	}
	if status == http.StatusOK {
		x.Out = append(x.Out, `{"status":"ready"`...)
	} else {
		f := kernel.MappingOf(failure.ErrUnavailable)
		kernel.SetErrorHeaders(x.Writer.Header(), f)
		x.Out = f.AppendBody(x.Out, kernel.GroupWorkflow, parse.Clip(reason))
		x.Out = x.Out[:len(x.Out)-1] // the brace; more may follow
	}
	if x.Request.URL.Query().Has("verbose") {
		if b := x.Kernel.Options.Build; b != (kernel.Build{}) {
			x.Out = appendBuild(x.Out, b)
		}
		x.Out = appendParts(x.Out, parts)
		if x.IsOpen() && g.Cluster != nil {
			text, err := json.Marshal(g.Cluster())
			if err != nil {
				return err
			}
			x.Out = append(append(x.Out, `,"cluster":`...), text...)
		}
	}
	x.Out = append(x.Out, '}')
	x.Send(status)
	return nil
}

func appendParts(dst []byte, parts []partState) []byte {
	dst = append(dst, `,"parts":[`...)
	for i, part := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = data.AppendString(dst, part.name)
		if part.reason == "" {
			dst = append(dst, `,"ready":true}`...)
			continue
		}
		dst = append(dst, `,"ready":false,"reason":`...)
		dst = data.AppendString(dst, parse.Clip(part.reason))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

type partState struct {
	name, reason string
	optional     bool
}

func (g *Group) readiness(x *kernel.Exchange) []partState {
	states := []partState{{name: "gateway", reason: x.Kernel.Reason()}}
	if !x.IsOpen() {
		return states
	}
	for _, part := range g.Parts {
		state := partState{name: part.Name, optional: part.Optional}
		if err := part.Ready(); err != nil {
			state.reason = err.Error()
		}
		states = append(states, state)
	}
	return states
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

func requestCounts(s *kernel.Kernel) api.RequestCounts {
	m := s.Snapshot()
	counts := api.RequestCounts{Shed: m.Shed, InFlight: m.InFlight, Places: m.Places, Connections: m.Connections, Watchers: m.Watchers}
	for _, a := range m.Answers {
		counts.Answered += a.Count
		if a.Status == 0 || a.Status >= 500 {
			counts.Failed += a.Count
		}
	}
	return counts
}

// showLoad answers GET admin/api/v1/load. All nodes are asked, so it is never forwarded.
func (g *Group) showLoad(x *kernel.Exchange) error {
	answer := api.Load{Nodes: 1}
	if g.Load != nil {
		answer = g.Load(x.Request.Context())
	}
	if answer.Minutes == nil {
		answer.Minutes = []api.Minute{}
	}
	return x.AnswerJSON(answer)
}

// listBackups answers GET admin/api/v1/backups. It is about this node's setting, so it is never forwarded.
func (g *Group) listBackups(x *kernel.Exchange) error {
	answer := api.Backups{Backups: []api.Backup{}}
	if g.Backups != nil {
		answer.Backups = append(answer.Backups, g.Backups(x.Request.Context())...)
	}
	return x.AnswerJSON(answer)
}

// listExports answers GET admin/api/v1/exports. The exporters of all nodes are asked, so it is never forwarded.
func (g *Group) listExports(x *kernel.Exchange) error {
	answer := api.Exports{Exports: []api.Export{}}
	if g.Exports == nil {
		return x.AnswerJSON(answer)
	}
	list, err := g.Exports(x.Request.Context())
	if err != nil {
		return err
	}
	for _, e := range list {
		out := api.Export{Name: e.Name, To: e.Target, Workflows: e.Workflows, LagSeconds: e.LagSeconds, Rows: e.Rows, Gaps: e.Gaps, Error: parse.Clip(e.Error)}
		if out.Workflows == nil {
			out.Workflows = []string{}
		}
		if !e.Position.IsZero() {
			at := show.Time(e.Position)
			out.Position = &at
		}
		answer.Exports = append(answer.Exports, out)
	}
	return x.AnswerJSON(answer)
}
