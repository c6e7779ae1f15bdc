package workflow_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/activity"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
)

// TestComments are written once, stand in the order in which they came, and change nothing else (gateway/INTERFACE.md, "Comments" and
// "Activity").
func TestComments(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(desk)
	id := h.Make(requester, "desk", `{"amount":5}`)
	of := message.Load{Caller: manager, WorkflowID: "desk", InstanceID: id}
	comment := func(who *identity.Principal, text, key string) error {
		r := &message.Comment{Load: of, Text: text}
		r.Caller, r.Retry = who, message.Retry{Key: key}
		r.Retry.Fingerprint[0] = text[0]
		row, err := h.AddComment(r)
		assert.False(t, err == nil && (row.Text != text || row.User != string(who.ID)), "got %+v", row)
		return err
	}
	h.Must(comment(manager, "one", "k"))
	h.Must(comment(manager, "one", "k"))
	assert.ErrorIs(t, comment(manager, "two", "k"), failure.ErrKeyReused, "the same key with another text")
	h.MustSend(requester, "desk", id, "submit", `{"due":"PT1H"}`)
	h.Must(comment(requester, "two", ""))
	h.sleepAll()
	h.Restart()
	h.Publish(desk)
	h.Must(comment(requester, "three", ""))
	claimed := one(t, h, manager, task.ScopeOpen)
	h.Must(workflowtest.Second(h.ChangeTask(t.Context(), &message.TaskChange{Caller: manager, TaskID: claimed.TaskID(), Action: message.Claim})))
	h.MustSend(manager, "desk", id, "approve", "")
	for who, want := range map[*identity.Principal]error{stranger: failure.ErrForbidden, ida: failure.ErrNotFound} {
		assert.ErrorIs(t, comment(who, "four", ""), want, "a comment of %s", who.ID)
	}
	h.wantActivity(of, "1 ", "comment one", "2 submit", "comment two", "comment three", "claim mary", "3 approve")
	at, _ := instanceid.Parse(id)
	earlier, err := activity.Read(h.Store, &activity.Request{Instance: at, Sequence: 1, OldestFirst: true, Limit: 100})
	h.Must(err)
	if n := len(earlier.Items); n != 2 { // what came while it was read: the next page would pass over its entry
		t.Errorf("as of the first entry: got %d lines, want 2", n)
	}
	reply, err := h.Load(t.Context(), &of)
	h.Must(err)
	assert.Equal(t, uint64(3), reply.Sequence, "got the sequence")
}

// wantActivity compares what happened to an instance, in pages of any size and both orders.
func (h *harness) wantActivity(of message.Load, want ...string) {
	h.t.Helper()
	for _, limit := range []int{1, 2, 3, 100} {
		for _, oldest := range []bool{true, false} {
			got := h.activity(&message.Activity{Load: of, OldestFirst: oldest, Limit: limit})
			if !oldest {
				slices.Reverse(got)
			}
			assert.True(h.t, slices.Equal(got, want), "by %d, the oldest first %t: got %q, want %q", limit, oldest, got, want)
		}
	}
}

func (h *harness) activity(req *message.Activity) (lines []string) {
	h.t.Helper()
	for {
		page, err := h.Activity(req)
		h.Must(err)
		for _, i := range page.Items {
			switch {
			case i.Entry != nil:
				name, _ := i.Entry.Lookup("transitionEvent")
				lines = append(lines, fmt.Sprint(i.Sequence, " ", name.Text()))
			case i.Row != nil:
				lines = append(lines, i.Row.Kind.String()+" "+cmp.Or(i.Row.Text, i.Row.To))
			case i.Timer != nil:
				lines = append(lines, "timer "+string(i.Timer.Event))
			case i.Delivery != nil:
				lines = append(lines, "delivery "+i.Delivery.Name)
			}
		}
		if req.Cursor = page.Next; page.Next == "" {
			return lines
		}
		assert.False(h.t, len(page.Items) != req.Limit && req.Limit < task.LimitMax, "a page of %d, want %d", len(page.Items), req.Limit)
	}
}

// TestLongActivitiesComeInPages has more comments, and more of what events brought, than one page may have.
func TestLongActivitiesComeInPages(t *testing.T) {
	if testing.Short() {
		t.Skip("it has megabytes, which is slow under the race detector")
	}
	h := start(t, workflow.Options{})
	h.Publish(desk)
	id := h.Make(requester, "desk", "")
	h.MustSend(requester, "desk", id, "submit", "")
	of := message.Load{Caller: manager, WorkflowID: "desk", InstanceID: id}
	want := []string{"1 ", "2 submit"}
	comments := func(n int) {
		for range n {
			text := strings.Repeat("x", 900<<10) + fmt.Sprint(len(want))
			h.Must(workflowtest.Second(h.AddComment(&message.Comment{Load: of, Text: text})))
			want = append(want, "comment "+text)
		}
	}
	comments(7)
	for n := range 600 {
		h.MustSend(manager, "desk", id, "change", fmt.Sprintf(`{"pad":%q}`, strings.Repeat("y", 15<<10)))
		want = append(want, fmt.Sprint(n+3, " change"))
	}
	comments(6)
	for _, oldest := range []bool{true, false} {
		req := &message.Activity{Load: of, OldestFirst: oldest, Limit: task.LimitMax}
		got := h.activity(req)
		if !oldest {
			slices.Reverse(got)
		}
		assert.True(t, slices.Equal(got, want), "the oldest first %t: got %d lines, want %d in their order", oldest, len(got), len(want))
		req.Cursor = ""
		page, err := h.Activity(req)
		h.Must(err)
		size := 0
		for _, i := range page.Items {
			if size += len(i.Entry); i.Row != nil {
				size += len(i.Row.Text)
			}
		}
		assert.LessOrEqual(t, size, 6<<20, "the oldest first %t: a page", oldest)
	}
}

// TestActivityHasWhatWaits: deliveries behind the entry that sent them, and timers as the newest, as long as they wait (gateway/INTERFACE.md,
// "Activity").
func TestActivityHasWhatWaits(t *testing.T) {
	const waits = `
id: waits
webhooks: {first: {retry: {limit: 9, delay: PT10S, jitter: false}}, second: {retry: {limit: 9, delay: PT10S, jitter: false}}}
stateMachines:
  main:
    initial: open
    states:
      open:
        on:
          tell: {actions: [{webhook: {to: first, body: 1}}, {webhook: {to: second, body: 2}}, {send: {event: late, delay: PT1M}}]}
          mark: {actions: [{send: {event: soon, delay: PT30S}}]}
          soon: {}
          late: {}
`
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: func(outbox.Attempt) outbox.Answer { return outbox.Answer{Status: 500, Err: errors.New("not now")} }}
		h := &harness{workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: to}}), t}
		defer h.End()
		h.Publish(waits)
		id := h.Make(boss, "waits", "")
		of := message.Load{Caller: boss, WorkflowID: "waits", InstanceID: id}
		h.MustSend(boss, "waits", id, "tell", "")
		h.Must(workflowtest.Second(h.AddComment(&message.Comment{Load: of, Text: "well"})))
		h.MustSend(boss, "waits", id, "mark", "")
		clocktest.Advance(time.Second)
		h.wantActivity(of, "1 ", "2 tell", "comment well", "delivery first", "delivery second", "3 mark", "timer soon", "timer late")
		to.mu.Lock()
		to.answer = nil
		to.mu.Unlock()
		clocktest.Advance(40 * time.Second)
		h.wantActivity(of, "1 ", "2 tell", "comment well", "3 mark", "4 soon", "timer late")
	})
}
