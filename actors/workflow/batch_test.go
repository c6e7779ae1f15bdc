package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/actors/workflow"
	"troupe/actors/workflow/batch"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
)

func startBatches(t *testing.T, o workflow.Options) *workflowtest.Router {
	t.Helper()
	r := workflowtest.Start(t, workflowtest.Options{Workflow: o, Disk: storetest.NewDisk()})
	r.Publish(workflowtest.Leave, workflowtest.Order, workflowtest.Stock("stock", 1))
	return r
}

func noteOn(id string) *message.Event {
	e := workflowtest.Event(john, "leave", id, "note", "", "")
	e.WithHistory = false
	return e
}

// results takes the answers to all items, in order.
func batchResults(t *testing.T, b *batch.Batch) (all string) {
	t.Helper()
	for b.Len() > 0 {
		answer, ok := b.Next()
		switch {
		case !ok:
			<-b.Ready(true)
		case answer.Err != nil:
			all += fmt.Sprintf("%v ", failure.Of(answer.Err).Kind)
		case answer.Text != nil:
			all += string(answer.Text) + " "
		default:
			all += fmt.Sprintf("%d ", answer.Reply.Sequence)
		}
	}
	return strings.TrimSpace(all)
}

func wantResults(t *testing.T, what, got, want string) {
	t.Helper()
	assert.Equal(t, want, got, what)
}

// TestNoneOvertakesOneThatWasNotDone: after a 429 or 503 the later items of an instance are
// not done, and those of others are.
func TestNoneOvertakesOneThatWasNotDone(t *testing.T) {
	t.Run("quota of a user", func(t *testing.T) {
		h := startBatches(t, workflow.Options{Quotas: quota.Limits{EventsPerSecond: 3}})
		a, c := h.Make(john, "leave", ""), h.Make(john, "leave", "")
		b := batch.New(h.Router, nil)
		for _, id := range []string{a, c, a, a} {
			b.Event(noteOn(id), nil)
		}
		h.Pass(10e9) // new tokens
		for _, id := range []string{a, c, a} {
			b.Event(noteOn(id), nil)
		}
		wantResults(t, "results", batchResults(t, b), "2 2 3 quota is used up unavailable 3 unavailable")
		b = batch.New(h.Router, nil)
		b.Event(noteOn(a), nil)
		wantResults(t, "another batch", batchResults(t, b), "4")
	})
	t.Run("quota of a history", func(t *testing.T) {
		h := startBatches(t, workflow.Options{Quotas: quota.Limits{HistoryEntries: 2}})
		a, c := h.Make(john, "leave", ""), h.Make(john, "leave", "")
		b := batch.New(h.Router, nil)
		for _, id := range []string{a, a, c, a, a} {
			e := noteOn(id)
			if b.Len() > 2 {
				e.Name = "drop" // would leave no entry
			}
			b.Event(e, nil)
		}
		wantResults(t, "results", batchResults(t, b), "2 quota is used up 2 unavailable unavailable")
	})
	t.Run("refused by the store", refusedByTheStore)
	t.Run("other refusals", func(t *testing.T) {
		h := startBatches(t, workflow.Options{})
		a := h.Make(john, "leave", "")
		b := batch.New(h.Router, nil)
		e := noteOn(a)
		e.Name = "refuse"
		b.Event(e, nil)
		b.Event(noteOn(a), nil)
		e = noteOn(a)
		e.Name = "unknown"
		b.Event(e, nil)
		b.Refuse(failure.ErrBusy)
		b.Event(noteOn(a), nil)
		b.Create(&message.Create{Caller: john, WorkflowID: "nowhere"}, nil)
		b.Create(&message.Create{Caller: john, WorkflowID: "leave"}, nil)
		wantResults(t, "results", batchResults(t, b), "2 3 invalid content busy 4 not found 1")
	})
}

// refusedByTheStore: the disk becomes full when items are on their way to instances. Nothing
// of them is left, and later items do not build on them.
func refusedByTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBatches(t, workflow.Options{})
		defer h.End()
		a, c := h.Make(john, "leave", ""), h.Make(john, "leave", "")
		b, hold := batch.New(h.Router, nil), make(held)
		for _, id := range []string{a, c} {
			go func() { _, _ = h.Router.PostEvent(noteOn(id), hold) }() // runs the instance, and stops in it
		}
		synctest.Wait()
		for _, id := range []string{a, a, c} {
			b.Event(noteOn(id), nil)
		}
		h.Disk.SetFree(0)
		clocktest.Advance(1e9)
		close(hold)
		synctest.Wait()
		require.Error(t, h.Store.Accepting(), "the store takes writes: this test shows nothing")
		h.Disk.SetFree(1 << 40)
		clocktest.Advance(1e9)
		for _, id := range []string{a, c} {
			b.Event(noteOn(id), nil) // before anybody has looked at the answers
		}
		free := h.Make(john, "leave", "")
		b.Event(noteOn(free), nil)
		wantResults(t, "results", batchResults(t, b), "unavailable unavailable unavailable unavailable unavailable 2")
		for _, id := range []string{a, c} {
			assert.Equal(t, uint64(2), h.MustSend(john, "leave", id, "submit", "").Sequence)
		}
	})
}

// held is a recipient that keeps the instance until it is closed, and does nothing then.
type held chan struct{}

func (h held) Begin(message.Turn) error     { <-h; return failure.ErrBusy }
func (held) Refused(error)                  {}
func (held) Answered(*message.Reply, error) {}

func TestARepetitionInABatchGetsTheFirstAnswer(t *testing.T) {
	h := startBatches(t, workflow.Options{})
	a := h.Make(john, "leave", "")
	b := batch.New(h.Router, nil)
	for range 2 {
		e := noteOn(a)
		e.Retry = message.Retry{Key: "k"}
		b.Event(e, nil)
	}
	b.Event(noteOn(a), nil)
	wantResults(t, "results", batchResults(t, b), "2 2 3")
}

