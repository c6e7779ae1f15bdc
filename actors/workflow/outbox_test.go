package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

const notify = `
id: notify
webhooks:
  hook: {retry: {limit: 2, delay: PT10S, jitter: false}, onDone: told, onError: untold}
  other:
stateMachines:
  main:
    initial: open
    states:
      open:
        on:
          tell: {actions: [{webhook: {to: hook, body: '${event.data.n}'}}]}
          both: {actions: [{webhook: {to: hook, body: 1}}, {webhook: {to: other, body: 2}}, {webhook: {to: hook, body: 3}}]}
          told: {actions: [{assign: {svcPublic.last: '${event.data}'}}, {if: 'event.data.status == 299', then: [{assign: {svcPublic.x: '${1 / 0}'}}]}]}
          untold: {actions: [{assign: {svcPublic.failed: '${event.data.attempts}'}}]}
`

// receiver is the other side of all webhooks.
type receiver struct {
	mu     sync.Mutex
	got    []string
	answer func(a outbox.Attempt) outbox.Answer
	hang   bool
}

func (*receiver) URL(outbox.Attempt) string { return "" }

func (r *receiver) Send(ctx context.Context, a outbox.Attempt) outbox.Answer {
	if r.hang {
		<-ctx.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, fmt.Sprintf("%s %s", a.Queue, a.Body))
	if r.answer == nil {
		return outbox.Answer{Status: 200, Body: workflowtest.Value(`{"ok":true}`)}
	}
	return r.answer(a)
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func delivering(t *testing.T, test func(h *harness, to *receiver)) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: to}}), t}
		h.Publish(notify)
		test(h, to)
		h.End()
	})
}

// TestWhatLeavesKeepsItsOrder holds persistence/PROMISES.md, "P29".
func TestWhatLeavesKeepsItsOrder(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		down := true
		to.answer = func(a outbox.Attempt) outbox.Answer {
			if down && a.Queue == "hook" {
				return outbox.Answer{Status: 500, Err: errors.New("the answer was 500")}
			}
			return outbox.Answer{Status: 200}
		}
		id := h.Make(boss, "notify", "")
		h.MustSend(boss, "notify", id, "both", "")
		h.MustSend(boss, "notify", id, "tell", `{"n":4}`)
		clocktest.Advance(time.Second)
		got := to.all()
		assert.False(t, !slices.Equal(got, []string{"hook 1", "other 2"}) && !slices.Equal(got, []string{"other 2", "hook 1"}), got)
		h.Restart()
		to.mu.Lock()
		down = false
		to.mu.Unlock()
		clocktest.Advance(10 * time.Second)
		got = to.all()
		assert.Equal(t, []string{"hook 1", "hook 3", "hook 4"}, got[2:], "after it: %q", got)
		n := h.rows(key.DeliveriesPrefix) + h.rows(key.StreamsPrefix)
		assert.Zero(t, n, "rows are left")
		assert.Equal(t, ",both,tell,told,told,told", events(t, h.MustLook(boss, "notify", id)), "the instance was told")
		assert.Equal(t, `{"n":4,"last":{"status":200,"body":null,"attempts":1}}`, string(h.MustLook(boss, "notify", id).Public))
	})
}

func TestADeadDeliveryFreesTheNext(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		to.answer = func(a outbox.Attempt) outbox.Answer {
			if string(a.Body) == "1" {
				return outbox.Answer{Err: errors.New("nobody answers")}
			}
			return outbox.Answer{Status: 200}
		}
		id := h.Make(boss, "notify", "")
		h.MustSend(boss, "notify", id, "both", "")
		clocktest.Advance(9 * time.Second)
		assert.Len(t, to.all(), 2, "attempts before the first pause is over")
		clocktest.Advance(time.Minute)
		got := to.all()
		assert.Equal(t, []string{"hook 1", "hook 1", "hook 3"}, got[2:], "got %q", got)
		dead, tries := h.rows(key.DeliveriesPrefix), h.rows(key.StreamsPrefix)
		assert.True(t, dead == 1 && tries == 0, "%d deliveries and %d attempts are left, want a dead one", dead, tries)
		assert.Equal(t, ",both,untold,told", events(t, h.MustLook(boss, "notify", id)), "the instance was told")
	})
}

func TestAnOutcomeThatFailsIsAnIncident(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		to.answer = func(outbox.Attempt) outbox.Answer { return outbox.Answer{Status: 299} }
		id := h.Make(boss, "notify", "")
		h.MustSend(boss, "notify", id, "tell", `{"n":1}`)
		clocktest.Advance(time.Minute)
		assert.Len(t, to.all(), 1, "attempts")
		left, incidents := h.rows(key.DeliveriesPrefix), h.rows(key.IncidentPrefix)
		assert.True(t, left == 0 && incidents == 1, "%d deliveries and %d incidents", left, incidents)
		_, err := h.Try(boss, "notify", id, "told", "", "")
		assert.Error(t, err, "a caller can send an outcome")
	})
}
