package home

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

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
	if err != nil {
		t.Fatal(err)
	}
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
		if len(order) != atOnce {
			t.Fatalf("%d are checked at once, want %d", len(order), atOnce)
		}
		ask(t.Context(), "alice", "alice")
		for range 2 * atOnce { // NB: mallory was there first, so another one of hers may come before
			turn <- struct{}{}
			synctest.Wait()
		}
		if !slices.Contains(order, "alice") {
			t.Errorf("got %v, and not alice after what was under way, and the next", order)
		}
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
		if fine < 2*atOnce || gone < 20-3*atOnce || len(order) > 3*atOnce {
			t.Errorf("%d were checked and %d not: %v", fine, gone, order)
		}
		ask(t.Context(), "bob", "bob")
		stop()
		turn <- struct{}{}
		if err := <-answers; !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("the queue has ended: got %v", err)
		}
		ask(t.Context(), "carol", "carol")
		if err := <-answers; !errors.Is(err, failure.ErrUnavailable) || slices.Contains(order, "carol") {
			t.Errorf("after the end: got %v, %v", err, order)
		}
	})
}