// TestACreateWaitsForAnotherWithItsKey, which is not done yet, and is its repetition then.
func TestACreateWaitsForAnotherWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBatches(t, workflow.Options{})
		defer h.End()
		h.Disk.Hold()
		first, second := batch.New(h.Router, nil), batch.New(h.Router, nil)
		for _, b := range []*batch.Batch{first, second} {
			b.Create(&message.Create{Caller: john, WorkflowID: "leave", Retry: message.Retry{Key: "k"}}, nil)
		}
		synctest.Wait()
		_, ok := second.Next()
		assert.False(t, ok, "two creates with a key were done at the same time")
		h.Disk.Release()
		wantResults(t, "the first", batchResults(t, first), "1")
		wantResults(t, "the second", batchResults(t, second), "1")
		assert.Len(t, h.Instances("leave"), 1, "instances, want 1")
	})
}

// TestAnUnknownOutcomeIsSaidOfAllThatWereOnTheirWay, and what comes later is not done.
func TestAnUnknownOutcomeIsSaidOfAllThatWereOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBatches(t, workflow.Options{})
		defer h.End()
		a := h.Make(john, "leave", "")
		b := batch.New(h.Router, nil)
		hanging := h.Disk.Hold()
		b.Event(noteOn(a), nil)
		<-hanging
		b.Event(noteOn(a), nil)
		for done := false; !done; {
			clocktest.Advance(workflowtest.CommitWaitMax)
			answer, ok := b.Next()
			done = ok
			require.False(t, ok && !errors.Is(answer.Err, failure.ErrOutcomeUnknown), "got %v, want ErrOutcomeUnknown", answer.Err)
		}
		h.Disk.Release()
		clocktest.Advance(2e9)
		b.Event(noteOn(a), nil)
		wantResults(t, "results", batchResults(t, b), "outcome unknown unavailable")
		wantResults(t, "the instance", fmt.Sprint(h.MustLook(john, "leave", a).Sequence), "3")
	})
}

// recording is a router whose requests the test answers.
type recording struct{ to *[]message.Recipient }

func (r recording) PostEvent(_ *message.Event, to message.Recipient) (workflow.Posted, error) {
	*r.to = append(*r.to, to)
	return workflow.Posted{}, nil
}

func (r recording) PostCreate(_ *message.Create, to message.Recipient) (workflow.Posted, error) {
	return r.PostEvent(nil, to)
}

// TestWhatWasDoneBehindAnUnknownOutcomeIsUnknownToo: its caller repeats from the first on.
func TestWhatWasDoneBehindAnUnknownOutcomeIsUnknownToo(t *testing.T) {
	var told []message.Recipient
	b := batch.New(recording{&told}, nil)
	for _, id := range []string{"a", "a", "c"} {
		b.Event(noteOn(id), nil)
	}
	told[1].Answered(&message.Reply{Sequence: 3}, nil)
	told[2].Answered(&message.Reply{Sequence: 2}, nil)
	told[0].Answered(nil, failure.ErrOutcomeUnknown)
	wantResults(t, "results", batchResults(t, b), "outcome unknown outcome unknown 2")
}

// TestAFewResultsDoNotWaitForASlowOne: of many, half is worth a look.
func TestAFewResultsDoNotWaitForASlowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBatches(t, workflow.Options{})
		defer h.End()
		a := h.Make(john, "leave", "")
		b := batch.New(h.Router, nil)
		b.Event(noteOn(a), nil)
		synctest.Wait() // it is answered
		hanging := h.Disk.Hold()
		for range 3 {
			b.Event(noteOn(a), nil)
		}
		<-hanging
		synctest.Wait()
		select {
		case <-b.Ready(true):
			t.Error("half of the window is not answered, and there was an entry")
		default:
		}
		select {
		case <-b.Ready(false):
		default:
			t.Error("the oldest is answered, and there was no entry")
		}
		h.Disk.Release()
		wantResults(t, "results", batchResults(t, b), "2 3 4 5")
	})
}

// TestLimitsWaitForABatchsOwnItems before they refuse one.
func TestLimitsWaitForABatchsOwnItems(t *testing.T) { synctest.Test(t, limitsWait) }

func limitsWait(t *testing.T) {
	h := startBatches(t, workflow.Options{InstanceInFlightMax: 2, InFlightMax: 3, Quotas: quota.Limits{EventsPerSecond: 100}})
	defer h.End()
	a := h.Make(john, "leave", "")
	b := batch.New(h.Router, nil)
	sent, all := 0, ""
	for sent < 10 {
		if b.Event(noteOn(a), nil) {
			sent++
			continue
		}
		<-b.Ready(true)
		if answer, ok := b.Next(); ok {
			h.Must(answer.Err)
			all += fmt.Sprint(answer.Reply.Sequence, " ")
		}
	}
	wantResults(t, "results", all+batchResults(t, b), "2 3 4 5 6 7 8 9 10 11")
	create := func(key string) bool {
		return b.Create(&message.Create{Caller: john, WorkflowID: "leave", Retry: message.Retry{Key: key}}, nil)
	}
	h.Disk.Hold() // so that the two events stay on their way
	b.Event(noteOn(a), nil)
	b.Event(noteOn(a), nil)
	assert.True(t, create("k1") && !create("k2") && !create("k1"), "a create was refused with room for it, or taken without")
	h.Disk.Release()
	wantResults(t, "creates", batchResults(t, b), "12 13 1")
	create("k1")
	create("k2")
	wantResults(t, "the creates again", batchResults(t, b), "1 1")
}
