package design

import (
	"net/http"
	"time"

	"troupe/actors/failure"
	"troupe/actors/presentation"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/diagram"
)

const (
	// DrawnAtOnce bounds the pictures that are drawn at a time: one of the largest charts takes most of a second and 140 MB.
	DrawnAtOnce = 2
	// drawWaitMax is how long a picture waits for its turn.
	drawWaitMax = 5 * time.Second
	// StepWork bounds the search for the way that an instance came: steps times nodes of the chart.
	StepWork = 200_000
	StepsMin = 20
)

var (
	valueSVG = []string{"image/svg+xml"}
	// diagramPolicy lets the one style of the picture through, for who opens it on its own.
	diagramPolicy = []string{"default-src 'none'; style-src '" + diagram.StyleHash + "'"}
)

// drawInstance answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/diagram.
func (g *Group) drawInstance(x *kernel.Exchange) error {
	of, err := x.InstanceRequest()
	if err != nil {
		return err
	}
	trace, err := g.Presentations.Trace(x.Request.Context(), of)
	if err != nil {
		return err
	}
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(trace.Sequence)}
	picture := &diagram.Picture{Chart: trace.Of.Chart()}
	picture.Instance = WayOf(trace, of.InstanceID, len(picture.Chart.Nodes))
	return g.draw(x, picture)
}

// WayOf is the instance as it is drawn: the newest steps that differ, as many as the chart allows.
func WayOf(trace *presentation.Trace, id string, nodes int) *diagram.Instance {
	in := &diagram.Instance{ID: id, At: trace.At}
	most := max(StepsMin, StepWork/max(1, nodes))
	for _, s := range trace.Steps {
		if in.Steps() == most {
			break
		}
		in.Add(diagram.Step{Event: s.Event, Start: trace.Of.PositionsNamed(s.Start), End: trace.Of.PositionsNamed(s.End)})
	}
	return in
}

// drawDefinition answers GET workflow/api/v1/definitions/{workflowId}/{version}/diagram.
func (g *Group) drawDefinition(x *kernel.Exchange) error {
	counted, err := parse.Flag(x.Query, "counts")
	if err != nil {
		return err
	}
	version, ok := parse.Version(x.Params.ByName("version"))
	if !ok {
		return failure.ErrNotFound
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	id := x.Params.ByName("workflowId")
	d, err := g.Presentations.Presented(x.Caller, id, version)
	if err != nil {
		return err
	}
	picture := &diagram.Picture{Chart: d.Chart()}
	if counted {
		if picture.Counts, err = g.counts(x, d, picture.Chart, id); err != nil {
			return err
		}
	}
	return g.draw(x, picture)
}

// counts are how many instances stand at the nodes of a chart; nodes where none does have none.
func (g *Group) counts(x *kernel.Exchange, d *statemachine.Definition, c *statemachine.Chart, id string) (map[int]diagram.Count, error) {
	var at []statemachine.Position
	for _, s := range d.StandingNodes() {
		at = append(at, s.Position)
	}
	standing, err := g.Presentations.Standing(x.Request.Context(), x.Caller, id, at)
	if err != nil {
		return nil, err
	}
	counts := map[int]diagram.Count{}
	for _, s := range standing {
		if i, ok := c.Node(s.At); ok && s.Instances > 0 {
			counts[i] = diagram.Count{Instances: s.Instances, About: s.About, AtLeast: s.AtLeast}
		}
	}
	return counts, nil
}

// draw answers with a picture in the reader's language.
func (g *Group) draw(x *kernel.Exchange, p *diagram.Picture) error {
	p.Languages = x.Languages()
	wait := time.NewTimer(drawWaitMax)
	defer wait.Stop()
	select {
	case g.Drawing <- struct{}{}:
	case <-wait.C:
		return x.RejectOverload()
	case <-x.Request.Context().Done():
		return x.RejectOverload()
	}
	x.Out = append(x.Out, g.drawn(x, p)...)
	x.ContentType = valueSVG
	x.Writer.Header()["Content-Security-Policy"] = diagramPolicy
	x.Send(http.StatusOK)
	return nil
}

// drawn draws a picture and frees its place. NB: before it is sent, because whoever reads may be slow.
func (g *Group) drawn(x *kernel.Exchange, p *diagram.Picture) []byte {
	defer func() { <-g.Drawing }()
	return p.SVG()
}
