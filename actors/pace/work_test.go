package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// begun is a piece of work that wants to begin.
type begun struct {
	piece *Piece // nil until it has
	err   error
	done  chan struct{}
}

func begin(ctx context.Context, w *Work, workflow string) *begun {
	b := &begun{done: make(chan struct{})}
	go func() {
		b.piece, b.err = w.Begin(ctx, workflow)
		close(b.done)
	}()
	synctest.Wait()
	return b
}

func (b *begun) has() bool {
	synctest.Wait()
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// TestAWorkflowRestsBehindDearWork: one piece comes after the other then, others are not held up, and in the end nothing is remembered.
func TestAWorkflowRestsBehindDearWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), &Work{}
		w.Took("cheap", workFree-1)
		require.Empty(t, w.of, "rest, want none")
		w.Took("dear", time.Millisecond)
		w.Took("dear", time.Millisecond)
		other := begin(ctx, w, "cheap")
		require.True(t, other.has(), "another workflow waits")
		first, second := begin(ctx, w, "dear"), begin(ctx, w, "dear")
		clocktest.Advance(2*workPrice*time.Millisecond - 1)
		require.True(t, !first.has() && !second.has(), "it begins while its workflow rests")
		clocktest.Advance(1)
		require.False(t, !first.has() && !second.has(), "it does not begin behind the rest")
		require.False(t, first.has() && second.has(), "both begin at once")
		if second.has() {
			first, second = second, first
		}
		begun := time.Now()
		clocktest.Advance(time.Millisecond)
		first.piece.Done(begun)
		require.False(t, second.has(), "the second begins while its workflow rests")
		clocktest.Advance(workPrice * time.Millisecond)
		require.True(t, second.has(), "the second does not begin")
		second.piece.End()
		second.piece.End()
		other.piece.End()
		(*Piece)(nil).End()
		if begin(ctx, w, "dear").piece.End(); len(w.of) != 0 {
			t.Errorf("%d rest, want none", len(w.of))
		}
		for range 100 {
			w.Took("dear", time.Second)
		}
		last := begin(ctx, w, "dear")
		if clocktest.Advance(restMax); !last.has() {
			t.Error("it rests for longer than anybody should")
		}
		last.piece.End()
	})
}

// TestWhoWaitsForARestCanLeave, with the turn and without, and the next one has it.
func TestWhoWaitsForARestCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Work{}
		w.Took("dear", time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := begin(ctx, w, "dear"), begin(ctx, w, "dear")
		third := begin(t.Context(), w, "dear")
		cancel()
		require.True(t, first.has() && second.has() && errors.Is(first.err, context.Canceled) && errors.Is(second.err, context.Canceled), "%v %v", first.err, second.err)
		clocktest.Advance(restMax)
		require.True(t, third.has() && third.err == nil, "the third has no turn")
		third.piece.End()
		if begin(t.Context(), w, "dear").piece.End(); len(w.of) != 0 {
			t.Errorf("%d rest, want none", len(w.of))
		}
	})
}
