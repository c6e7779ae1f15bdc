package home

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/statemachine"
)

// definitionOf is one with a condition.
var definitionOf = statemachine.Source{File: "a.yaml", Text: []byte(`
id: a
stateMachines: {m: {states: {a: {on: {go: {guard: 'svcPublic.x == 1', target: b}}}, b: {type: final}}}}`)}

func TestDefinitionsAreCheckedFairly(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		end, stop := context.WithCancel(t.Context())
		defer stop()
		q := NewQueue(end)
		atOnce := max(1, min(2, runtime.GOMAXPROCS(0)-1))
		var order []string
		turn, answers := make(chan struct{}), make(chan error, 100)
		ask := func(ctx context.Context, user identity.UserID, name string) {
			go func() {
				answers <- q.Do(ctx, user, parser, func(p *statemachine.Parser) error {
					order = append(order, name) // NB: read after synctest.Wait only, and one at a time goes on
					<-turn
					_, err := p.Parse(definitionOf)
					return err
				})
			}()
			synctest.Wait()
		}
		left, leave := context.WithCancel(t.Context())
		for i := range 20 {
			ask(left, "mallory", fmt.Sprint("mallory ", i))
		}
		require.Len(t, order, atOnce, "are checked at once")
		ask(t.Context(), "alice", "alice")
		for range 2 * atOnce { // NB: mallory was there first, so another one of hers may come before
			turn <- struct{}{}
			synctest.Wait()
		}
		assert.Contains(t, order, "alice")
		leave() // whoever waits is answered, and what is under way gives up
		for range atOnce {
			turn <- struct{}{}
		}
		fine, gone := 0, 0
		for range 21 {
			switch err := <-answers; {
			case err == nil:
				fine++
			case errors.Is(err, failure.ErrUnavailable) && errors.Is(err, context.Canceled):
				gone++
			default:
				t.Errorf("got %v, want ErrUnavailable", err)
			}
		}
		assert.True(t, fine >= 2*atOnce && gone >= 20-3*atOnce && len(order) <= 3*atOnce, "%d were checked and %d not: %v", fine, gone, order)
		ask(t.Context(), "bob", "bob")
		stop()
		turn <- struct{}{}
		err := <-answers
		assert.ErrorIs(t, err, failure.ErrUnavailable, "the queue has ended")
		ask(t.Context(), "carol", "carol")
		err = <-answers
		assert.True(t, errors.Is(err, failure.ErrUnavailable) && !slices.Contains(order, "carol"), "after the end: got %v, %v", err, order)
	})
}
