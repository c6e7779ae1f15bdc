package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

func (h *harness) deliveries(state outbox.State) (out []pending.Delivery) {
	h.t.Helper()
	for cursor := ""; ; {
		page, err := h.Waiting.Deliveries(context.Background(), &pending.DeliveryList{Caller: boss, State: state, Cursor: cursor, Limit: 2})
		h.Must(err)
		out = append(out, page.Deliveries...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

func (h *harness) incidents() (out []pending.Incident) {
	h.t.Helper()
	for cursor := ""; ; {
		page, err := h.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: boss, Cursor: cursor, Limit: 2})
		h.Must(err)
		out = append(out, page.Incidents...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

func (h *harness) pending(workflowID, id string) *message.Pending {
	h.t.Helper()
	out, err := h.Pending(&message.Load{Caller: boss, WorkflowID: workflowID, InstanceID: id})
	h.Must(err)
	return out
}

func TestAPersonChangesDeliveries(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		var up atomic.Bool
		to.answer = func(a outbox.Attempt) outbox.Answer {
			if !up.Load() && a.Queue == "hook" {
				return outbox.Answer{Status: 503, Err: errors.New("the answer was 503"), Final: string(a.Body) == "1"}
			}
			return outbox.Answer{Status: 200}
		}
		id := h.Make(boss, "notify", "")
		h.MustSend(boss, "notify", id, "both", "")
		clocktest.Advance(time.Millisecond)
		h.MustSend(boss, "notify", id, "tell", `{"n":4}`)
		clocktest.Advance(time.Second)
		dead, pending := h.deliveries(outbox.Dead), h.deliveries(outbox.Pending)
		require.True(t, len(dead) == 1 && string(dead[0].Body) == "1" && dead[0].LastStatus == 503 && dead[0].InstanceID == id && len(pending) == 2,
			"dead %v, pending %v", dead, pending)
		p := h.pending("notify", id)
		assert.True(t, len(p.Deliveries) == 3 && len(h.deliveries("")) == 3, "the instance waits for %v", p.Deliveries)
		h.Must(h.ChangeDelivery(context.Background(), pending[0].ID, outbox.Drop))
		clocktest.Advance(time.Millisecond) // the next one is tried
		assert.Equal(t, ",both,untold,tell,untold", events(t, h.MustLook(boss, "notify", id)))
		up.Store(true)
		h.Must(h.ChangeDelivery(context.Background(), dead[0].ID, outbox.Retry))
		clocktest.Advance(time.Millisecond)
		got := to.all()
		assert.False(t, got[len(got)-1] != "hook 1" && got[len(got)-2] != "hook 1", "got %q, want the dead one again at once", got)
		clocktest.Advance(20 * time.Second)
		got = to.all()
		assert.True(t, got[len(got)-1] == "hook 4" && !slices.Contains(got[4:], "hook 3"), "got %q", got)
		n := h.rows(key.DeliveriesPrefix) + h.rows(key.StreamsPrefix)
		assert.Zero(t, n, "rows are left")
		for _, of := range []string{dead[0].ID, "x", id + "-1-1", id} {
			assert.ErrorIs(t, h.ChangeDelivery(context.Background(), of, outbox.Drop), failure.ErrNotFound, of)
		}
	})
}

// TestADeliveryThatIsOnItsWayIsDropped: whoever drops one need not wait until its host answers.
func TestADeliveryThatIsOnItsWayIsDropped(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		to.hang = true
		id := h.Make(boss, "notify", "")
		h.MustSend(boss, "notify", id, "both", "")
		clocktest.Advance(time.Minute)
		for _, d := range h.deliveries(outbox.Pending) {
			if d.Name == "hook" {
				h.Must(h.ChangeDelivery(context.Background(), d.ID, outbox.Drop))
			}
		}
		left := h.deliveries("")
		assert.True(t, len(left) == 1 && left[0].Name == "other", "left: %v", left)
	})
}

func TestAPersonChangesIncidents(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		to.answer = func(outbox.Attempt) outbox.Answer { return outbox.Answer{Status: 299} }
		var ids []string
		for range 3 {
			ids = append(ids, h.Make(boss, "notify", ""))
			h.MustSend(boss, "notify", ids[len(ids)-1], "tell", `{"n":1}`)
		}
		clocktest.Advance(time.Second)
		all := h.incidents()
		require.True(t, len(all) == 3 && all[0].Event == "told" && all[0].Error != "" && all[0].Workflow == "notify", "got %v", all)
		p := h.pending("notify", all[0].InstanceID)
		assert.True(t, len(p.Timers) == 1 && p.Timers[0].Failed && p.Timers[0].ID == all[0].ID, "the instance waits for %v", p.Timers)
		assert.ErrorIs(t, h.ChangeIncident(context.Background(), boss, all[0].ID, false), failure.ErrExecution, "it fails again")
		h.Must(h.ChangeIncident(context.Background(), boss, all[1].ID, true))
		assert.Len(t, h.incidents(), 2, "left")
		for _, of := range []string{all[1].ID, "x", ids[0] + "-9-9", ids[0]} {
			assert.ErrorIs(t, h.ChangeIncident(context.Background(), boss, of, true), failure.ErrNotFound, of)
		}
	})
}

func TestATimerIsShown(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		begun := time.Now()
		id := h.Make(boss, "remind", "")
		p := h.pending("remind", id)
		if len(p.Timers) != 1 || p.Timers[0].Event != "after.computed.waiting" || !p.Timers[0].Due.Equal(begun.Add(time.Hour)) || p.IsDone ||
			fmt.Sprint(p.Timers[0].At) != "{main waiting}" {
			t.Errorf("got %+v", p)
		}
		h.MustSend(boss, "remind", id, "decide", "")
		p = h.pending("remind", id)
		assert.True(t, len(p.Timers) == 0 && p.IsDone, "got %+v", p)
	})
}
