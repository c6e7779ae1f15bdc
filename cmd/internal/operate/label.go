package operate

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

// labels are how people see the states and events of a workflow. Nil: by their ids.
type labels struct {
	of        *api.Presentation
	positions map[api.Position]string
	nodes     map[string]string // empty where machines have nodes of one id and several labels
	events    map[string]string
}

// A service that does not say it, as an older one, has none. Only tables show them: the other forms are what the
// service answered.
func labelsOf(ctx context.Context, c *client.Client, out *cli.Output, workflowID string, version uint64) (*labels, error) {
	if out.Form != cli.FormTable && out.Form != cli.FormLine {
		return nil, nil
	}
	of, err := c.Presentation(ctx, workflowID, version)
	if refused := (*client.Error)(nil); errors.As(err, &refused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newLabels(of), nil
}

func newLabels(of *api.Presentation) *labels {
	l := &labels{of: of, positions: map[api.Position]string{}, nodes: map[string]string{}, events: map[string]string{}}
	for _, n := range slices.Concat(of.Nodes, of.Compounds) {
		l.positions[api.Position{StateMachineID: n.StateMachineID, NodeID: n.NodeID}] = n.Label
		if before, ok := l.nodes[n.NodeID]; ok && before != n.Label {
			l.nodes[n.NodeID] = ""
		} else {
			l.nodes[n.NodeID] = n.Label
		}
	}
	for _, e := range of.Events {
		l.events[e.Name] = e.Label
	}
	return l
}

func (l *labels) stateText(states []api.Position) string {
	return statesText(states, func(s api.Position) string {
		if l == nil {
			return s.NodeID
		}
		return cmp.Or(l.positions[s], s.NodeID)
	})
}

// idText is stateText with the ids as well, which filters and plans need: "main: Waiting for approval (review)".
func (l *labels) idText(states []api.Position) string {
	return statesText(states, func(s api.Position) string {
		if l == nil || l.positions[s] == "" || l.positions[s] == s.NodeID {
			return s.NodeID
		}
		return l.positions[s] + " (" + s.NodeID + ")"
	})
}

func statesText(states []api.Position, called func(api.Position) string) string {
	texts := make([]string, len(states))
	for i, s := range states {
		texts[i] = s.StateMachineID + ": " + called(s)
	}
	return strings.Join(texts, ", ")
}

func (l *labels) nodeText(nodes []string) string {
	if l == nil {
		return strings.Join(nodes, ", ")
	}
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = cmp.Or(l.nodes[node], node)
	}
	return strings.Join(texts, ", ")
}

// nodeIn shows the node of a state machine that a task or a transition belongs to: one where instances stand, or one
// with others inside.
func (l *labels) nodeIn(at api.Position) string {
	if l == nil {
		return at.NodeID
	}
	return cmp.Or(l.positions[at], l.nodeText([]string{at.NodeID})) // NB: it is not known by its state machine where it is in a region
}

func (l *labels) eventText(e *api.HistoryEntry) string {
	if e.TransitionEvent == "" {
		return "(created)"
	}
	return l.event(e.TransitionEvent)
}

func (l *labels) event(name string) string {
	switch timed := timerEvent.FindStringSubmatch(name); {
	case l == nil:
		return name
	case l.events[name] != "":
		return l.events[name]
	case timed != nil:
		return "time ran out in " + l.nodeText(timed[1:])
	}
	return name
}

// timerEvent is the event of a timer of a node, with the node's name (statemachine/DEFINITION.md, "Timers").
var timerEvent = regexp.MustCompile(`^after\.[^.]+\.(.+)$`)

func (l *labels) timerText(t *api.Timer) string {
	switch {
	case l == nil:
		return t.Event
	case t.TargetID != "":
		return "changes to " + l.nodeText([]string{t.TargetID})
	case slices.Contains(t.Sends, "mail"):
		return "sends a mail"
	case slices.Contains(t.Sends, "webhook"):
		return "calls a webhook"
	case t.NodeID != nil:
		return "timer of " + l.nodeText([]string{*t.NodeID})
	}
	return l.event(t.Event)
}

// labelBook has the labels of workflows, each asked for once: of the newest version, whatever the instances run under.
type labelBook struct {
	ctx context.Context //nolint:containedctx // of a command
	c   *client.Client
	out *cli.Output
	by  map[string]*labels
}

func (b *labelBook) of(workflowID string) *labels {
	l, asked := b.by[workflowID]
	if !asked {
		l, _ = labelsOf(b.ctx, b.c, b.out, workflowID, 0)
		b.by[workflowID] = l
	}
	return l
}

func (l *labels) isTitled() bool { return l != nil && l.of.Titled }

func (l *labels) columns() (paths []data.Path, heads []string) {
	if l == nil {
		return nil, nil
	}
	for _, c := range l.of.Columns {
		if path, err := data.ParsePath(c.Path); err == nil {
			paths, heads = append(paths, path), append(heads, strings.ToUpper(c.Label))
		}
	}
	return paths, heads
}
