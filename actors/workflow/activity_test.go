package workflow_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/activity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

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
				lines = append(lines, strings.TrimSpace(fmt.Sprint(i.Sequence, " ", name.Text())))
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
	want := []string{"1", "2 submit"}
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

var activityKey = key.Activity(nil, 1, key.ID{1}, 7, 2)

// activities are rows as Parse returns them, each of whose fields has a value of its own.
func activities() []activity.Row {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []activity.Row{
		{Kind: activity.Comment, At: at, User: "john", Text: "hello", Sequence: 7, Number: 2},
		{
			Kind: activity.Assigned, At: at, User: "mary", Task: statemachine.ElementID{Sequence: 6, Number: 1}, Node: statemachine.Position{Machine: "main", Node: "review"},
			To: "john", Sequence: 7, Number: 2,
		},
	}
}

func TestAnActivityIsReadAsItWasWritten(t *testing.T) {
	for _, want := range activities() {
		got, err := activity.Parse(activityKey, want.Append(nil))
		assert.True(t, err == nil && got == want, "got %+v, %v, want %+v", got, err, want)
	}
}

// FuzzParseActivity holds that any bytes are refused as the row of an activity, or are one that is written and read again.
func FuzzParseActivity(f *testing.F) {
	for _, r := range activities() {
		f.Add(activityKey, r.Append(nil))
	}
	f.Add([]byte("x"), []byte{})
	f.Fuzz(func(t *testing.T, key, stored []byte) {
		of, err := activity.Parse(key, stored)
		if err != nil {
			assert.Equal(t, activity.Row{}, of, err)
			return
		}
		assert.True(t, of.Kind != 0 && of.Kind.String() != "", "got the kind %d", of.Kind)
		again, err := activity.Parse(key, of.Append(nil))
		assert.True(t, err == nil && again == of, "%x: got %+v, then %+v, %v", stored, of, again, err)
	})
}
