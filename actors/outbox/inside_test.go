package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/outbox"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/statemachine"
)

// messages writes what instances of a workflow, as many as are asked for, tell their children, and says so.
func (s *sendings) messages(t *testing.T, workflow string, first, n byte) {
	t.Helper()
	w, now := s.store.NewWrites(s.shard), time.Now()
	for i := range n {
		outbox.Put(w, outbox.Origin{Shard: s.shard, Workflow: workflow, Version: 1, Instance: persistence.ID{first + i}, Sequence: 1, At: now, Due: now},
			[]statemachine.Out{{End: &statemachine.ChildEnd{}}})
	}
	if err := s.store.Commit(w); err != nil {
		t.Fatal(err)
	}
	s.Began(s.shard, workflow, outbox.ChildQueue, now)
	synctest.Wait()
}

// TestWorkflowsTakeTurnsInside: a workflow whose instances tell others without end leaves room for the next, and
// whoever waits for a disk or another node is in nobody's way.
func TestWorkflowsTakeTurnsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		begun, end := make(chan string, 100), make(chan struct{})
		s.inside = func(ctx context.Context, workflow string) {
			begun <- workflow
			select {
			case <-end:
			case <-ctx.Done():
			}
		}
		s.messages(t, "many", 0, 12)
		if len(begun) != 4 {
			t.Fatalf("%d are carried out at a time, want 4", len(begun))
		}
		s.messages(t, "few", 100, 1)
		if len(begun) != 4 {
			t.Fatal("one more is carried out than there are places")
		}
		for range 4 {
			<-begun
		}
		end <- struct{}{}
		synctest.Wait()
		if got := <-begun; got != "few" {
			t.Errorf("the next is of the workflow %s, which has three places, want that which has none", got)
		}
		clocktest.Advance(time.Second)
		if len(begun) != 8 {
			t.Errorf("%d more have begun while all others hang, want 8", len(begun))
		}
		close(end)
		synctest.Wait()
	})
}
