package serve

import (
	"context"
	"errors"
	"io"
	"slices"
)

// part is something that works until it is stopped. It is started by a function Start of its package, which returns it,
// or by a method Start.
type part interface {
	// Stop takes nothing new, ends what was begun, and returns when no goroutine of the part is left. When ctx ends
	// before, it returns an error or cuts off what is left. It can be called again, and before Start; a Start that
	// comes later starts nothing.
	Stop(ctx context.Context) error
}

// closing is a part that only has to be closed, because it is a resource, like the store. Close can be called again.
type closing struct{ io.Closer }

func (c closing) Stop(context.Context) error { return c.Close() }

// stack holds the parts that were started, in the order of their start.
type stack struct{ parts []part }

// push puts a part on top. One that is there already moves up.
func (s *stack) push(p part) {
	s.parts = append(slices.DeleteFunc(s.parts, func(q part) bool { return q == p }), p)
}

// stop stops the parts from the top down, each whatever became of those above, and forgets them.
func (s *stack) stop(ctx context.Context) error {
	var faults []error
	for _, p := range slices.Backward(s.parts) {
		faults = append(faults, p.Stop(ctx))
	}
	s.parts = nil
	return errors.Join(faults...)
}
