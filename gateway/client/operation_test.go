package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

func TestOperations(t *testing.T) {
	s, id := servertest.StartNotice(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	p, err := c.Pending(t.Context(), servertest.Notice, id)
	require.True(t, err == nil && len(p.Timers) == 2 && len(p.Deliveries) == 1 && p.Deliveries[0].URL == "https://example.org/hook" && p.Ended == nil, "%v %v", p, err)
	var outbox, incidents, timers []string
	for page, err := range c.TimersPages(t.Context(), TimersRequest{WorkflowID: servertest.Notice, Limit: 1}) {
		require.NoError(t, err)
		for _, timer := range page.Items {
			timers = append(timers, timer.ID+" "+timer.InstanceID)
		}
	}
	if len(timers) != 1 || timers[0] != p.Timers[0].ID+" "+id {
		t.Errorf("got the timers %q, want the first of %+v", timers, p.Timers)
	}
	for page, err := range c.OutboxPages(t.Context(), OutboxRequest{State: "dead", Limit: 1}) {
		require.NoError(t, err)
		for _, d := range page.Items {
			outbox = append(outbox, d.ID)
		}
	}
	for page, err := range c.IncidentsPages(t.Context(), IncidentsRequest{Limit: 1}) {
		require.NoError(t, err)
		for _, in := range page.Items {
			incidents = append(incidents, in.ID)
		}
	}
	require.True(t, len(outbox) == 1 && outbox[0] == p.Deliveries[0].ID && len(incidents) == 1, "got %v and %v", outbox, incidents)
	again := c.ChangeIncident(t.Context(), incidents[0], Retry)
	wantStatus(t, again, 500, "MarshallingError")
	assert.Contains(t, again.Error(), "the event failed again: ")
	for _, err := range []error{
		c.ChangeIncident(t.Context(), incidents[0], Drop), c.ChangeDelivery(t.Context(), outbox[0], Retry), c.ChangeDelivery(t.Context(), outbox[0], Drop),
	} {
		assert.NoError(t, err)
	}
	wantStatus(t, c.ChangeDelivery(t.Context(), outbox[0], Drop), 404, "NotFound")
	wantStatus(t, c.ChangeIncident(t.Context(), incidents[0], Drop), 404, "NotFound")
	_, err = c.Outbox(t.Context(), OutboxRequest{Limit: 1001})
	assert.Error(t, err, "a limit of 1001 is taken")
}

// TestATreeIsStopped: by its user, whom the history names. It can be asked again.
func TestATreeIsStopped(t *testing.T) {
	s, id := servertest.StartNotice(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	for range 2 {
		require.NoError(t, c.StopTree(t.Context(), servertest.Notice, id))
	}
	p, err := c.Pending(t.Context(), servertest.Notice, id)
	assert.True(t, err == nil && p.Ended != nil && *p.Ended == "cancelled" && len(p.Timers) == 0, "it waits for %+v, %v", p, err)
	history, err := c.History(t.Context(), HistoryRequest{WorkflowID: servertest.Notice, InstanceID: id, Limit: 10})
	require.NoError(t, err)
	last := history.Items[len(history.Items)-1]
	assert.True(t, last.TransitionEvent == "parent.cancelled" && last.User == servertest.User, "the last entry is %+v", last)
	_, err = c.Send(t.Context(), SendRequest{WorkflowID: servertest.Notice, InstanceID: id, Event: "tell"})
	wantStatus(t, err, 409, "Ended")
	wantStatus(t, c.StopTree(t.Context(), servertest.Notice, "01M7YZAB2GNTJFQE62690KHSQT"), 404, "NotFound")
}
