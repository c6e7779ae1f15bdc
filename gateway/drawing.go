package gateway

import (
	"net/http"
	"time"

	"troupe/actors/failure"
	"troupe/actors/presentation"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/diagram"
)

const (
	// drawnAtOnce bounds the pictures that are drawn at a time: one of the largest charts takes most of a second and 140 MB.
	drawnAtOnce = 2
	// drawWaitMax is how long a picture waits for its turn.
	drawWaitMax = 5 * time.Second
	// stepWork bounds the search for the way that an instance came: steps times nodes of the chart.
	stepWork = 200_000
	stepsMin = 20
)

var (
	valueSVG = []string{"image/svg+xml"}
	// diagramPolicy lets the one style of the picture through, for who opens it on its own.
	diagramPolicy = []string{"default-src 'none'; style-src '" + diagram.StyleHash + "'"}
)

// drawInstance answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/diagram.
func drawInstance(x *exchange) error {
	of, err := x.instanceRequest()
	if err != nil {
		return err
	}
	trace, err := x.services.Presentations.Trace(x.r.Context(), of)
	if err != nil {
		return err
	}
	x.w.Header()["Etag"] = []string{parse.EntityTag(trace.Sequence)}
	picture := &diagram.Picture{Chart: trace.Of.Chart()}
	picture.Instance = wayOf(trace, of.InstanceID, len(picture.Chart.Nodes))
	return x.draw(picture)
}

// wayOf is the instance as it is drawn: the newest steps that differ, as many as the chart allows.
func wayOf(trace *presentation.Trace, id string, nodes int) *diagram.Instance {
	in := &diagram.Instance{ID: id, At: trace.At}
	most := max(stepsMin, stepWork/max(1, nodes))
	for _, s := range trace.Steps {
		if in.Steps() == most {
			break
		}
		in.Add(diagram.Step{Event: s.Event, Start: trace.Of.PositionsNamed(s.Start), End: trace.Of.PositionsNamed(s.End)})
	}
	return in
}

// drawDefinition answers GET workflow/api/v1/definitions/{workflowId}/{version}/diagram.
func drawDefinition(x *exchange) error {
	counted, err := parse.Flag(x.query, "counts")
	if err != nil {
		return err
	}
	version, ok := parseVersion(x.params.ByName("version"))
	if !ok {
		return failure.ErrNotFound
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	id := x.params.ByName("workflowId")
	d, err := x.services.Presentations.Presented(x.caller, id, version)
	if err != nil {
		return err
	}
	picture := &diagram.Picture{Chart: d.Chart()}
	if counted {
		if picture.Counts, err = x.counts(d, picture.Chart, id); err != nil {
			return err
		}
	}
	return x.draw(picture)
}

// counts are how many instances stand at the nodes of a chart; nodes where none does have none.
func (x *exchange) counts(d *statemachine.Definition, c *statemachine.Chart, id string) (map[int]diagram.Count, error) {
	var at []statemachine.Position
	for _, s := range d.StandingNodes() {
		at = append(at, s.Position)
	}
	standing, err := x.services.Presentations.Standing(x.r.Context(), x.caller, id, at)
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
func (x *exchange) draw(p *diagram.Picture) error {
	p.Languages = x.languages()
	wait := time.NewTimer(drawWaitMax)
	defer wait.Stop()
	select {
	case x.server.drawing <- struct{}{}:
	case <-wait.C:
		return x.shed()
	case <-x.r.Context().Done():
		return x.shed()
	}
	x.out = append(x.out, x.drawn(p)...)
	x.contentType = valueSVG
	x.w.Header()["Content-Security-Policy"] = diagramPolicy
	x.send(http.StatusOK)
	return nil
}

// drawn draws a picture and frees its place. NB: before it is sent, because whoever reads may be slow.
func (x *exchange) drawn(p *diagram.Picture) []byte {
	defer func() { <-x.server.drawing }()
	return p.SVG()
}
