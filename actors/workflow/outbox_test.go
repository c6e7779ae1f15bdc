package workflow_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
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
