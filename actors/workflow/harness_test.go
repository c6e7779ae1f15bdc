package workflow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/storetest"
)

var (
	oneOf               = workflowtest.OneOf[string]
	event, value        = workflowtest.Event, workflowtest.Value
	stock               = workflowtest.Stock
	leave, order        = workflowtest.Leave, workflowtest.Order
	john, mary, eve     = workflowtest.John, workflowtest.Mary, workflowtest.Eve
	member, guest, boss = workflowtest.Member, workflowtest.Guest, workflowtest.Boss
)

type harness struct {
	*workflowtest.Router
	t testing.TB
}

// start runs a router that has the workflows leave and order.
func start(t testing.TB, o workflow.Options) *harness { return startOn(t, nil, o) }

func startOn(t testing.TB, disk *storetest.Disk, o workflow.Options) *harness {
	h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: o, Disk: disk}), t}
	h.Publish(leave, order)
	return h
}

// sleepAll lets every instance fall asleep. One sweep is not enough: it passes over an
// instance that the router's own has just closed and not removed yet.
func (h *harness) sleepAll() {
	h.t.Helper()
	workflowtest.Await(h.t, "all instances to sleep", h.SweepIdle)
}

func (h *harness) list(req query.Request) (ids []string, end *query.End, err error) {
	return workflowtest.IDs(h.t, h.Queries.Query, req)
}

// events returns the transition events of a reply's history.
func events(t *testing.T, r *message.Reply) string {
	t.Helper()
	var record struct {
		History []struct {
			Event string   `json:"transitionEvent"`
			Start []string `json:"startState"`
			End   []string `json:"endState"`
		} `json:"svcHistory"`
	}
	text := r.AppendRecord(nil)
	require.NoError(t, json.Unmarshal(text, &record), "record %s", text)
	var names []string
	for i, e := range record.History {
		if i > 0 && !slices.Equal(e.Start, record.History[i-1].End) {
			t.Errorf("entry %d starts at %v, the one before ends at %v", i+1, e.Start, record.History[i-1].End)
		}
		names = append(names, e.Event)
	}
	assert.Equal(t, len(names), int(r.Sequence), "sequence %d", r.Sequence)
	return strings.Join(names, ",")
}
