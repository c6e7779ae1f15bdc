package gateway

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/presentation"
	"troupe/gateway/internal/design"
	"troupe/statemachine"
)

// TestPicturesWaitForTheirTurn holds gateway/INTERFACE.md, "Pictures": two are drawn at a time.
func TestPicturesWaitForTheirTurn(t *testing.T) {
	s := startServer(t, Options{}, nil)
	ask := func(ctx context.Context) int {
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest("GET", "/workflow/api/v1/instance/order/"+instanceOne+"/diagram", "", withToken).WithContext(ctx))
		return w.status
	}
	for range design.DrawnAtOnce {
		require.Equal(t, http.StatusOK, ask(t.Context()), "with a free place")
		s.groups.design.Drawing <- struct{}{}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	assert.Equal(t, http.StatusServiceUnavailable, ask(gone), "without a free place, whoever does not wait")
	<-s.groups.design.Drawing
	assert.Equal(t, http.StatusOK, ask(t.Context()), "a place came free")
}

// TestTheWayIsBounded: the more nodes a chart has, the fewer steps are searched for.
func TestTheWayIsBounded(t *testing.T) {
	trace := &presentation.Trace{Of: presented(), At: []statemachine.Position{openNode}}
	for i := range 10 * design.StepWork / 100 {
		trace.Steps = append(trace.Steps, presentation.Step{Event: statemachine.EventName("e" + strconv.Itoa(i%7000)), End: []statemachine.NodeID{"open"}})
	}
	for nodes, want := range map[int]int{100: design.StepWork / 100, design.StepWork: design.StepsMin, 0: 7000} {
		assert.Equal(t, want, design.WayOf(trace, "1", nodes).Steps(), "%d nodes", nodes)
	}
}
