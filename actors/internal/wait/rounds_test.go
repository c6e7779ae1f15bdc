package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestARoundBeginsAfterTheCall: a call that has begun already proves nothing to who comes now.
func TestARoundBeginsAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, answers, refused := 0, make(chan error), errors.New("no")
		r := Rounds{Context: t.Context(), WaitMax: time.Second, Ask: func(context.Context) error { begun++; return <-answers }}
		done := make(chan error, 3)
		wait := func() { done <- r.Await(t.Context()) }
		go wait()
		synctest.Wait()
		go wait() // NB: while the first call goes on
		go wait()
		synctest.Wait()
		answers <- nil
		synctest.Wait()
		if len(done) != 1 || begun != 2 {
			t.Errorf("the first answer was for %d, in %d calls, want 1 in 2", len(done), begun)
		}
		answers <- refused
		synctest.Wait()
		if first, next := <-done, <-done; first != nil || !errors.Is(next, refused) || len(done) != 1 || begun != 2 {
			t.Errorf("got %v and %v in %d calls, want nil and the refusal in 2", first, next, begun)
		}
	})
}

// TestAWaitIsBounded: by its time, by who waits for it, and by how many wait.
func TestAWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rounds{Context: t.Context(), WaitMax: time.Second, WaitersMax: 2, Ask: func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Millisecond)
			return ctx.Err()
		}}
		leaves, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- r.Await(leaves) }()
		late := make(chan error, 1)
		go func() { late <- r.Await(t.Context()) }()
		synctest.Wait()
		if err := r.Await(t.Context()); !errors.Is(err, ErrWaiting) {
			t.Errorf("the third: got %v, want ErrWaiting", err)
		}
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves: got %v", err)
		}
		if err := <-late; !errors.Is(err, ErrNoAnswer) {
			t.Errorf("who waits: got %v, want ErrNoAnswer", err)
		}
		<-time.After(3 * time.Second) // the goroutine ends
	})
}
