package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
		assert.True(t, len(done) == 1 && begun == 2, "the first answer was for %d, in %d calls, want 1 in 2", len(done), begun)
		answers <- refused
		synctest.Wait()
		first, next := <-done, <-done
		assert.True(t, first == nil && errors.Is(next, refused) && len(done) == 1 && begun == 2, "%v %v %v", first, next, begun)
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
		assert.ErrorIs(t, r.Await(t.Context()), ErrWaiting, "the third")
		leave()
		err := <-gone
		assert.ErrorIs(t, err, context.Canceled, "who leaves")
		err = <-late
		assert.ErrorIs(t, err, ErrNoAnswer, "who waits")
		<-time.After(3 * time.Second) // the goroutine ends
	})
}
