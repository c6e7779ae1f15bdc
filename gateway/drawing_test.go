package gateway

import (
	"context"
	"net/http"
	"strconv"
	"testing"

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
		if got := ask(t.Context()); got != http.StatusOK {
			t.Fatalf("with a free place: got %d", got)
		}
		s.groups.design.Drawing <- struct{}{}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if got := ask(gone); got != http.StatusServiceUnavailable {
		t.Errorf("without a free place, whoever does not wait: got %d", got)
	}
	<-s.groups.design.Drawing
	if got := ask(t.Context()); got != http.StatusOK {
		t.Errorf("a place came free: got %d", got)
	}
}

// TestTheWayIsBounded: the more nodes a chart has, the fewer steps are searched for.
func TestTheWayIsBounded(t *testing.T) {
	trace := &presentation.Trace{Of: presented(), At: []statemachine.Position{openNode}}
	for i := range 10 * design.StepWork / 100 {
		trace.Steps = append(trace.Steps, presentation.Step{Event: statemachine.EventName("e" + strconv.Itoa(i%7000)), End: []statemachine.NodeID{"open"}})
	}
	for nodes, want := range map[int]int{100: design.StepWork / 100, design.StepWork: design.StepsMin, 0: 7000} {
		if got := design.WayOf(trace, "1", nodes).Steps(); got != want {
			t.Errorf("%d nodes: got %d steps, want %d", nodes, got, want)
		}
	}
}
