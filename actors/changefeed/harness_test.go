package changefeed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"troupe/actors/changefeed"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	stock        = workflowtest.Stock
	member, boss = workflowtest.Member, workflowtest.Boss
)

// harness is a router that has the workflows stock, order and leave.
type harness struct {
	*workflowtest.Router
	t testing.TB
}

func start(t testing.TB, o workflow.Options) *harness {
	h := &harness{Router: workflowtest.Start(t, workflowtest.Options{Workflow: o}), t: t}
	h.Publish(workflowtest.Leave, workflowtest.Order, stock("stock", 1))
	return h
}

// page asks for a page that must come. Its zero limit is 1,000.
func (h *harness) page(req changefeed.Request) (texts []string, next string) {
	h.t.Helper()
	if req.Limit == 0 {
		req.Limit = 1000
	}
	if req.Caller == nil {
		req.Caller = member
	}
	page, err := h.Changes.Changes(h.t.Context(), &req)
	h.Must(err)
	for _, e := range page.Changes {
		name, _ := e.Text.Lookup("transitionEvent")
		texts = append(texts, fmt.Sprintf("%s %s %d %s", e.Workflow, e.Name, e.Sequence, name.Text()))
	}
	return texts, page.Next
}

// expect holds a page against its texts, in any order of instances but each in its own.
func (h *harness) expect(what string, got []string, want ...string) {
	h.t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	assert.True(h.t, slices.Equal(got, want), "%s: got %q, want %q", what, got, want)
}

// service is one with other bounds over the store of the router.
func (h *harness) service(o changefeed.Options) *changefeed.Service {
	o.Store, o.Catalog, o.Clock, o.Log = h.Store, h.Catalog, h.Clock, h.log()
	o.Current = isCurrent
	return changefeed.New(o)
}
